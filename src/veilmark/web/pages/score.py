"""Score: how badly a table could be misused, and why; several candidate tables compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import APIRouter, Response, UploadFile
from pydantic import BaseModel, Field

from veilmark.errors import OptionError, VeilmarkError
from veilmark.score.scores import Normalize
from veilmark.study.study import Study
from veilmark.web.forms.weights import FOLDER, Text
from veilmark.web.here import Analyst, Here, Nav
from veilmark.web.tasks.jobs import Job
from veilmark.web.tasks.work import Outcome
from veilmark.web.workspace import NotFoundError, Workspace

if TYPE_CHECKING:
    from veilmark.score.ranking import Ranking
    from veilmark.score.scores import RecordScore

router = APIRouter()
NAV = Nav("Score", "/studies/{study}/score", 20, ("custodian", "analyst"))

TAKEN_APART = 3
"""So many of the worst records, which score for different reasons, get a chart of their own."""

OF = {
    "theory": "of the largest score there can be",
    "source": "of the whole source",
    "record": "of the source’s worst record",
}


class ScoreForm(BaseModel):
    """What to score: a table of the workspace, by default the whole source. `x` is 1 or larger, or `inf`."""

    published: Text | None = None
    x: Text = Field(default="1", max_length=20)
    normalize: Normalize = "theory"
    cap: bool = False
    skip_unknown: bool = False


class RankingForm(BaseModel):
    """Candidate tables to compare; weights are moved `draws` times by up to `spread`, to see whether the order stays."""

    tables: list[Text] = Field(min_length=2, max_length=50)
    x: Text = Field(default="1", max_length=20)
    spread: float = Field(default=0.2, ge=0, lt=1)
    draws: int = Field(default=1_000, ge=1, le=10_000)
    skip_unknown: bool = False


class ScoreView(BaseModel):
    """The latest scoring of the study; `lacking` are sensitive columns without weights, which scores need.

    `outdated` says that the study was changed since.
    """

    study: str
    sensitive: list[str]
    lacking: list[str]
    tables: list[str]
    job: Job | None
    result: dict[str, Any] | None
    outdated: bool = False


class Stored(BaseModel):
    table: str


# --- one table -------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/score")
def page(here: Analyst, name: str) -> Response:
    return _page(here, name, ScoreForm().model_dump())


def _page(here: Here, name: str, fields: Mapping[str, Any], status: int = 200, **more: Any) -> Response:
    found = view(here, name, "score_table")
    asked = (found.result or {}).get("asked", {})
    context = {"view": found, "fields": {**fields, **({} if more else asked)}, "of": OF}
    return here.page("score.html", status, **(context | more))


@router.get("/api/studies/{name}/score")
def score(here: Analyst, name: str) -> ScoreView:
    """The latest scores, and what can be scored."""
    return view(here, name, "score_table")


def view(here: Here, name: str, kind: str) -> ScoreView:
    study = here.study(name)
    job = here.job(kind, name)
    weights = {column: study.spec.attributes[column].weights for column in study.sensitive}
    return ScoreView(
        study=name,
        sensitive=study.sensitive,
        lacking=[column for column, given in weights.items() if not given],
        tables=candidates(here.workspace, study),
        job=job,
        result=here.result(job),
        outdated=_outdated(here.workspace, name, job),
    )


def candidates(workspace: Workspace, study: Study) -> list[str]:
    """The tables that may be scored against the study's source."""
    source = study.spec.source if isinstance(study.spec.source, str) else None
    return [t for t in workspace.tables() if t != source and not t.startswith(f"{FOLDER}/")]


def _outdated(workspace: Workspace, name: str, job: Job | None) -> bool:
    if job is None or job.state != "done" or job.started is None:
        return False
    return workspace.study_file(name).stat().st_mtime > datetime.fromisoformat(job.started).timestamp() + 1


