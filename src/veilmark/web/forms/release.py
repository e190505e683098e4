"""A release as a page or the API asks for it, the draft of it that is kept, and the jobs that plan it and make it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import FormData

from veilmark.defaults import COLLUSION, COVERS, FALSE_ACCUSATION, LOSS, RISK, SUPPRESSION, K, Metric
from veilmark.errors import OptionError, VeilmarkError
from veilmark.output import write_text
from veilmark.study.study import Study
from veilmark.web.workspace import NotFoundError, Workspace

if TYPE_CHECKING:
    from veilmark.mark.request import ReleaseRequest

TERMS = ("agreement", "contact", "consent")
HIDING = ("collusion", "covers", "none")
LIVE = 64 << 20
"""Up to so many bytes of source and population, the cost is worked out at every change."""
MOST_LOOKED_AT = 6
OPEN_RISK = 1_000.0
"""The largest risk of decoys that attract, where none is given."""

Text = Annotated[str, Field(max_length=500)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class Recipient(BaseModel):
    """Who gets a copy, and what the ledger notes of the agreement."""

    name: Annotated[str, Field(max_length=200)]
    agreement: Text | None = None
    contact: Text | None = None
    consent: Text | None = None


class ReleaseForm(BaseModel):
    """All that a release is asked for; the fields are the options of `veilmark release`."""

    recipients: Annotated[list[Recipient], Field(max_length=10_000)] = []
    population: str = ""
    identity: list[str] = []
    method: Literal["ola", "mondrian"] = "ola"
    k: Annotated[int, Field(ge=1, le=1_000_000)] = K
    suppress: Share = SUPPRESSION
    loss: Metric = LOSS
    levels: dict[str, Annotated[int, Field(ge=0, le=1_000)]] = {}
    l: dict[str, Annotated[int, Field(ge=1, le=1_000_000)]] = {}  # noqa: E741
    t: dict[str, Share] = {}
    decoys: Count | None = None
    covers: Count = COVERS
    collusion: Annotated[int, Field(ge=1, le=10_000)] | None = COLLUSION
    false_accusation: Annotated[float, Field(gt=0, lt=1)] = FALSE_ACCUSATION
    risk: tuple[float, float] | None = RISK
    most_lost: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    format: Literal["csv", "parquet"] = "csv"


# --- forms -----------------------------------------------------------------------------------------------------


def to_form(asked: ReleaseForm) -> dict[str, Any]:
    """What the form shows."""
    elsewhere = {"recipients", "decoys", "levels", "l", "t", "risk", "covers", "collusion", "most_lost"}
    fields: dict[str, Any] = asked.model_dump(exclude=elsewhere)
    fields |= {f"{term}:{r.name}": getattr(r, term) or "" for r in asked.recipients for term in TERMS}
    fields |= {f"{limit}:{name}": value for limit in ("l", "t") for name, value in getattr(asked, limit).items()}
    return fields | {
        "recipients": "\n".join(r.name for r in asked.recipients),
        "decoys": "" if asked.decoys is None else asked.decoys,
        "suppress": f"{100 * asked.suppress:g}",
        "levels": ", ".join(f"{name}={level}" for name, level in asked.levels.items()),
        "hiding": "covers" if asked.covers else "none" if asked.collusion is None else "collusion",
        "covers": asked.covers or 20,
        "collusion": asked.collusion or 2,
        "false_accusation": f"{asked.false_accusation:g}",
        "most_lost": "" if asked.most_lost is None else f"{100 * asked.most_lost:g}",
        "risk_low": "" if asked.risk is None else f"{asked.risk[0]:g}",
        "risk_high": "" if asked.risk is None else f"{asked.risk[1]:g}",
        "seed": "" if asked.seed is None else asked.seed,
    }


def from_form(form: FormData) -> ReleaseForm:
    """What the form asks for."""
    given = {key: str(value).strip() for key, value in form.items()}
    content = {
        "recipients": [_recipient(name, given) for name in names_of(given.get("recipients", ""))],
        "population": given.get("population", ""),
        "identity": [str(column) for column in form.getlist("identity")],
        "method": given.get("method", "ola"),
        "k": _number(given, "k", "k"),
        "suppress": _number(given, "suppress", "The share that may be left out") / 100,
        "loss": given.get("loss") or LOSS,
        "levels": _levels(given.get("levels", "")),
        "l": _limits(given, "l"),
        "t": _limits(given, "t"),
        "decoys": _number(given, "decoys", "The number of decoys") if given.get("decoys") else None,
        "covers": _number(given, "covers", "The number of covers") if given.get("hiding") == "covers" else 0,
        "collusion": _number(given, "collusion", "The coalition") if given.get("hiding") == "collusion" else None,
        "false_accusation": _number(given, "false_accusation", "The probability of a false accusation"),
        "risk": _risk(given),
        "most_lost": _number(given, "most_lost", "The most that a group may lose") / 100
        if given.get("most_lost")
        else None,
        "seed": _number(given, "seed", "The seed") if given.get("seed") else None,
        "format": given.get("format") or "csv",
    }
    if content["method"] == "mondrian":
        content |= {"suppress": 0.0, "levels": {}}
    try:
        return ReleaseForm.model_validate(content)
    except ValidationError as problem:
        first = problem.errors()[0]
        field = str(first["loc"][0]).replace("_", " ")
        raise OptionError(f"{field.capitalize()}: {first['msg'][0].lower()}{first['msg'][1:]}.") from None


def _risk(given: Mapping[str, str]) -> tuple[float, float] | None:
    """The range of risk of decoys that attract; none where both fields are empty. One end may be left open."""
    low, high = given.get("risk_low"), given.get("risk_high")
    if not low and not high:
        return None
    least = _number(given, "risk_low", "The least risk") if low else 1.0
    return least, _number(given, "risk_high", "The largest risk") if high else max(least, OPEN_RISK)


def names_of(text: str) -> list[str]:
    """The recipients, one a line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _recipient(name: str, given: Mapping[str, str]) -> dict[str, str | None]:
    return {"name": name, **{term: given.get(f"{term}:{name}") or None for term in TERMS}}


