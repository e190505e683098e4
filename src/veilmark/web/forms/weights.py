"""Weighing: where a study's weights come from, pairwise judgements and data models tried out and saved.

Judgements and models are kept in `weights/`, as files that the study names and the command line reads as well.
"""

from __future__ import annotations

import csv
import io
import math
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import yaml
from pydantic import AfterValidator, BaseModel, Field

from veilmark.errors import OptionError, VeilmarkError, VeilmarkWarning, WeightsError
from veilmark.messages import template_of
from veilmark.output import write_text
from veilmark.score import ahp, datamodel
from veilmark.score.weights import KINDS, WeightTable, read_weights
from veilmark.scratch import Scratch
from veilmark.study.study import Study
from veilmark.web.forms.study import attributes_of, save_study
from veilmark.web.workspace import Workspace, slug
from veilmark.workbench.values import values_of
from veilmark.yamlfile import read_yaml

if TYPE_CHECKING:
    from veilmark.tables.domain import Domain

FOLDER = "weights"
MOST = 9
"""So many values can be compared in pairs: 36 pairs are as many as one can judge with care."""

AT_FIRST = 5
SHOWN = 8
DEEPEST, LONGEST = 20, 200_000
"""Levels of a data model's tree, and characters of its file."""

HOW = {
    "ranges": "by ranges of numbers",
    "ahp": "from pairwise judgements",
    "model": "from a data model",
    "values": "value by value",
}

_LOCK = threading.Lock()


def _whole(text: str) -> str:
    """JSON can spell halves of characters, which no file and no answer can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("there is half a character in it") from None
    return text


Text = Annotated[str, AfterValidator(_whole)]


class Weighed(BaseModel):
    """A value, how many records have it, and its weight."""

    value: str
    records: int
    weight: float


class ColumnWeights(BaseModel):
    """A sensitive column: what its weights are made of, and those of its commonest values; `problem` says what is wrong."""

    column: str
    how: str | None
    files: list[str] = []
    values: list[Weighed] = []
    distinct: int = 0
    default: float | None = None
    largest: float = 0.0
    problem: str | None = None


class Pair(BaseModel):
    """How many times heavier the left value is than the right one, 1/9 to 9; None where that is left open."""

    left: Text = Field(min_length=1, max_length=1_000)
    right: Text = Field(min_length=1, max_length=1_000)
    times: float | None = Field(default=None, ge=1 / 9 - 1e-9, le=9)


class Judgements(BaseModel):
    """Values and the judgements between them; `rescale` makes the heaviest 1, otherwise all add up to 1."""

    values: list[Text] = Field(min_length=1, max_length=MOST)
    pairs: list[Pair] = Field(max_length=MOST * (MOST - 1))
    rescale: bool = False


class Judged(BaseModel):
    """The weights that judgements make, and how far these contradict each other (acceptable up to 0.10).

    `open` pairs were not judged; while only as many are judged as there must be, nothing can contradict (`checked` false).
    """

    weights: dict[str, float]
    consistency_ratio: float
    acceptable: bool
    checked: bool
    open: int
    revisit: dict[str, Any] | None = None


class Branch(BaseModel):
    """A concept of a data model with its values, their weights and why, and the concepts below it."""

    name: str
    sensitivity: float
    attribute: str | None = None
    infers: list[str] = []
    values: list[Leaf] = []
    children: list[Branch] = []


class Leaf(BaseModel):
    value: str
    sensitivity: float
    weight: float
    why: str


class Tree(BaseModel):
    """A data model as a tree, and the weights by column and value."""

    branches: list[Branch]
    weights: dict[str, dict[str, float]]
    rule: str


# --- what the study has ----------------------------------------------------------------------------------------


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of the workbench: a page shows what they tell in its own place."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore", VeilmarkWarning)
        yield


def kind_of(weights: Mapping[str, Any] | None) -> str | None:
    """What weights are made of: a key of HOW."""
    if not weights:
        return None
    return next((k for k in KINDS if k in weights and not isinstance(weights[k], int | float)), "values")


def column_weights(workspace: Workspace, study: Study, column: str) -> ColumnWeights:
    """A sensitive column's weights as the study has them."""
    given = study.spec.attributes[column].weights
    found = ColumnWeights(column=column, how=kind_of(given), files=_files(given))
    if not given:
        return found
    try:
        with quietly():
            table = read_weights(column, given, study.folder)
        found.default, found.largest = table.default, table.largest
        cells = values_of(study, column, study.spec.attributes[column].missing or ())
        domain = cells.domains[0]
        statement, weights = table.stated(domain)
    except VeilmarkError as error:
        found.problem = workspace.plain(error)
        return found
    by_value = weights[statement]
    found.distinct = len(domain)
    for i in np.argsort(-cells.records, kind="stable")[:SHOWN]:
        code = int(cells.codes[0, i])
        text, records = domain.text[code].as_py() or "", int(cells.records[i])
        found.values.append(Weighed(value=text, records=records, weight=float(by_value[code])))
    return found


