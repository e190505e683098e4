"""Weights: how bad each sensitive value is, from a table, from comparing pairs, or from a data model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, ValidationError

from veilmark.errors import OptionError, VeilmarkError
from veilmark.study.study import Study
from veilmark.web.forms import weights as weighing
from veilmark.web.forms.weights import HOW, MOST, ColumnWeights, Judged, Judgements, Pair, Tree
from veilmark.web.here import Analyst, Here
from veilmark.web.workspace import NotFoundError
from veilmark.workbench.values import frequent_values

router = APIRouter()

Values = Annotated[Sequence[str], Query()]
NONE: Sequence[str] = ()

LISTED = 60
STEPS = 8
"""Of a slider to each side: one step is 2 times heavier, eight are 9 times."""

WORDS = (
    "equally heavy",
    "slightly heavier",
    "slightly heavier",
    "clearly heavier",
    "clearly heavier",
    "much heavier",
    "much heavier",
    "extremely heavier",
    "extremely heavier",
)


class WeightsView(BaseModel):
    """The sensitive columns of a study, and where the weights of their values come from."""

    study: str
    columns: list[ColumnWeights]


class Choosable(BaseModel):
    value: str
    records: int
    chosen: bool


class PairsView(BaseModel):
    """The values of a column that can be compared, the pairs of those chosen, and what the judgements make of them."""

    study: str
    column: str
    values: list[Choosable]
    distinct: int
    pairs: list[Pair]
    rescale: bool = False
    default: float | None = None
    judged: Judged | None = None
    note: str | None = None


class PairsEdit(Judgements):
    default: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ModelText(BaseModel):
    text: weighing.Text = Field(max_length=weighing.LONGEST)


class ModelEdit(ModelText):
    """A data model, and the sensitive columns that take their weights from it."""

    columns: list[weighing.Text] = Field(min_length=1)
    default: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ModelView(BaseModel):
    """The study's data model, or one to begin with, and what it makes; `problem` says what is wrong with it."""

    study: str
    file: str | None
    text: str
    sensitive: list[str]
    columns: list[str]
    default: float | None = None
    tree: Tree | None = None
    problem: str | None = None


# --- all columns -----------------------------------------------------------------------------------------------


@router.get("/studies/{name}/score/weights")
def page(here: Analyst, name: str) -> Response:
    return here.page("weights.html", view=view(here, name), how=HOW)


@router.get("/api/studies/{name}/score/weights")
def weights(here: Analyst, name: str) -> WeightsView:
    """Where the weights of each sensitive column come from, and those of its commonest values."""
    return view(here, name)


def view(here: Here, name: str) -> WeightsView:
    study = here.study(name)
    columns = [weighing.column_weights(here.workspace, study, column) for column in study.sensitive]
    return WeightsView(study=name, columns=columns)


# --- pairs -----------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/score/pairs")
def pairs_page(here: Analyst, name: str, column: str, value: Values = NONE) -> Response:
    return _pairs_page(here, pairs_view(here, name, column, value))


def _pairs_page(here: Here, found: PairsView, status: int = 200, **more: Any) -> Response:
    context = {"view": found, "steps": [step_of(p.times) for p in found.pairs], "words": WORDS, "most": MOST}
    default = "" if found.default is None else f"{found.default:g}"
    return here.page("pairs.html", status, **(context | {"default": default} | more))


@router.get("/api/studies/{name}/score/pairs")
def pairs(here: Analyst, name: str, column: str, value: Values = NONE) -> PairsView:
    """The pairs of values of a column (`value`, repeated, chooses them) and the judgements that the study has."""
    return pairs_view(here, name, column, value)


def pairs_view(here: Here, name: str, column: str, chosen: Sequence[str]) -> PairsView:
    study = _study_with(here, name, column)
    listed, distinct = frequent_values(study, column, LISTED)
    values = {value: records for value, records in listed if value}
    known, judged, note = weighing.known_judgements(study, column)
    values |= {value: 0 for value in known if value not in values}
    names = _chosen(values, known, chosen)
    compared = compared_pairs(names, judged)
    weights = study.spec.attributes[column].weights or {}
    found = PairsView(
        study=name,
        column=column,
        values=[Choosable(value=v, records=n, chosen=v in names) for v, n in values.items()],
        distinct=distinct,
        pairs=compared,
        rescale=bool(weights.get("rescale")) if known else False,
        default=float(weights["default"]) if isinstance(weights.get("default"), int | float) else None,
        note=note,
    )
    if names:
        found.judged = weighing.judge(Judgements(values=names, pairs=compared, rescale=found.rescale))
    return found


