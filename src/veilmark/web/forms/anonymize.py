"""What the Anonymize page asks for: checked, turned into the workbench's words, and into the fields of a form and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from veilmark.defaults import LOSS, RECURSIVE_C, SUPPRESSION, K, Metric
from veilmark.errors import OptionError
from veilmark.study.study import Study
from veilmark.web.workspace import Workspace

if TYPE_CHECKING:
    from veilmark.privacy.models import PrivacyModel
    from veilmark.veil.anonymize import Method
    from veilmark.veil.ola import Ola
    from veilmark.veil.sliced import PersonsMethod

MethodName = Literal["ola", "mondrian", "microaggregate", "fslip", "onemany", "rmr", "anatomy", "slicing"]
PerColumn = dict[str, float]
Model = TypeVar("Model", bound=BaseModel)

OF_RECORDS = {
    "ola": ("OLA", "One level a column, the same for everybody, of the least loss. It may leave out a few records."),
    "mondrian": ("Mondrian", "Ranges that fit the data locally: less loss, nothing left out, harder to read."),
    "microaggregate": (
        "Microaggregation",
        "Numbers become the mean of a small group. For numeric columns and k alone.",
    ),
}
OF_PERSONS = {
    "fslip": ("f-slip", "Quasi-identifiers k-anonymous; sensitive columns in tables of their own, cut into slices."),
    "onemany": ("1:M-Generalization", "Sets of sensitive values that k persons share, in classes of l different sets."),
    "rmr": ("RMR", "Clusters of k persons; who knows m of a person's values finds at least k."),
    "anatomy": ("Anatomy", "Quasi-identifiers as they are, in buckets of l different sets of sensitive values."),
    "slicing": ("Slicing", "Quasi-identifiers as they are, in buckets of k persons with their values permuted."),
}
METHODS = OF_RECORDS | OF_PERSONS
"""Each with its name and a sentence."""

LOSSES = {
    "gcp": "Certainty penalty (GCP): how wide the labels are",
    "dm_star": "Discernibility (DM*): sizes of classes",
    "lm": "Loss metric (LM): how many values a label covers",
    "precision": "Precision: how high the levels are",
    "entropy": "Entropy: how much less a label tells",
    "dm": "Discernibility (DM): suppressed records cost most",
}

_LIMITS = ("k", "l", "l_kind", "c", "t", "alpha", "beta", "beta_kind", "delta")
_SEARCH = ("suppress", "suppress_unit", "loss", "weights", "levels", "seconds", "k_map", "presence", "population")
TAKES: dict[str, tuple[str, ...]] = {
    "ola": (*_LIMITS, *_SEARCH),
    "mondrian": (*_LIMITS, "relaxed"),
    "microaggregate": ("k", "gamma"),
    "fslip": ("k", "slice_l", "preset", "link", "groups", "f"),
    "onemany": ("k", "slice_l"),
    "rmr": ("k", "m", "merge"),
    "anatomy": ("slice_l",),
    "slicing": ("k", "groups"),
}
"""What belongs to each method, beside the format."""


class AnonymizeForm(BaseModel):
    """A method, what the release must meet, and the method's own settings. What belongs to another method is refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    method: MethodName = "ola"
    k: int | None = Field(default=K, ge=1, le=10**9)
    l: PerColumn = {}  # noqa: E741
    l_kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float = RECURSIVE_C
    t: PerColumn = {}
    alpha: PerColumn = {}
    beta: PerColumn = {}
    beta_kind: Literal["basic", "enhanced"] = "basic"
    delta: PerColumn = {}
    k_map: int | None = Field(default=None, ge=1, le=10**9)
    presence: tuple[float, float] | None = None
    population: str | None = Field(default=None, description="A table of the workspace.")
    suppress: float = Field(default=SUPPRESSION, ge=0, le=1)
    suppress_unit: Literal["records", "persons"] = "records"
    loss: Metric = LOSS
    weights: PerColumn = {}
    levels: dict[str, tuple[int, int]] = Field(default={}, description="Least and highest level of a quasi-identifier.")
    seconds: float | None = Field(default=None, gt=0, le=86_400)
    relaxed: bool = False
    gamma: float | None = Field(default=None, ge=0, le=100)
    slice_l: float | None = Field(
        default=None, description="l of a slice, class or bucket, for the methods of persons."
    )
    preset: Literal["strict", "paper"] = "strict"
    link: Literal["none", "groups"] = "none"
    groups: list[list[str]] | None = Field(default=None, description="Sensitive attributes by table.")
    f: list[int] | None = Field(default=None, description="Persons in a slice, one number or one a table.")
    m: int | None = Field(default=None, ge=1, le=100)
    merge: float | None = Field(default=None, ge=0, le=1, description="RMR: loss up to which clusters are merged (δ).")
    format: Literal["csv", "parquet"] = "csv"

    @property
    def of_persons(self) -> bool:
        return self.method in OF_PERSONS

    def given(self) -> dict[str, Any]:
        """What is not as it is by itself, and the method."""
        return {"method": self.method, **self.model_dump(mode="json", exclude_defaults=True)}