def _number(given: Mapping[str, str], field: str, label: str) -> float:
    return number_of(given.get(field, ""), label)


def number_of(text: str, label: str) -> float:
    """The number that somebody typed."""
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise OptionError(f"{label} must be a number, not '{text[:40]}'.") from None


def _limits(given: Mapping[str, str], limit: str) -> dict[str, float]:
    filled = {key.removeprefix(f"{limit}:"): key for key, text in given.items() if key.startswith(f"{limit}:") and text}
    return {name: _number(given, key, f"{limit} of {name}") for name, key in filled.items()}


def _levels(text: str) -> dict[str, str]:
    pairs = [part.rpartition("=") for part in text.split(",") if part.strip()]
    wrong = [part for part in pairs if not part[0].strip() or not part[2].strip().isdecimal()]
    if wrong:
        raise OptionError(f"Levels are written as zip=2, gender=1, not '{''.join(wrong[0])[:40]}'.")
    return {name.strip(): level.strip() for name, _, level in pairs}


# --- the draft -------------------------------------------------------------------------------------------------


def draft_file(workspace: Workspace, study: str) -> Path:
    return workspace.private / "drafts" / f"{study}.json"


def kept_draft(workspace: Workspace, study: str) -> ReleaseForm | None:
    """What was asked for last; a draft that cannot be read is none."""
    try:
        return ReleaseForm.model_validate_json(draft_file(workspace, study).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep_draft(workspace: Workspace, study: str, asked: ReleaseForm) -> None:
    file = draft_file(workspace, study)
    file.parent.mkdir(exist_ok=True, mode=0o700)
    write_text(file, asked.model_dump_json(indent=1))


# --- the population --------------------------------------------------------------------------------------------


def columns_of(workspace: Workspace, table: str) -> list[str]:
    """The columns of a table of the workspace."""
    from veilmark.study.opening import engine_of, open_source

    study = Study.of(workspace.table(table), {})
    with engine_of(study) as engine:
        return [name for name, kind in open_source(engine, study).columns.items() if kind != "nested"]


def likely_population(workspace: Workspace, study: Study) -> str:
    """A table that has all quasi-identifiers and is not the source itself; nothing where none of a few has."""
    source = _source(study)
    others = [table for table in workspace.tables() if workspace.folder / table != source]
    stem = source.stem if source else study.name
    others.sort(key=lambda table: (not Path(table).stem.startswith(f"{stem}-"), table))
    for table in others[:MOST_LOOKED_AT]:
        try:
            columns = columns_of(workspace, table)
        except VeilmarkError:
            continue
        if study.quasi and set(study.quasi) <= set(columns):
            return table
    return ""


def is_live(workspace: Workspace, study: Study, population: str) -> bool:
    """Whether source and population, if there is one, are so small that the cost can be worked out at every change."""
    source = _source(study)
    try:
        everybody = _size(workspace.folder / population) if population else 0
        return source is not None and _size(source) + everybody <= LIVE
    except OSError:
        return False


def _size(path: Path) -> int:
    return path.stat().st_size


def _source(study: Study) -> Path | None:
    """The file that a study describes, where it is a single one."""
    source = study.source()[0]
    return Path(source) if isinstance(source, str | Path) and Path(source).is_file() else None


# --- the jobs --------------------------------------------------------------------------------------------------


def release_job(workspace: Workspace, study: Study, asked: ReleaseForm) -> ReleaseRequest:
    """What the workbench is to do. All that can be refused without looking at the data is refused."""
    from veilmark.mark.marking import Marking
    from veilmark.mark.request import ReleaseRequest, Terms
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola
    from veilmark.workbench.anonymize import Limits, models_of
    from veilmark.workbench.release import file_names

    names = tuple(recipient.name for recipient in asked.recipients)
    population = _population(workspace, asked.population, asked.decoys != 0)
    usual = asked.collusion == COLLUSION  # If the release cannot carry that code, a shorter one will do.
    marking = Marking(
        decoys=asked.decoys,
        covers=None if usual else asked.covers,
        collusion=None if usual else asked.collusion,
        false_accusation=asked.false_accusation,
        risk=asked.risk,
        most_lost=asked.most_lost,
    ).of_copies(names, asked.k)
    file_names(names, asked.format)
    if population and asked.decoys != 0 and not asked.identity:
        raise OptionError("Tick the columns of the population that tell who somebody is.")
    limits = Limits(k=None, l=asked.l, t=asked.t)
    method = Ola(asked.suppress, asked.loss, levels=asked.levels) if asked.method == "ola" else Mondrian()
    terms = {r.name: Terms(r.agreement, r.contact, r.consent) for r in asked.recipients}
    models = tuple(models_of(study, limits))
    return ReleaseRequest(
        population,
        tuple(asked.identity) if population else (),
        marking,
        models,
        method,
        asked.seed,
        asked.format,
        terms,
    )


def _population(workspace: Workspace, table: str, decoys: bool) -> Path | None:
    if not table and not decoys:
        return None
    if not table:
        raise OptionError(
            "Choose a population, a table of everybody whom an attacker could link to, or set the number of decoy classes "
            "to 0: decoys are persons of a population."
        )
    try:
        return workspace.table(table)
    except NotFoundError as error:
        raise OptionError(f"{error} Choose another population.") from None


def plan_copies(workspace: Workspace, study: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What the copies would cost; a job. Nothing is written."""
    from veilmark.workbench.release import release

    opened, wanted = workspace.study(study), ReleaseForm(**asked)
    if wanted.seed is None:  # So that what changes from one plan to the next is what was asked, not what was drawn.
        wanted = wanted.model_copy(update={"seed": 0})
    return release(opened, release_job(workspace, opened, wanted), dry_run=True).to_dict()


def make_copies(workspace: Workspace, study: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Write the recipients' copies and the ledger's entry; a job. Files are named relative to the workspace."""
    from veilmark.workbench.release import release

    opened = workspace.study(study)
    job = release_job(workspace, opened, ReleaseForm(**asked))
    target = workspace.new_output("releases", f"{study}-{datetime.now(UTC):%Y-%m-%d-%H%M%S}")
    found = release(opened, job, workspace.ledger, workspace.key, target).to_dict()
    copies = [{**copy, "file": workspace.relative(Path(copy["file"]))} for copy in found["recipients"]]
    return {**found, "recipients": copies, "output": workspace.relative(target)}