def _study_with(here: Here, name: str, column: str) -> Study:
    study = here.study(name)
    if column not in study.sensitive:
        raise NotFoundError(f"'{column[:80]}' is not a sensitive column of {name}. Give it that role first.")
    return study


def _chosen(values: dict[str, int], known: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """The values to compare: those asked for, those compared before, else the commonest."""
    asked = list(dict.fromkeys(chosen))
    strange = next((v for v in asked if v not in values), None)
    if strange is not None:
        raise OptionError(f"'{strange[:80]}' is not among the values that can be compared.")
    if asked and not 2 <= len(asked) <= MOST:
        raise OptionError(f"Choose 2 to {MOST} values to compare, not {len(asked)}.")
    if asked:
        return asked
    return list(known) if 2 <= len(known) <= MOST else list(values)[: weighing.AT_FIRST]


def compared_pairs(names: Sequence[str], judged: Mapping[tuple[str, str], float]) -> list[Pair]:
    """All pairs with their judgements. Values that no judgement joins yet count as equally heavy to the one before; that
    much is needed, and the rest is left open."""
    times = {pair: judged[pair] for pair in combinations(names, 2) if pair in judged}
    group = {name: i for i, name in enumerate(names)}
    for left, right in [*times, *pairwise(names)]:
        if group[left] != group[right]:
            times.setdefault((left, right), 1.0)
            group = {n: group[left] if g == group[right] else g for n, g in group.items()}
    held = {pair: min(9.0, max(1 / 9, t)) for pair, t in times.items()}
    return [Pair(left=a, right=b, times=held.get((a, b))) for a, b in combinations(names, 2)]


@router.post("/api/studies/{name}/score/judge")
def judge(here: Analyst, name: str, asked: Judgements) -> Judged:
    """The weights that judgements make and how far they contradict each other; nothing is saved."""
    here.changed_nothing()
    here.study(name)
    return weighing.judge(asked)


@router.post("/studies/{name}/score/judge")
def judge_by_form(here: Analyst, name: str) -> Response:
    """The weights alone, for the page whose sliders move."""
    here.changed_nothing()
    here.study(name)
    try:
        return here.page("_judged.html", judged=weighing.judge(_judgements(here)))
    except VeilmarkError as error:
        return here.page("_judged.html", judged=None, problem=here.workspace.plain(error))


@router.put("/api/studies/{name}/score/pairs")
def save_pairs(here: Analyst, name: str, edit: PairsEdit, column: str = Query()) -> PairsView:
    """Keep judgements in the workspace and take the column's weights from them."""
    study = _study_with(here, name, column)
    here.did(f"weighed {column} by pairs", name)
    weighing.save_judgements(here.workspace, name, study, column, edit, edit.default)
    return pairs_view(here, name, column, edit.values)


@router.post("/studies/{name}/score/pairs")
def save_pairs_by_form(here: Analyst, name: str, column: str) -> Response:
    study = _study_with(here, name, column)
    here.did(f"weighed {column} by pairs", name)
    given = _judgements(here)
    try:
        default = weighing.weight_from(here.text("default"))
        path = weighing.save_judgements(here.workspace, name, study, column, given, default)
    except VeilmarkError as error:
        found = pairs_view(here, name, column, given.values)
        found.pairs, found.rescale = given.pairs, given.rescale
        problem = here.workspace.plain(error)
        return _pairs_page(here, found, 400, problem=problem, default=here.text("default"))
    return here.go(f"/studies/{quote(name)}/score/weights", f"{column} is weighed by your judgements, kept in {path}.")


def _judgements(here: Here) -> Judgements:
    """What the sliders say: `value` repeated, `pair:I-J` from -8 (the left one 9 times) to 8, `open:I-J` where ticked."""
    values = [str(v) for v in here.form.getlist("value")]
    pairs = []
    for i, j in combinations(range(min(len(values), MOST + 1)), 2):
        times = None if f"open:{i}-{j}" in here.form else times_of(here.text(f"pair:{i}-{j}", "0"))
        pairs.append({"left": values[i], "right": values[j], "times": times})
    try:
        return Judgements.model_validate(
            {"values": values, "pairs": pairs, "rescale": here.text("scale") == "heaviest"}
        )
    except ValidationError:
        raise OptionError(f"Choose 2 to {MOST} values to compare, not {len(values)}.") from None


def times_of(step: str) -> float:
    """How many times heavier the left value is, by a slider's place."""
    try:
        place = round(float(step))
    except (ValueError, OverflowError):
        place = STEPS + 1
    if abs(place) > STEPS:
        raise OptionError(f"A slider stands between -{STEPS} and {STEPS}, not at '{step[:20]}'.")
    return 1.0 - place if place <= 0 else 1 / (1 + place)


def step_of(times: float | None) -> int:
    """Where a slider stands for a judgement; in the middle for none."""
    if times is None or times == 1:
        return 0
    near = min(STEPS, round(max(times, 1 / times)) - 1)
    return -near if times > 1 else near


# --- data model ------------------------------------------------------------------------------------------------


@router.get("/studies/{name}/score/model")
def model_page(here: Analyst, name: str) -> Response:
    return _model_page(here, model_view(here, name))


def _model_page(here: Here, found: ModelView, status: int = 200, **more: Any) -> Response:
    default = "" if found.default is None else f"{found.default:g}"
    context = {"view": found, "default": default, "longest": weighing.LONGEST}
    return here.page("model.html", status, **(context | more))


@router.get("/api/studies/{name}/score/model")
def model(here: Analyst, name: str) -> ModelView:
    """The study's data model with its tree and weights, or one to begin with."""
    return model_view(here, name)


def model_view(here: Here, name: str, text: str | None = None) -> ModelView:
    study = here.study(name)
    file, columns = weighing.known_model(study)
    found = ModelView(study=name, file=file, text=text or "", sensitive=study.sensitive, columns=columns)
    given = study.spec.attributes[columns[0]].weights if columns else None
    if given and isinstance(given.get("default"), int | float):
        found.default = float(given["default"])
    try:
        if text is None:
            found.text = weighing.model_text(here.workspace, study, file)
        found.tree = weighing.tree_of(found.text) if found.text else None
    except VeilmarkError as error:
        found.problem = here.workspace.plain(error)
    return found


@router.post("/api/studies/{name}/score/model")
def try_model(here: Analyst, name: str, asked: ModelText) -> Tree:
    """A data model as a tree with its weights; nothing is saved."""
    here.changed_nothing()
    here.study(name)
    return weighing.tree_of(asked.text)


@router.post("/studies/{name}/score/model/try")
def try_by_form(here: Analyst, name: str) -> Response:
    """The tree alone, for the page that is being edited."""
    here.changed_nothing()
    here.study(name)
    try:
        return here.page("_tree.html", tree=weighing.tree_of(here.text("text")))
    except VeilmarkError as error:
        return here.page("_tree.html", tree=None, problem=here.workspace.plain(error))


@router.put("/api/studies/{name}/score/model")
def save_model(here: Analyst, name: str, edit: ModelEdit) -> ModelView:
    """Keep a data model in the workspace and take weights from it."""
    study = here.study(name)
    here.did("weighed by a data model", name)
    weighing.save_model(here.workspace, name, study, edit.text, edit.columns, edit.default)
    return model_view(here, name)


@router.post("/studies/{name}/score/model")
def save_model_by_form(here: Analyst, name: str) -> Response:
    study = here.study(name)
    here.did("weighed by a data model", name)
    text, columns = here.text("text"), [str(c) for c in here.form.getlist("column")]
    try:
        file = here.file("file")
        text = _uploaded(file.file.read(4 * weighing.LONGEST)) if file is not None else text
        default = weighing.weight_from(here.text("default"))
        path = weighing.save_model(here.workspace, name, study, text, columns, default)
    except VeilmarkError as error:
        found = model_view(here, name, text)
        found.columns = columns
        return _model_page(here, found, 400, problem=here.workspace.plain(error), default=here.text("default"))
    return here.go(f"/studies/{quote(name)}/score/weights", f"The weights come from the data model, kept in {path}.")


def _uploaded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OptionError("The data model is not UTF-8 text. Save it as a YAML file in UTF-8.") from None