# --- for the workbench -----------------------------------------------------------------------------------------


def check(workspace: Workspace, study: Study, asked: AnonymizeForm) -> None:
    """What can be told to be wrong before any work."""
    beyond = [name for name in asked.given() if name not in ("method", "format", *TAKES[asked.method])]
    if beyond:
        raise OptionError(f"'{beyond[0]}' does not belong to {METHODS[asked.method][0]}. Leave it out.")
    _check_population(workspace, asked)
    if asked.k is None and (asked.method not in ("ola", "mondrian") or not models(study, asked)):
        raise OptionError("Say what the release must meet: give k, such as 5.")
    if asked.groups is not None and sorted(c for of in asked.groups for c in of) != sorted(study.sensitive):
        raise OptionError(
            "Give each sensitive column the number of its table, or none of them: then they go together by correlation."
        )
    if asked.of_persons:
        persons_method(asked)
        if study.person is None:
            raise OptionError(
                f"{METHODS[asked.method][0]} is for many records a person, and the study does not say which column "
                "tells persons apart. Give a column that role, or choose OLA or Mondrian."
            )
    else:
        models(study, asked)
        method(asked)


def _check_population(workspace: Workspace, asked: AnonymizeForm) -> None:
    compared = asked.k_map is not None or asked.presence is not None
    if compared and asked.population is None:
        raise OptionError("k-map and δ-presence compare the release with a population. Choose its table.")
    if asked.population is not None:
        workspace.table(asked.population)
        if not compared:
            raise OptionError("A population is chosen, but no condition uses it. Give k-map or δ-presence.")


def models(study: Study, asked: AnonymizeForm) -> list[PrivacyModel]:
    """What every class of the release must meet."""
    from veilmark.workbench.anonymize import Limits, models_of

    taken = {name: getattr(asked, name) for name in (*_LIMITS, "k_map", "presence") if name in TAKES[asked.method]}
    return models_of(study, Limits(**taken))


def method(asked: AnonymizeForm) -> Method:
    """A method of records."""
    from veilmark.veil.anonymize import Microaggregation
    from veilmark.veil.mondrian import Mondrian

    if asked.method == "mondrian":
        return Mondrian(asked.relaxed)
    return Microaggregation(asked.gamma) if asked.method == "microaggregate" else ola(asked)


def ola(asked: AnonymizeForm) -> Ola:
    """OLA as asked."""
    from veilmark.veil.ola import Ola

    levels = dict(asked.levels)
    return Ola(asked.suppress, asked.loss, asked.weights, levels, asked.seconds, unit=asked.suppress_unit)


def persons_method(asked: AnonymizeForm) -> PersonsMethod:
    """A method of persons, with its own defaults where nothing is given."""
    from veilmark.veil.anatomy import Anatomy
    from veilmark.veil.fslip import FSlip
    from veilmark.veil.onemany import OneMany
    from veilmark.veil.rmr import Rmr
    from veilmark.veil.slicing import Slicing

    kinds = {"fslip": FSlip, "onemany": OneMany, "rmr": Rmr, "anatomy": Anatomy, "slicing": Slicing}
    called = {"slice_l": "l", "merge": "delta"}
    taken = {called.get(name, name): getattr(asked, name) for name in TAKES[asked.method]}
    taken = {name: _frozen(value) for name, value in taken.items() if value is not None}
    if asked.method != "fslip" and "l" in taken:
        taken["l"] = _whole(taken["l"])
    made: PersonsMethod = kinds[asked.method](**taken)
    return made


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _whole(number: float) -> int:
    if number != int(number):
        raise OptionError(f"l must be a whole number for this method, not {number:g}.")
    return int(number)


def title(study: str, asked: AnonymizeForm) -> str:
    """What a job is called."""
    k = f", k = {asked.k}" if asked.k is not None and "k" in TAKES[asked.method] else ""
    return f"Anonymize {study} by {METHODS[asked.method][0]}{k}"


# --- the form --------------------------------------------------------------------------------------------------

_BY_COLUMN = ("l", "t", "alpha", "beta", "delta", "weights")
_NUMBERS = ("k", "c", "k_map", "seconds", "gamma", "slice_l", "m", "merge")
_WORDS = ("method", "l_kind", "beta_kind", "population", "suppress_unit", "loss", "preset", "link", "format")