def _files(weights: Mapping[str, Any] | None) -> list[str]:
    kind = kind_of(weights)
    named = (weights or {}).get(kind) if kind in ("ahp", "model") else None
    return [str(f) for f in (named if isinstance(named, list) else [named]) if f is not None]


def domain_of(study: Study, column: str) -> Domain:
    return values_of(study, column, study.spec.attributes[column].missing or ()).domains[0]


# --- pairwise judgements ---------------------------------------------------------------------------------------


def judge(given: Judgements) -> Judged:
    """The weights that judgements make."""
    matrix = _matrix(given)
    with quietly():
        found = ahp.priorities(matrix, rescale=given.rescale)
    pairs = len(matrix.names) * (len(matrix.names) - 1) // 2
    return Judged(
        weights=found.by_name,
        consistency_ratio=found.consistency_ratio,
        acceptable=found.consistency_ratio <= ahp.ACCEPTABLE,
        checked=pairs - found.missing > len(matrix.names) - 1,
        open=found.missing,
        revisit=found.revisit.to_dict() if found.revisit else None,
    )


def _matrix(given: Judgements) -> ahp.PairwiseMatrix:
    judged: dict[tuple[str, str], float | str] = {}
    for pair in given.pairs:
        if pair.left == pair.right or (pair.left, pair.right) in judged:
            raise WeightsError(f"'{pair.left[:80]}' and '{pair.right[:80]}' are compared twice, or are the same.")
        if pair.times is not None:
            judged[pair.left, pair.right] = pair.times
    return ahp.PairwiseMatrix.from_judgements(judged, given.values, "The comparison")


def known_judgements(study: Study, column: str) -> tuple[list[str], dict[tuple[str, str], float], str | None]:
    """Values and judgements of the one matrix that the study names, and a note where it cannot simply be edited."""
    given = study.spec.attributes[column].weights
    files = _files(given)
    if kind_of(given) != "ahp" or not given:
        return [], {}, None
    if len(files) > 1 or given.get("attributes"):
        return (
            [],
            {},
            f"The weights come from {len(files)} experts, or several levels, and stay so until you save here.",
        )
    matrix = ahp.read_matrix(study.folder / files[0])
    pairs = {
        (matrix.names[i], matrix.names[j]): float(matrix.values[i, j])
        for i, j in zip(*np.nonzero(~np.isnan(matrix.values)), strict=True)
        if i != j
    }
    note = None
    if any(
        not math.isclose(max(t, 1 / t), round(max(t, 1 / t)), abs_tol=0.01) or max(t, 1 / t) > 9 for t in pairs.values()
    ):
        note = f"Some judgements in {files[0]} lie between the steps here, and are shown at the nearest."
    return list(matrix.names), pairs, note


