"""Requests that no release of a table can meet, refused with the reason before any search."""

from __future__ import annotations

from collections.abc import Sequence

from veilmark.errors import OptionError
from veilmark.privacy.models import Alpha, DistinctL, EntropyL, KAnonymity, KMap, PrivacyModel, RecursiveL
from veilmark.tables.classes import ClassTable


def refuse_impossible(classes: ClassTable, models: Sequence[PrivacyModel]) -> None:
    """A limit that even one class of the whole table cannot meet is an error."""
    for model in models:
        if isinstance(model, KAnonymity):
            _k(model, classes)
        elif isinstance(model, KMap):
            _k_map(model, classes)
        elif isinstance(model, DistinctL | EntropyL | RecursiveL):
            _l(model, classes)
        elif isinstance(model, Alpha):
            _alpha(model, classes)


def _k(model: KAnonymity, classes: ClassTable) -> None:
    persons = classes.total_persons
    most, unit = (classes.total_records, "record") if persons is None else (persons, "person")
    if model.k > most:
        raise OptionError(
            f"k = {model.k:,} cannot be reached: the table has {_counted(most, unit)}, and a class cannot have "
            f"more. Use a k of at most {most:,}."
        )


def _k_map(model: KMap, classes: ClassTable) -> None:
    if classes.population is None:
        return
    most = int(max(classes.population.sum(), classes.size.sum()))
    if model.k > most:
        raise OptionError(
            f"A k of {model.k:,} in the population cannot be reached: the population has "
            f"{_counted(most, 'person')}. Use a k of at most {most:,}."
        )


def _l(model: DistinctL | EntropyL | RecursiveL, classes: ClassTable) -> None:
    values = _values(model.attribute, classes)
    if model.l > values:
        raise OptionError(
            f"l = {model.l:g} for '{model.attribute}' cannot be reached: the column has {_counted(values)}, and a "
            f"class cannot have more. Use an l of at most {values}."
        )


def _alpha(model: Alpha, classes: ClassTable) -> None:
    values = _values(model.attribute, classes)
    if values and model.alpha < 1 / values:
        raise OptionError(
            f"α = {model.alpha:g} for '{model.attribute}' cannot be reached: the column has {_counted(values)}, "
            f"so one of them has a share of at least {1 / values:.4g} in any class. Use a larger α."
        )


def _values(attribute: str, classes: ClassTable) -> int:
    """How many values the table has; missing counts as one."""
    return int((classes.histograms[attribute].overall > 0).sum())


def _counted(number: int, what: str = "value") -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
