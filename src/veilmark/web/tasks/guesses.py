"""Guesses of what each column is, kept beside the study so that the reasons can be shown again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, RootModel, ValidationError

from veilmark.output import write_text
from veilmark.web.workspace import Workspace

if TYPE_CHECKING:
    from veilmark.guess import Guess


class GuessView(BaseModel):
    """What a column seems to be, and why."""

    role: str
    reason: str
    warnings: list[str] = []
    hierarchy: dict[str, Any] | None = None


class _Kept(RootModel[dict[str, GuessView]]):
    pass


def keep_guesses(workspace: Workspace, study: str, guesses: Iterable[Guess]) -> None:
    views = {
        g.column: GuessView(role=g.role, reason=g.reason, warnings=list(g.warnings), hierarchy=g.hierarchy)
        for g in guesses
    }
    folder = workspace.private / "guesses"
    folder.mkdir(exist_ok=True)
    write_text(folder / f"{study}.json", _Kept(views).model_dump_json(indent=1))


def kept_guesses(workspace: Workspace, study: str) -> dict[str, GuessView]:
    """The guesses by column; none where nobody has guessed yet."""
    try:
        text = (workspace.private / "guesses" / f"{study}.json").read_text(encoding="utf-8")
        return _Kept.model_validate_json(text).root
    except (OSError, ValidationError):
        return {}