def save_judgements(
    workspace: Workspace, name: str, study: Study, column: str, given: Judgements, default: float | None
) -> str:
    """Keep judgements as a matrix in the workspace, and let the study take its weights from it."""
    judged = judge(given)
    blank = next((v for v in given.values if v != v.strip()), None)
    if blank is not None:
        raise WeightsError(
            f"The value '{blank[:80]}' begins or ends with a blank, which a file of judgements cannot keep. Weigh this "
            "column value by value."
        )
    WeightTable(column, judged.weights, default).stated(domain_of(study, column))
    target = _target(workspace, study, column, f"{name}-{column}", ".csv")
    write_text(target, _matrix_text(given))
    weights: dict[str, Any] = {"ahp": workspace.relative(target)}
    weights |= {"rescale": True} if given.rescale else {}
    _save(workspace, name, study, {column: weights}, default)
    return weights["ahp"]


def _matrix_text(given: Judgements) -> str:
    times = {(p.left, p.right): p.times for p in given.pairs if p.times is not None}
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["", *given.values])
    for left in given.values:
        rows.writerow([left, *(_cell(times.get((left, right))) if left != right else "1" for right in given.values)])
    return out.getvalue()


def _cell(times: float | None) -> str:
    """A judgement as one writes it: 3 or 1/3."""
    if times is None:
        return ""
    if times < 1 and math.isclose(1 / times, round(1 / times), rel_tol=1e-6):
        return f"1/{round(1 / times)}"
    return f"{times:.12g}"


# --- data models -----------------------------------------------------------------------------------------------


def tree_of(text: str) -> Tree:
    """A data model's text as a tree with the resulting weights."""
    if len(text) > LONGEST:
        raise WeightsError(f"The data model has {len(text):,} characters; the most that is taken is {LONGEST:,}.")
    if _repeats(text):
        raise WeightsError("The data model refers to parts of itself (`*name`). Write them out, once for each place.")
    with Scratch() as folder:
        path = folder / "model.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            model = datamodel.read_model(path)
            content = read_yaml(path, WeightsError).data
        except VeilmarkError as error:
            raise WeightsError(template_of(error).replace(f"{folder}/", "")) from None
    rows = {(row.attribute, row.value): row for row in model.explain()}
    edges = [(str(e["from"]), f"{e['to']} ({e['value']:g})") for e in content.get("infers") or []]
    branches = [_branch(name, concept, rows, edges, 1) for name, concept in content["tree"].items()]
    return Tree(branches=branches, weights=model.weights(), rule=model.rule)


def _repeats(text: str) -> bool:
    """Whether YAML's aliases are used: a few lines of them can stand for more concepts than any memory holds."""
    try:
        return "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
    except yaml.YAMLError:  # Told with its line where the text is read.
        return False


def _branch(
    name: str,
    concept: Mapping[str, Any],
    rows: Mapping[tuple[str, str], datamodel.Explanation],
    edges: Sequence[tuple[str, str]],
    depth: int,
) -> Branch:
    if depth > DEEPEST:
        raise WeightsError(f"The data model has more than {DEEPEST} levels. Make it flatter.")
    attribute = str(concept.get("attribute") or name)
    own = [f"{to} ({float(value):g})" for to, value in (concept.get("infers") or {}).items()]
    leaves = [_leaf(v, float(s), rows[attribute, v]) for v, s in (concept.get("values") or {}).items()]
    below = (concept.get("children") or {}).items()
    return Branch(
        name=name,
        sensitivity=float(concept["sensitivity"]),
        attribute=attribute if leaves else None,
        infers=[*own, *(to for start, to in edges if start == name)],
        values=leaves,
        children=[_branch(child, content, rows, edges, depth + 1) for child, content in below],
    )


def _leaf(value: str, sensitivity: float, row: datamodel.Explanation) -> Leaf:
    raised = " + ".join(f"{i.value:g} × {i.weight:.3g} for {i.target}" for i in row.inferences)
    why = f"{row.base:.4g}, the sensitivities down to it multiplied" + (f", raised by {raised}" if raised else "")
    return Leaf(value=value, sensitivity=sensitivity, weight=row.weight, why=why)


