"""Weights from pairwise judgements: the Analytic Hierarchy Process.

An expert says how many times more sensitive one thing is than another; the principal eigenvector of
these judgements is the weights (Saaty 1977; for M-Score: Harel, Shabtai, Rokach and Elovici 2012).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from veilmark.charted import Charted
from veilmark.errors import VeilmarkWarning, WeightsError, did_you_mean, listing
from veilmark.readable import Grid, Summary, count
from veilmark.score.pairwise import Array, PairwiseMatrix, read_matrix

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

Method = Literal["eigenvector", "geometric"]

ACCEPTABLE = 0.10
"""Saaty's limit of the consistency ratio."""

_RANDOM_INDEX = (0.0, 0.0, 0.58, 0.90, 1.12, 1.24, 1.32, 1.41, 1.45, 1.49, 1.51)


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


def _consistency(ratio: float) -> str:
    return f"Consistency ratio {ratio:.4f} ({'fine' if ratio <= 0.1 else 'too high'}: good is at most 0.10)."


@dataclass(frozen=True)
class AhpResult(Charted):
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

    def chart(self) -> Any:
        """The weights, and how consistent the judgements are."""
        from veilmark.report.ahp_chart import judged

        return judged(self)

    def summary(self) -> Summary:
        grid = Grid(("name", "weight"), [(name, f"{weight:.5f}") for name, weight in self.by_name.items()])
        revisit = [f"Judgement to revisit first: {self.revisit}."] if self.revisit else []
        return Summary(f"{count(len(self.names), 'weight')}. {_consistency(self.consistency_ratio)}", (grid,), revisit)

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
class HierarchyResult(Charted, Mapping[str, dict[str, float]]):
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

    def chart(self) -> Any:
        """The weights by attribute, and how consistent the judgements are."""
        from veilmark.report.ahp_chart import hierarchy

        return hierarchy(self)

    def summary(self) -> Summary:
        rows = [(attribute, name, f"{w:.5f}") for attribute, values in self.items() for name, w in values.items()]
        headline = f"Weights of {count(len(self), 'attribute')}. {_consistency(self.consistency_ratio)}"
        return Summary(headline, (Grid(("attribute", "value", "weight"), rows),))

    def to_dict(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "consistency_ratio": self.consistency_ratio,
            "attributes": self.attributes.to_dict(),
            "within": {name: result.to_dict() for name, result in self.within.items()},
        }


@dataclass(frozen=True, eq=False)
class PanelResult(Charted):
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

    def chart(self) -> Any:
        """The weights, and how consistent the experts are."""
        from veilmark.report.ahp_chart import panel

        return panel(self)

    def summary(self) -> Summary:
        own = self.result.summary()
        agreement = "-" if self.concordance is None else f"{self.concordance:.2f}"
        agree = f"The experts' rankings agree to {agreement} (Kendall's W, 0 to 1)."
        return Summary(f"{count(len(self.experts), 'expert')}: {own.headline}", own.grids, (*own.notes, agree))

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.result.to_dict(),
            "concordance": self.concordance,
            "matrix": self.matrix.to_dict(),
            "experts": [expert.to_dict() if expert else None for expert in self.experts],
        }


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


# --- checks ------------------------------------------------------------------------------------------------


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
                f"{attributes.source} weighs the attribute '{name}', but there is no matrix of its "
                f"values.{did_you_mean(name, values)} Add one, even if the attribute has a single value."
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
            f"{source} is inconsistent: its consistency ratio is {result.consistency_ratio:.3f}, above "
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
            verb = "is" if len(odd) == 1 else "are"
            raise WeightsError(
                f"Expert {number} of the panel ({matrix.source}) judges different names from expert 1: "
                f"{listing(odd)} {verb} in only one of them. Give all experts the same names; they may leave cells "
                "empty."
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