def to_fields(asked: AnonymizeForm) -> dict[str, str]:
    """The fields of the form: one for each setting, `l:COLUMN` and so on for those by column."""
    fields = {name: _shown(getattr(asked, name)) for name in (*_NUMBERS, *_WORDS)}
    fields |= {f"{name}:{column}": _shown(v) for name in _BY_COLUMN for column, v in getattr(asked, name).items()}
    for column, (low, high) in asked.levels.items():
        fields |= {f"low:{column}": str(low), f"high:{column}": str(high)}
    fields |= {f"group:{column}": str(i) for i, of in enumerate(asked.groups or [], 1) for column in of}
    return fields | {
        "suppress": _shown(100 * asked.suppress),
        "presence_low": _shown(asked.presence and asked.presence[0]),
        "presence_high": _shown(asked.presence and asked.presence[1]),
        "f": ", ".join(map(str, asked.f or [])),
        "relaxed": "on" if asked.relaxed else "",
    }


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def from_fields(fields: Mapping[str, str]) -> AnonymizeForm:
    """What a form asks for. Fields of other methods than the chosen one are left aside; empty ones are not given."""
    chosen = fields.get("method", "ola")
    takes = {"method", "format", *TAKES.get(chosen, ())}
    given: dict[str, Any] = {name: fields[name] for name in _WORDS if fields.get(name)}
    given |= {name: read_number(fields[name], name) for name in _NUMBERS if fields.get(name)}
    if "k" in fields and not fields["k"]:
        given["k"] = None
    for name in _BY_COLUMN:
        columns = {key.partition(":")[2]: text for key, text in fields.items() if key.startswith(f"{name}:") and text}
        given |= {name: {c: read_number(text, f"{name} of {c}") for c, text in columns.items()}} if columns else {}
    given |= _more(fields)
    return checked(AnonymizeForm, {name: value for name, value in given.items() if name in takes})


def checked(kind: type[Model], given: Mapping[str, Any]) -> Model:
    """What a form asks for, or in a sentence what is wrong with it."""
    try:
        return kind(**given)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = " of ".join(str(part) for part in first["loc"][:2])
        raise OptionError(f"{place}: {first['msg'].removeprefix('Value error, ')}.") from None


def _more(fields: Mapping[str, str]) -> dict[str, Any]:
    """The settings that are made of several fields, or written otherwise."""
    more: dict[str, Any] = {"relaxed": True} if fields.get("relaxed") else {}
    if fields.get("suppress"):
        more["suppress"] = float(read_number(fields["suppress"], "The suppression limit")) / 100
    if fields.get("f"):
        more["f"] = [read_number(part.strip(), "f") for part in fields["f"].split(",")]
    if fields.get("presence_low") or fields.get("presence_high"):
        ends = (("presence_low", "0"), ("presence_high", "1"))
        more["presence"] = [read_number(fields.get(name) or otherwise, "presence") for name, otherwise in ends]
    bounded = [key.partition(":")[2] for key in fields if key.startswith("low:")]
    levels = {c: span for c in bounded if (span := _span(fields.get(f"low:{c}", ""), fields.get(f"high:{c}", ""), c))}
    groups: dict[float, list[str]] = {}
    for key, text in fields.items():
        if key.startswith("group:") and text:
            groups.setdefault(read_number(text, f"The table of {key.partition(':')[2]}"), []).append(
                key.partition(":")[2]
            )
    more |= {"levels": levels} if levels else {}
    return more | ({"groups": [groups[number] for number in sorted(groups)]} if groups else {})


def _span(low: str, high: str, column: str) -> tuple[float, float] | None:
    """The least and the highest level; where one is given alone, it is both."""
    if not low and not high:
        return None
    return read_number(low or high, f"The level of {column}"), read_number(high or low, f"The level of {column}")


def read_number(text: str, what: str) -> int | float:
    """A number that somebody typed."""
    try:
        number = float(text.replace(",", "."))
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise OptionError(f"{what} must be a number, not '{text[:40]}'.") from None


# --- what was asked last ---------------------------------------------------------------------------------------


def keep_asked(workspace: Workspace, study: str, asked: AnonymizeForm) -> None:
    """Remember for the study's form what was asked last."""
    folder = workspace.private / "asked"
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"{study}.json"
    target.with_suffix(".new").write_text(json.dumps(asked.given()), encoding="utf-8")
    target.with_suffix(".new").replace(target)


def last_asked(workspace: Workspace, study: str) -> AnonymizeForm:
    """What was asked last of the study, else what is asked by itself."""
    try:
        return AnonymizeForm.model_validate_json(
            (workspace.private / "asked" / f"{study}.json").read_text(encoding="utf-8")
        )
    except (OSError, ValueError):
        return AnonymizeForm()