def first_model(study: Study) -> str:
    """A data model to begin with: the study's sensitive columns, all values alike."""
    tree = {}
    for column in study.sensitive:
        texts = [t for t in domain_of(study, column).text.slice(0, 40).to_pylist() if t]
        tree[column] = {"sensitivity": 1, "values": dict.fromkeys(texts, 0.5)}
    return str(yaml.safe_dump({"tree": tree}, allow_unicode=True, sort_keys=False, width=100)) if tree else ""


def known_model(study: Study) -> tuple[str | None, list[str]]:
    """The file of the study's data model as the study names it, and the columns that are weighed by it."""
    by_file: dict[str, list[str]] = {}
    for column in study.sensitive:
        weights = study.spec.attributes[column].weights
        if kind_of(weights) == "model":
            by_file.setdefault(_files(weights)[0], []).append(column)
    return next(iter(by_file.items()), (None, []))


def model_text(workspace: Workspace, study: Study, file: str | None) -> str:
    """The text of the study's data model, or one to begin with; a file outside the workspace is not shown."""
    if file is None:
        return first_model(study)
    path = (study.folder / file).resolve()
    if not path.is_relative_to(workspace.folder) or path.is_relative_to(workspace.private):
        raise WeightsError(f"The data model '{file}' lies outside the workspace. Put it there to edit it here.")
    try:
        with path.open(encoding="utf-8-sig") as opened:
            return opened.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError):
        raise WeightsError(f"The data model '{file}' cannot be read. Upload it again.") from None


def save_model(
    workspace: Workspace, name: str, study: Study, text: str, columns: Sequence[str], default: float | None
) -> str:
    """Keep a data model in the workspace, and let columns of the study take their weights from it."""
    weights = tree_of(text).weights
    if not columns:
        raise OptionError("Tick at least one column that takes its weights from the model.")
    for column in columns:
        if column not in study.sensitive:
            raise OptionError(f"'{column[:80]}' is not a sensitive column of {name}.")
        if column not in weights:
            raise WeightsError(
                f"The model has no values for the column '{column}'; it has {', '.join(weights)}. Name the column in the "
                f"model with `attribute: {column}`."
            )
        WeightTable(column, weights[column], default).stated(domain_of(study, column))
    target = _target(workspace, study, columns[0], f"{name}-model", ".yaml")
    write_text(target, text.replace("\r\n", "\n"))
    path = workspace.relative(target)
    _save(workspace, name, study, {column: {"model": path} for column in columns}, default)
    return path


# --- saving ----------------------------------------------------------------------------------------------------


def _target(workspace: Workspace, study: Study, column: str, name: str, suffix: str) -> Path:
    """The file that the column's weights come from, if it was made here for it; else a new one."""
    before = _files(study.spec.attributes[column].weights)
    if len(before) == 1 and before[0].startswith(f"{FOLDER}/{slug(name)}") and before[0].endswith(suffix):
        return workspace.folder / FOLDER / Path(before[0]).name
    return workspace.new_output(FOLDER, name, suffix)


def _save(
    workspace: Workspace, name: str, study: Study, weights: Mapping[str, Mapping[str, Any]], default: float | None
) -> None:
    from veilmark.workbench.score import with_weights

    rest = {} if default is None else {"default": default}
    weighed = with_weights(study, {column: {**given, **rest} for column, given in weights.items()})
    save_study(workspace, name, weighed, weighed.person, attributes_of(weighed))


def weight_from(text: str) -> float | None:
    """The weight of all other values as a form has it; None where it is empty."""
    if not text.strip():
        return None
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < math.inf:
        raise WeightsError(
            f"The weight of all other values must be a number from 0 up, such as 0.1, not '{text[:40]}'."
        )
    return weight