@router.post("/studies/{name}/score")
def start_by_form(here: Analyst, name: str) -> Response:
    fields = {
        "published": here.text("published"),
        "x": here.text("x") or "1",
        "normalize": here.text("normalize"),
        "cap": "cap" in here.form,
        "skip_unknown": "skip_unknown" in here.form,
    }
    try:
        if fields["normalize"] not in OF:
            raise OptionError(f"Choose what 100 % stands for: {', '.join(OF.values())}.")
        number_from(str(fields["x"]))
        return here.watch(
            start(here, name, ScoreForm.model_validate({**fields, "published": fields["published"] or None}))
        )
    except VeilmarkError as error:
        return _page(here, name, fields, 400, problem=here.workspace.plain(error))


@router.post("/api/studies/{name}/score", status_code=202)
def start(here: Analyst, name: str, asked: ScoreForm) -> Job:
    """Score a table, as a job."""
    number_from(asked.x)
    study = here.study(name)
    if asked.published is not None:
        _check_candidate(here.workspace, study, asked.published)
    what = asked.published or name
    given = {"study": name, **asked.model_dump()}
    return here.start(score_table, f"Score {what}", given, name, f"/studies/{quote(name)}/score")


def _check_candidate(workspace: Workspace, study: Study, table: str) -> None:
    if table not in candidates(workspace, study):
        raise NotFoundError(f"There is no table '{table[:80]}' in the workspace that could be scored.")


def number_from(text: str) -> float:
    """x as it was typed."""
    try:
        x = float(text)
    except ValueError:
        x = math.nan
    if not x >= 1:
        raise OptionError(f"x must be a number, 1 or larger, or inf, not '{text[:20]}'.")
    return x


def score_table(
    workspace: Workspace,
    study: str,
    published: str | None = None,
    x: str = "1",
    normalize: Normalize = "theory",
    cap: bool = False,
    skip_unknown: bool = False,
) -> Outcome:
    """The scores of a table and why they are what they are; a job. Records are told by quasi-identifiers and sensitive
    values, never by direct identifiers."""
    from veilmark.report import score_charts
    from veilmark.score.scores import Options
    from veilmark.workbench.score import score as run_score

    data = None if published is None else workspace.table(published)
    options = Options(number_from(x), normalize, cap)
    found = run_score(workspace.study(study), data, options, skip_unknown=skip_unknown)
    charts = {"How the records score": score_charts.distribution(found)} if found.records else {}
    charts |= {f"Record {place} of the worst, its score taken apart": r.chart() for place, r in _different(found.worst)}
    asked = {"published": published, "x": x, "normalize": normalize, "cap": cap, "skip_unknown": skip_unknown}
    return Outcome(found.to_dict() | {"asked": asked}, charts)


def _different(worst: Sequence[RecordScore]) -> list[tuple[int, RecordScore]]:
    """The first records whose scores come about in different ways, with their places."""
    ways: dict[object, tuple[int, RecordScore]] = {}
    for place, record in enumerate(worst, start=1):
        ways.setdefault((record.df_t, record.df_l, tuple(record.weights.values())), (place, record))
    return list(ways.values())[:TAKEN_APART]


# --- several ---------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/score/compare")
def compare_page(here: Analyst, name: str) -> Response:
    return _compare_page(here, name)


def _compare_page(here: Here, name: str, status: int = 200, chosen: list[str] | None = None, **more: Any) -> Response:
    found = view(here, name, "rank_tables")
    asked = {"x": "1", "spread": "20", "skip_unknown": False} | _percent((found.result or {}).get("asked", {}))
    context = {"view": found, "fields": asked, "chosen": asked.get("tables", []) if chosen is None else chosen}
    return here.page("score_compare.html", status, **(context | more))


def _percent(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**asked, "spread": f"{100 * asked['spread']:g}"} if asked else {}


@router.get("/api/studies/{name}/score/compare")
def compare(here: Analyst, name: str) -> ScoreView:
    """The latest comparison, and what can be compared."""
    return view(here, name, "rank_tables")


