"""Weights from pairwise judgements: the Analytic Hierarchy Process.

An expert says how many times more sensitive one thing is than another; the principal eigenvector of
these judgements is the weights (Saaty 1977; for M-Score: Harel, Shabtai, Rokach and Elovici 2012).
"""

from __future__ import annotations

import csv
import io
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from veilmark.errors import VeilmarkWarning, WeightsError, did_you_mean, listing

__all__ = [
    "AhpResult",
    "HierarchyResult",
    "Method",
    "PairwiseMatrix",
    "PanelResult",
    "Revisit",
    "aggregate",
    "complete",
    "hierarchical",
    "priorities",
    "random_index",
    "read_matrix",
]

Array = npt.NDArray[np.float64]
Method = Literal["eigenvector", "geometric"]

ACCEPTABLE = 0.10
"""Saaty's limit of the consistency ratio."""

# A hair over 1 %, so that the usual rounding of 1/3 to 0.33 is still taken as the reciprocal of 3.
_RECIPROCAL_TOLERANCE = 0.01 + 1e-9
_LARGEST = 1e100
_RANDOM_INDEX = (0.0, 0.0, 0.58, 0.90, 1.12, 1.24, 1.32, 1.41, 1.45, 1.49, 1.51)
_ADVICE = "A judgement is a positive number such as 3, 0.5 or 1/3; leave the cell empty if there is none."


@dataclass(frozen=True, eq=False)
class PairwiseMatrix:
    """How many times the row's name outweighs the column's: positive, NaN where nobody judged.

    One side of the diagonal is enough; the other is its reciprocal. Where both are given they may differ
    by 1 % (rounding), and are then drawn together: a_ij = sqrt(a_ij / a_ji). `source` is named in messages.
    """

    names: tuple[str, ...]
    values: Array
    source: str = "The pairwise matrix"

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.names)
        values = np.array(self.values, dtype=np.float64)
        _check_names(names, self.source)
        _check_shape(names, values, self.source)
        values = _reciprocal(names, values, self.source)
        values.flags.writeable = False
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)

    @classmethod
    def from_judgements(
        cls,
        judgements: Mapping[tuple[str, str], float | str],
        names: Sequence[str] | None = None,
        source: str = "The pairwise matrix",
    ) -> PairwiseMatrix:
        """From `{("HIV", "Flu"): 5, ("Flu", "Migraine"): "1/2"}`; `names` sets the order, or adds names."""
        order = tuple(names) if names is not None else tuple(dict.fromkeys(n for pair in judgements for n in pair))
        index = {name: i for i, name in enumerate(order)}
        values = np.full((len(order), len(order)), np.nan)
        for (row, column), cell in judgements.items():
            for name in (row, column):
                if name not in index:
                    raise WeightsError(f"{source} judges '{name}', which is not among the names {listing(order)}.")
            values[index[row], index[column]] = _judgement(cell, _place(source, row, column))
        return cls(order, values, source)

    @property
    def missing(self) -> int:
        """Number of pairs without a judgement."""
        return int(np.isnan(self.values).sum()) // 2

    def aligned(self, names: Sequence[str]) -> PairwiseMatrix:
        """The same judgements with the names in another order."""
        order = [self.names.index(name) for name in names]
        return PairwiseMatrix(tuple(names), self.values[np.ix_(order, order)], self.source)

    def to_dict(self) -> dict[str, Any]:
        rows = [[None if math.isnan(cell) else cell for cell in row] for row in self.values.tolist()]
        return {"names": list(self.names), "values": rows}


@dataclass(frozen=True)
class Revisit:
    """The judgement that fits the weights least: the one to reconsider first."""

    row: str
    column: str
    given: float
    suggested: float

    def __str__(self) -> str:
        return (
            f"'{self.row}' against '{self.column}' is judged {_ratio(self.given)}, "
            f"the weights suggest {_ratio(self.suggested)}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": str(self)}


