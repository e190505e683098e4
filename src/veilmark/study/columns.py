"""Which columns are published: those that the study names, by their roles; all others only where it says so."""

from __future__ import annotations

from collections.abc import Iterable

from veilmark.engines.base import Table
from veilmark.study.study import Study


def published_columns(study: Study, table: Table) -> list[str]:
    """The table's columns that a release has, in their order."""
    return [c for c in table.columns if is_published(study, c)]


def is_published(study: Study, column: str) -> bool:
    """Direct identifiers and the person are published as pseudonyms or not at all."""
    if column in study.pseudonyms:
        return True
    if column == study.person or column in study.direct:
        return False
    return column in study.spec.attributes or study.spec.unnamed == "other"


def unchanged_columns(study: Study, columns: Iterable[str]) -> list[str]:
    """The columns that are published, and neither generalized nor as pseudonyms, which tell persons apart by design."""
    changed = {*study.quasi, *study.pseudonyms}
    return [c for c in columns if c not in changed and is_published(study, c)]


def unnamed_columns(study: Study, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that the study does not name."""
    return tuple(c for c in columns if c not in study.spec.attributes and c != study.person)


def left_out_columns(study: Study, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that are not published only because the study does not name them."""
    return tuple(c for c in unnamed_columns(study, columns) if not is_published(study, c))