@router.post("/studies/{name}/score/compare")
def rank_by_form(here: Analyst, name: str) -> Response:
    chosen = [str(value) for value in here.form.getlist("table")]
    fields = {"x": here.text("x") or "1", "spread": here.text("spread"), "skip_unknown": "skip_unknown" in here.form}
    try:
        if not 2 <= len(chosen) <= 50:
            raise OptionError(f"Tick 2 to 50 tables to compare, not {len(chosen)}.")
        number_from(str(fields["x"]))
        asked = RankingForm.model_validate({**fields, "tables": chosen, "spread": _spread(str(fields["spread"]))})
        return here.watch(rank(here, name, asked))
    except VeilmarkError as error:
        return _compare_page(here, name, 400, chosen, fields=fields, problem=here.workspace.plain(error))


def _spread(text: str) -> float:
    try:
        spread = float(text.removesuffix("%")) / 100
    except ValueError:
        spread = -1.0
    if not 0 <= spread < 1:
        raise OptionError(f"Weights move by a share from 0 % to less than 100 %, such as 20, not '{text[:20]}'.")
    return spread


@router.post("/api/studies/{name}/score/compare", status_code=202)
def rank(here: Analyst, name: str, asked: RankingForm) -> Job:
    """Rank candidate tables, as a job."""
    number_from(asked.x)
    study = here.study(name)
    if len(set(asked.tables)) < len(asked.tables):
        raise OptionError("A table is named twice. Name each once.")
    for table in asked.tables:
        _check_candidate(here.workspace, study, table)
    given = {"study": name, **asked.model_dump()}
    title = f"Compare {len(asked.tables)} tables with {name}"
    return here.start(rank_tables, title, given, name, f"/studies/{quote(name)}/score/compare")


def rank_tables(
    workspace: Workspace, study: str, tables: list[str], x: str, spread: float, draws: int, skip_unknown: bool
) -> Outcome:
    """Candidate tables, least misuseable first, and how firm that order is; a job."""
    from veilmark.score.scores import Options
    from veilmark.workbench.score import compare_scores

    files = {str(workspace.table(table)): table for table in tables}
    options = Options(number_from(x), "source")
    opened = workspace.study(study)
    found = compare_scores(opened, list(files), options, spread, draws, skip_unknown=skip_unknown)
    named = _renamed(found, files)
    asked = {"tables": tables, "x": x, "spread": spread, "draws": draws, "skip_unknown": skip_unknown}
    return Outcome(named.to_dict() | {"asked": asked}, {"The candidates by their tkl-Score": named.chart()})


def _renamed(found: Ranking, names: Mapping[str, str]) -> Ranking:
    """The ranking with tables called as in the workspace, not by where that lies."""
    stability = {
        score: replace(
            of,
            order=tuple(names[n] for n in of.order),
            rank_range={names[n]: span for n, span in of.rank_range.items()},
        )
        for score, of in found.stability.items()
    }
    return replace(found, candidates={names[n]: r for n, r in found.candidates.items()}, stability=stability)


@router.post("/studies/{name}/score/tables")
def upload_by_form(here: Analyst, name: str) -> Response:
    here.study(name)
    file = here.file("file")
    if file is None:
        raise OptionError("No file was chosen. Choose a CSV or Parquet file, then add it.")
    stored = _stored(here, name, file.filename or "", file)
    return here.go(f"/studies/{quote(name)}/score/compare", f"{stored} can be compared now.")


@router.post("/api/studies/{name}/score/tables", status_code=201)
def upload(here: Analyst, name: str, file: UploadFile) -> Stored:
    """Put a candidate table into the workspace."""
    here.study(name)
    return Stored(table=_stored(here, name, file.filename or "", file))


def _stored(here: Here, name: str, filename: str, file: Any) -> str:
    here.did("added a table to compare", name)
    return here.workspace.store("data", filename, file.file)