@dataclass(frozen=True)
class AhpResult:
    """Weights of `names`, in the same order, and how far the judgements contradict each other.

    `weights` are positive and sum to 1 (or the largest is 1). `lambda_max` ≥ n is the principal
    eigenvalue of the (completed) matrix whichever method gave the weights; `consistency_index` ≥ 0 is
    (lambda_max − n)/(n − 1); `consistency_ratio` divides it by `random_index`: 0 is free of contradiction,
    1 is like chance, above 0.10 Saaty asks for revision. `revisit` is None where nothing contradicts.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    lambda_max: float
    consistency_index: float
    consistency_ratio: float
    revisit: Revisit | None
    missing: int = 0

    @property
    def by_name(self) -> dict[str, float]:
        return dict(zip(self.names, self.weights, strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {
            "weights": self.by_name,
            "lambda_max": self.lambda_max,
            "consistency_index": self.consistency_index,
            "consistency_ratio": self.consistency_ratio,
            "missing": self.missing,
            "revisit": self.revisit.to_dict() if self.revisit else None,
        }


@dataclass(frozen=True, eq=False)
class HierarchyResult(Mapping[str, dict[str, float]]):
    """Weights by attribute and value; read it like the dictionary `weights`.

    `attributes` and `within[attribute]` are the results of the single matrices. `consistency_ratio` is that
    of the hierarchy (Saaty 1980): (CI + Σ w_a·CI_a) / (RI + Σ w_a·RI_a), with w_a the attributes' weights.
    """

    weights: dict[str, dict[str, float]]
    attributes: AhpResult
    within: dict[str, AhpResult]
    consistency_ratio: float

    def __getitem__(self, attribute: str) -> dict[str, float]:
        return self.weights[attribute]

    def __iter__(self) -> Iterator[str]:
        return iter(self.weights)

    def __len__(self) -> int:
        return len(self.weights)

    def to_dict(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "consistency_ratio": self.consistency_ratio,
            "attributes": self.attributes.to_dict(),
            "within": {name: result.to_dict() for name, result in self.within.items()},
        }


@dataclass(frozen=True, eq=False)
class PanelResult:
    """Several experts as one.

    `matrix` holds the geometric means of their judgements, `result` its weights. `experts` are their own
    results, None for one whose judgements alone do not join all names. `concordance` is Kendall's W of the
    rankings of those that have one, corrected for ties (Kendall 1948): 0 no agreement, 1 the same ranking by
    all, also when there is one expert or one name, or all rank everything equal. None where nobody has one.
    """

    matrix: PairwiseMatrix
    result: AhpResult
    experts: tuple[AhpResult | None, ...]
    concordance: float | None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.result.to_dict(),
            "concordance": self.concordance,
            "matrix": self.matrix.to_dict(),
            "experts": [expert.to_dict() if expert else None for expert in self.experts],
        }


def read_matrix(path: str | os.PathLike[str]) -> PairwiseMatrix:
    """A pairwise matrix from CSV: header `,a,b,c`, rows `a,1,3,5`; comma, semicolon or tab.

    Columns may be in another order than rows. Cells are decimals (with a decimal comma too, where the comma
    does not separate cells) or fractions such as `1/3`; an empty one is a missing judgement.
    """
    source = os.fspath(path)
    header, *body = _cells(_text(path), source)
    columns = _column_names(header)
    rows = [row[0].strip() for row in body]
    _check_names(tuple(columns), source)
    _check_names(tuple(rows), source)
    _check_same_names(rows, columns, source)
    cells = {
        (name, column): cell
        for name, row in zip(rows, body, strict=True)
        for column, cell in zip(columns, _padded(row[1:], name, len(columns), source), strict=True)
        if cell
    }
    return PairwiseMatrix.from_judgements(cells, rows, source)


def complete(matrix: PairwiseMatrix) -> PairwiseMatrix:
    """The matrix with its missing judgements filled in so that it contradicts itself least.

    The principal eigenvalue is minimized, a convex problem in the logarithms with one solution where the
    judgements join all names (Bozóki, Fülöp and Rónyai 2010). Where they do not, an error names the groups.
    """
    _check_connected(matrix)
    if not matrix.missing:
        return matrix
    logs = _log_least_squares(matrix.values)
    filled = _balanced(_least_inconsistent(_balanced(matrix.values, logs)), -logs)
    values = np.where(np.isnan(matrix.values), filled, matrix.values)
    return PairwiseMatrix(matrix.names, values, matrix.source)


def priorities(matrix: PairwiseMatrix, method: Method = "eigenvector", rescale: bool = False) -> AhpResult:
    """Weights from one matrix, complete or not; warns where the consistency ratio is over 0.10.

    `eigenvector` (Saaty 1977) takes the principal eigenvector, of the best completion where judgements are
    missing; `geometric` (Crawford and Williams 1985) the row-wise geometric mean, generally the least squares
    fit to the logarithms of the judgements given. `rescale` makes the largest weight 1 instead of the sum.
    """
    _check_method(method)
    filled = complete(matrix)
    start = _log_least_squares(filled.values)
    root, vector = _principal(_balanced(filled.values, start))
    logs = start + np.log(vector) if method == "eigenvector" else _log_least_squares(matrix.values)
    index = _consistency_index(root, len(matrix.names))
    result = AhpResult(
        names=matrix.names,
        weights=_scaled(np.exp(logs - logs.max()), rescale),
        lambda_max=max(root, float(len(matrix.names))),
        consistency_index=index,
        consistency_ratio=_quotient(index, random_index(len(matrix.names), matrix.missing)),
        revisit=_most_inconsistent(matrix, logs),
        missing=matrix.missing,
    )
    _warn_if_inconsistent(result, matrix.source)
    return result


def random_index(size: int, missing: int = 0) -> float:
    """The consistency index of chance judgements among `size` names, ≥ 0.

    Saaty's table to 11, then the fit of Alonso and Lamata (2006). With judgements missing it falls linearly,
    to 0 where only a tree is left, (n−1)(n−2)/2 missing (Ágoston and Csató 2022).
    """
    if size <= 2:
        return 0.0
    whole = _RANDOM_INDEX[size - 1] if size <= 11 else (1.7699 * size - 4.3513) / (size - 1)
    return whole * max(0.0, 1 - 2 * missing / ((size - 1) * (size - 2)))


def hierarchical(
    attributes: PairwiseMatrix,
    values: Mapping[str, PairwiseMatrix],
    method: Method = "eigenvector",
    rescale: bool = False,
) -> HierarchyResult:
    """Attributes first, then the values within each: weight = weight(attribute)·weight(value in it).

    All weights sum to 1, or with `rescale` the largest of them is 1.
    """
    _check_attributes(attributes, values)
    top = priorities(attributes, method)
    within = {name: priorities(values[name], method) for name in top.names}
    factor = 1.0 / max(top.by_name[name] * max(within[name].weights) for name in top.names) if rescale else 1.0
    weights = {
        name: {value: factor * share * weight for value, weight in within[name].by_name.items()}
        for name, share in top.by_name.items()
    }
    return HierarchyResult(weights, top, within, _overall_ratio(top, within))


def aggregate(matrices: Sequence[PairwiseMatrix], method: Method = "eigenvector", rescale: bool = False) -> PanelResult:
    """Several experts as one: the geometric mean of each judgement over those who gave it.

    Geometric, since only then the mean of reciprocals is the reciprocal of the mean (Aczél and Saaty 1983).
    """
    aligned = _aligned(matrices)
    combined = PairwiseMatrix(aligned[0].names, _geometric_mean(aligned), f"The panel of {len(aligned)}")
    result = priorities(combined, method, rescale)
    experts = tuple(priorities(matrix, method, rescale) if len(_groups(matrix)) == 1 else None for matrix in aligned)
    return PanelResult(combined, result, experts, _concordance([e.weights for e in experts if e is not None]))


# --- reading -----------------------------------------------------------------------------------------------


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise WeightsError(f"{os.fspath(path)} does not exist. Give the path of a pairwise matrix in CSV.") from None
    except UnicodeDecodeError:
        raise WeightsError(f"{os.fspath(path)} is not UTF-8 text. Save the pairwise matrix as CSV in UTF-8.") from None
    except OSError as problem:
        raise WeightsError(f"{os.fspath(path)} cannot be read: {problem.strerror}.") from None


def _cells(text: str, source: str) -> list[list[str]]:
    readings = [_split(text, delimiter) for delimiter in ",;\t"]
    # Names may hold the other delimiters, so a reading whose rows and columns agree goes before most cells.
    rows = max(readings, key=lambda rows: (_names_agree(rows), len(rows[0]) if rows else 0))
    if len(rows) < 2 or len(rows[0]) < 2:
        raise WeightsError(
            f"{source} holds no pairwise matrix. It needs a header row such as ',a,b' and a row a name "
            "such as 'a,1,3', separated by commas, semicolons or tabs."
        )
    return rows


def _split(text: str, delimiter: str) -> list[list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [row for row in rows if any(cell.strip() for cell in row)]
    except csv.Error:
        return []


def _names_agree(rows: list[list[str]]) -> bool:
    return len(rows) > 1 and sorted(_column_names(rows[0])) == sorted(row[0].strip() for row in rows[1:])


def _column_names(header: list[str]) -> list[str]:
    """Names after the corner cell; spreadsheets leave empty cells behind them."""
    names = [name.strip() for name in header[1:]]
    while names and not names[-1]:
        names.pop()
    return names


def _padded(cells: list[str], name: str, size: int, source: str) -> list[str]:
    cells = [cell.strip() for cell in cells]
    if any(cells[size:]):
        extra = next(filter(None, cells[size:]))
        raise WeightsError(
            f"{source}, row '{name}' has a cell '{extra}' beyond the {size} columns "
            "of the header. Remove it, or name its column."
        )
    return cells[:size] + [""] * (size - len(cells))


def _judgement(cell: float | str, place: str) -> float:
    try:
        value = _number(cell)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise WeightsError(f"{place}: '{cell}' is not a number. {_ADVICE}")
    return value


def _number(cell: float | str) -> float:
    if not isinstance(cell, str):
        return float(cell)
    numerator, slash, denominator = cell.replace(",", ".").partition("/")
    return float(numerator) / float(denominator) if slash else float(numerator)


# --- validation --------------------------------------------------------------------------------------------


def _place(source: str, row: str, column: str) -> str:
    return f"{source}, row '{row}', column '{column}'"


def _check_names(names: tuple[str, ...], source: str) -> None:
    if not names:
        raise WeightsError(f"{source} has no names. Give at least one.")
    if "" in names:
        raise WeightsError(f"{source} has a row or column without a name, number {names.index('') + 1}. Name it.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise WeightsError(f"{source} has {listing(twice)} more than once. Give each name one row and one column.")


def _check_same_names(rows: list[str], columns: list[str], source: str) -> None:
    for these, those, kind, other in ((rows, columns, "row", "column"), (columns, rows, "column", "row")):
        lone = [name for name in these if name not in those]
        if lone:
            raise WeightsError(
                f"{source} is not square: {len(rows)} rows and {len(columns)} columns; {listing(lone)} has a "
                f"{kind} but no {other}.{did_you_mean(lone[0], those)} Rows and columns need the same names."
            )


def _check_shape(names: tuple[str, ...], values: Array, source: str) -> None:
    size = len(names)
    if values.shape != (size, size):
        raise WeightsError(
            f"{source} is not square: its shape is {values.shape} for {size} names. "
            f"Give {size} rows of {size} judgements."
        )


def _reciprocal(names: tuple[str, ...], values: Array, source: str) -> Array:
    """The checked matrix, with reciprocals filled in and rounded ones drawn together."""
    _check_positive(names, values, source)
    _check_diagonal(names, values, source)
    np.fill_diagonal(values, 1.0)
    _check_reciprocals(names, values, source)
    opposite = 1 / values.T
    values = np.where(np.isnan(values), opposite, values)
    return np.asarray(np.sqrt(values / values.T), dtype=np.float64)


def _check_positive(names: tuple[str, ...], values: Array, source: str) -> None:
    wrong = ~np.isnan(values) & ((values < 1 / _LARGEST) | (values > _LARGEST))
    for row, column in np.argwhere(wrong)[:1]:
        value = values[row, column]
        fault = "not positive" if value <= 0 else "too extreme to compute with"
        raise WeightsError(f"{_place(source, names[row], names[column])}: {value:g} is {fault}. {_ADVICE}")


def _check_diagonal(names: tuple[str, ...], values: Array, source: str) -> None:
    diagonal = np.diag(values)
    for i in np.flatnonzero(np.abs(diagonal - 1) > 1e-9)[:1]:
        raise WeightsError(
            f"{_place(source, names[i], names[i])}: the diagonal is {diagonal[i]:g}, not 1. "
            "A name compared with itself is 1; write 1 or leave the cell empty."
        )


def _check_reciprocals(names: tuple[str, ...], values: Array, source: str) -> None:
    for row, column in np.argwhere(np.abs(values * values.T - 1) > _RECIPROCAL_TOLERANCE)[:1]:
        raise WeightsError(
            f"{_place(source, names[row], names[column])}: {values[row, column]:g} is not the reciprocal of "
            f"{values[column, row]:g} in row '{names[column]}', column '{names[row]}'. "
            f"Correct one of them, or leave one empty to have it filled in."
        )


def _check_connected(matrix: PairwiseMatrix) -> None:
    groups = _groups(matrix)
    if len(groups) > 1:
        spelled = "; ".join(listing(group) for group in groups)
        raise WeightsError(
            f"{matrix.source} has {len(groups)} groups of names with no judgement between them: {spelled}. "
            "Judge at least one pair between the groups."
        )


def _groups(matrix: PairwiseMatrix) -> list[list[str]]:
    """The names that are joined by judgements, directly or through others."""
    given = ~np.isnan(matrix.values)
    left = np.ones(len(matrix.names), dtype=bool)
    groups = []
    while left.any():
        group = np.zeros_like(left)
        group[np.argmax(left)] = True
        for _ in matrix.names:
            group = group @ given
        groups.append([matrix.names[i] for i in np.flatnonzero(group)])
        left &= ~group
    return groups


def _check_method(method: str) -> None:
    if method not in get_args(Method):
        raise WeightsError(
            f"The AHP method '{method}' is not known.{did_you_mean(method, get_args(Method))} "
            f"Use one of {listing(get_args(Method))}."
        )


def _check_attributes(attributes: PairwiseMatrix, values: Mapping[str, PairwiseMatrix]) -> None:
    for name in attributes.names:
        if name not in values:
            raise WeightsError(
                f"{attributes.source} weighs the attribute '{name}', but there is no matrix of its values."
                f"{did_you_mean(name, values)} Give one, of a single value if need be."
            )
    for name in values:
        if name not in attributes.names:
            raise WeightsError(
                f"There is a matrix of values for '{name}', which {attributes.source} does not weigh."
                f"{did_you_mean(name, attributes.names)} Add it to the attributes, or leave it out."
            )


# --- weights -----------------------------------------------------------------------------------------------


def _log_least_squares(values: Array) -> Array:
    """Logarithms, summing to 0, of the weights nearest to the judgements given; if complete, row means."""
    given = ~np.isnan(values)
    laplacian = np.diag(given.sum(axis=1)) - given.astype(np.float64)
    totals = np.where(given, np.log(values), 0.0).sum(axis=1)
    # The constant added pins the sum of the logarithms to 0, which the judgements leave open.
    return np.asarray(np.linalg.solve(laplacian + 1.0, totals))


def _balanced(values: Array, logs: Array) -> Array:
    """Judgements divided by the ratio of the weights: all 1 where they are consistent.

    It has the eigenvalues of `values`, but stays accurate where weights differ by many powers of ten.
    """
    with np.errstate(over="ignore"):
        return values * np.exp(logs[None, :] - logs[:, None])


def _principal(values: Array) -> tuple[float, Array]:
    """The largest eigenvalue and its positive eigenvector."""
    roots, vectors = np.linalg.eig(values)
    top = int(np.argmax(roots.real))
    return float(roots[top].real), values @ np.abs(vectors[:, top].real)


def _least_inconsistent(balanced: Array) -> Array:
    """NaN replaced so that the largest eigenvalue is least; the gradient comes from both its eigenvectors."""
    # scipy.optimize takes half a second to import, and few matrices need it.
    from scipy.optimize import minimize

    rows, columns = np.nonzero(np.triu(np.isnan(balanced)))
    filled = balanced.copy()

    def objective(logs: Array) -> tuple[float, Array]:
        filled[rows, columns], filled[columns, rows] = np.exp(logs), np.exp(-logs)
        root, right = _principal(filled)
        left = _principal(filled.T)[1]
        slope = left[rows] * filled[rows, columns] * right[columns]
        slope -= left[columns] * filled[columns, rows] * right[rows]
        return math.log(root), slope / (root * float(left @ right))

    best = minimize(objective, np.zeros(len(rows)), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-11})
    objective(best.x)
    return filled


def _scaled(weights: Array, rescale: bool) -> tuple[float, ...]:
    scaled = weights / (weights.max() if rescale else weights.sum())
    return tuple(scaled.tolist())


def _consistency_index(root: float, size: int) -> float:
    return max(0.0, root - size) / (size - 1) if size > 2 else 0.0


def _quotient(index: float, chance: float) -> float:
    return index / chance if chance > 0 else 0.0


def _overall_ratio(top: AhpResult, within: Mapping[str, AhpResult]) -> float:
    parts = [(1.0, top), *((share, within[name]) for name, share in top.by_name.items())]
    index = sum(share * result.consistency_index for share, result in parts)
    chance = sum(share * random_index(len(result.names), result.missing) for share, result in parts)
    return _quotient(index, chance)


def _most_inconsistent(matrix: PairwiseMatrix, logs: Array) -> Revisit | None:
    off = np.abs(np.log(_balanced(matrix.values, logs)))
    # Rounded, so that rounding errors do not choose among equals: the first one is named.
    off = np.triu(np.nan_to_num(off)).round(9)
    row, column = (int(i) for i in np.unravel_index(np.argmax(off), off.shape))
    if off[row, column] == 0:
        return None
    given, suggested = float(matrix.values[row, column]), math.exp(logs[row] - logs[column])
    return Revisit(matrix.names[row], matrix.names[column], given, suggested)


def _warn_if_inconsistent(result: AhpResult, source: str) -> None:
    if result.consistency_ratio > ACCEPTABLE:
        warnings.warn(
            f"{source} contradicts itself: its consistency ratio is {result.consistency_ratio:.3f}, over "
            f"{ACCEPTABLE:.2f}. Revisit this judgement first: {result.revisit}.",
            VeilmarkWarning,
            stacklevel=3,
        )


def _ratio(value: float) -> str:
    """3, 2.47 or 1/3: how a person would write a judgement."""
    below = value < 1 and math.isclose(1 / value, round(1 / value), rel_tol=1e-3)
    return f"1/{round(1 / value)}" if below else f"{value:.3g}"


# --- panels ------------------------------------------------------------------------------------------------


def _aligned(matrices: Sequence[PairwiseMatrix]) -> list[PairwiseMatrix]:
    if not matrices:
        raise WeightsError("The panel has no expert. Give at least one pairwise matrix.")
    names = matrices[0].names
    for number, matrix in enumerate(matrices, start=1):
        odd = sorted(set(matrix.names) ^ set(names))
        if odd:
            raise WeightsError(
                f"Expert {number} of the panel ({matrix.source}) judges other names than expert 1: "
                f"{listing(odd)} in one only. Give all experts the same names, and leave cells empty."
            )
    return [matrix.aligned(names) for matrix in matrices]


def _geometric_mean(matrices: Sequence[PairwiseMatrix]) -> Array:
    logs = np.log(np.stack([matrix.values for matrix in matrices]))
    given = (~np.isnan(logs)).sum(axis=0)
    total = np.nansum(logs, axis=0)
    return np.exp(np.where(given > 0, total / np.maximum(given, 1), np.nan))


def _concordance(weights: Sequence[tuple[float, ...]]) -> float | None:
    """Kendall's W = 12·S / (m²(n³−n) − m·Σ(t³−t)), for m rankings of n names with ties of t names."""
    if not weights:
        return None
    rankings = [_ranks(w) for w in weights]
    ranks = np.stack([r for r, _ in rankings])
    experts, names = ranks.shape
    spread = experts**2 * (names**3 - names) - experts * sum(ties for _, ties in rankings)
    if spread == 0:
        return 1.0
    totals = ranks.sum(axis=0)
    return float(np.clip(12 * ((totals - totals.mean()) ** 2).sum() / spread, 0.0, 1.0))


def _ranks(weights: tuple[float, ...]) -> tuple[Array, int]:
    """Ranks from 1, ties sharing their mean, and Σ(t³−t) over the ties."""
    # Weights that are equal on paper come out a rounding apart.
    rounded = [float(f"{weight:.9g}") for weight in weights]
    _, place, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ranks[place], int((counts**3 - counts).sum())
