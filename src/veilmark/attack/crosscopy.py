"""Telling decoys from real classes: what recipients who lay their copies side by side can find out.

A decoy class is in one copy alone. So are some real classes, the covers, which is why that proves nothing. This attacker
looks at everything else that copies show of a class, and is trained on the truth, which no recipient has: it learns from
four fifths of the classes, and is judged by the rest. Real recipients do worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import optimize, stats

from veilmark.attack.classifiers import CLASSIFIERS, Classifier
from veilmark.attack.harness import AttackResult, Z, wilson
from veilmark.tables.cells import CellIndex, number, pack
from veilmark.tables.domain import Domain, as_text

ALL = "combined"
FOLDS, REPEATS = 5, 5
BINS = 10
"""Numbers with more values than this are compared by their tenths."""

TRUST = 5.0
"""A label counts as if so many more rows had it, with values as the whole table has them."""


@dataclass(frozen=True, eq=False)
class Sight:
    """The classes of several copies: `labels[i]` holds each one's label of quasi-identifier i, `presence` the number of
    copies it is in. Rows are those of the first copy that has their class: `owner` is the class, `values` are codes."""

    labels: tuple[pa.Array, ...]
    codes: np.ndarray
    presence: np.ndarray
    owner: np.ndarray
    values: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.presence)

    @property
    def size(self) -> np.ndarray:
        """The rows of each class."""
        return np.bincount(self.owner, minlength=len(self))


def look(copies: Sequence[pa.Table], quasi: Sequence[str]) -> Sight:
    """Lay copies side by side; all have the quasi-identifiers."""
    shared = [name for name in copies[0].column_names if all(name in table.column_names for table in copies)]
    coded = {name: _coded(copies, name) for name in shared}
    keys, bound = pack(np.array([coded[name][1] for name in quasi]), [len(coded[name][0]) for name in quasi])
    distinct, owner = number(keys, bound)
    copy = np.repeat(np.arange(len(copies)), [len(table) for table in copies])
    held = np.zeros((len(copies), len(distinct)), dtype=bool)
    held[copy, owner] = True
    once = held.argmax(axis=0)[owner] == copy
    first = np.zeros(len(distinct), dtype=np.int64)
    first[owner[::-1]] = np.arange(len(owner))[::-1]
    codes = np.array([coded[name][1][first] for name in quasi])
    labels = tuple(coded[name][0].text.take(pa.array(code)) for name, code in zip(quasi, codes, strict=True))
    values = {name: code[once] for name, (_, code) in coded.items() if name not in quasi}
    return Sight(labels, codes, held.sum(axis=0), owner[once], values)


def _coded(copies: Sequence[pa.Table], name: str) -> tuple[Domain, np.ndarray]:
    texts = pa.concat_arrays([as_text(table.column(name).combine_chunks()).cast(pa.string()) for table in copies])
    domain = Domain.of(texts.unique(), name)
    return domain, domain.codes_of(texts)


def truth(sight: Sight, real: Sequence[Sequence[str | None]], decoys: Sequence[Sequence[str | None]]) -> np.ndarray:
    """1 for a decoy class, 0 for a real one, -1 for one that the release does not have."""
    rows = [*real, *dict.fromkeys(map(tuple, decoys))]
    domains, codes = [], []
    for i in range(len(sight.labels)):
        texts = pa.array([row[i] for row in rows], pa.string())
        domains.append(Domain.of(texts.unique()))
        codes.append(domains[-1].codes_of(texts))
    index = CellIndex(np.array(codes), domains)
    mine = np.array([domain.codes_of(labels) for domain, labels in zip(domains, sight.labels, strict=True)])
    found = index.find_codes(mine)
    return np.where(found < 0, -1, found >= len(real)).astype(np.int64)


def features(sight: Sight, linked: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What an attacker can see of each class; `linked` says how many of the population each links to.

    presence: copies it is in; size: its rows; rare: how many rows its labels let expect, were they independent; label and
    pair: how many rows elsewhere have its rarest label, or its rarest pair of labels; repeats:
    the share of its rows that are the same elsewhere but for the quasi-identifiers; odd: how seldom its values are; misfit:
    how ill they go with its labels; risk: how few persons it links to.
    """
    size = sight.size
    found = {
        "presence": sight.presence.astype(float),
        "size": np.log(size),
        "rare": _expected(sight),
        "label": _rarest(sight, [(code,) for code in sight.codes]),
        "pair": _rarest(sight, list(combinations(sight.codes, 2))),
        "repeats": _mean(sight, _repeats(sight)),
    }
    grouped = [_binned(code) for code in sight.values.values()]
    found["odd"] = _mean(sight, sum((_surprise(code) for code in grouped), np.zeros(len(sight.owner))))
    found["misfit"] = _mean(sight, sum((_misfit(sight, code) for code in grouped), np.zeros(len(sight.owner))))
    if linked is not None:
        # A decoy links to somebody, always; a class that links to nobody is the least suspicious.
        found["risk"] = -np.log(np.where(linked > 0, linked, linked.sum() + 1))
    return found


def _mean(sight: Sight, amounts: np.ndarray) -> np.ndarray:
    return np.bincount(sight.owner, weights=amounts, minlength=len(sight)) / sight.size


def _expected(sight: Sight) -> np.ndarray:
    size, expected = sight.size, np.zeros(len(sight))
    for code in sight.codes:
        expected += np.log(np.bincount(code, weights=size)[code] / size.sum())
    return expected


def _rarest(sight: Sight, sets: Sequence[tuple[np.ndarray, ...]]) -> np.ndarray:
    """The logarithm of how many rows of other classes have a class's labels, of the set of columns by which it is fewest."""
    size, fewest = sight.size, np.full(len(sight), np.inf)
    for columns in sets:
        _, which = number(*pack(np.array(columns), [int(code.max(initial=0)) + 1 for code in columns]))
        fewest = np.minimum(fewest, np.bincount(which, weights=size)[which] - size)
    return np.log1p(np.where(np.isinf(fewest), 0.0, fewest))


def _repeats(sight: Sight) -> np.ndarray:
    """Whether a row's other values are those of a row in another class, too."""
    if not sight.values:
        return np.zeros(len(sight.owner))
    rows = np.array(list(sight.values.values()))
    distinct, which = number(*pack(rows, [int(code.max(initial=0)) + 1 for code in rows]))
    everywhere = np.bincount(which)[which]
    return everywhere > _together(sight.owner, which, len(distinct))


def _together(one: np.ndarray, other: np.ndarray, size: int) -> np.ndarray:
    """For each row, how many rows have both of its codes."""
    _, pair = number(one.astype(np.int64) * size + other, (int(one.max(initial=0)) + 1) * size)
    return np.bincount(pair)[pair]


def _binned(code: np.ndarray) -> np.ndarray:
    """Codes as they are, or by tenths of the rows where there are many: codes of numbers stand in their order."""
    if int(code.max(initial=0)) < 10 * BINS:
        return code
    edges = np.unique(np.quantile(code, np.arange(1, BINS) / BINS))
    return np.searchsorted(edges, code, side="right")


def _surprise(code: np.ndarray) -> np.ndarray:
    return -np.log(np.bincount(code)[code] / len(code))


def _misfit(sight: Sight, code: np.ndarray) -> np.ndarray:
    """-log of how much likelier each row's value is with each of its labels, as the rows of other classes have it."""
    size, values = sight.size, int(code.max(initial=0)) + 1
    share = np.bincount(code)[code] / len(code)
    own = _together(sight.owner, code, values)
    total = np.zeros(len(code))
    for labels in sight.codes:
        label = labels[sight.owner]
        both = _together(label, code, values) - own
        rows = np.bincount(label)[label] - size[sight.owner]
        total -= np.log((both + TRUST * share) / (rows + TRUST) / share)
    return total


@dataclass(frozen=True)
class Telling:
    """How well decoys are told: `auc`, the probability that a decoy looks more suspicious than a real class (½: not at
    all), and what comes of taking as many classes as there are decoys, the most suspicious ones: the share of decoys among
    them beside that of guessing. `suspicious` are high or low values, whichever tells better. Intervals are 95 %, as if
    classes were independent."""

    suspicious: str
    auc: float
    auc_interval: tuple[float, float]
    taken: AttackResult

    def to_dict(self) -> dict[str, Any]:
        own = {"suspicious": self.suspicious, "auc": self.auc, "auc_interval": list(self.auc_interval)}
        return own | self.taken.to_dict() | {"advantage": self.taken.gain}


@dataclass(frozen=True)
class Scope:
    """Some classes, how many are decoys, the probability of guessing one, how well each feature tells them, and how well
    each of five classifiers that learn from all features."""

    classes: int
    decoys: int
    guess: float
    by: Mapping[str, Telling]
    classifiers: Mapping[str, Telling] = field(default_factory=dict)

    @property
    def best(self) -> Telling | None:
        """The classifier that tells them best; None where there are too few decoys to judge."""
        return max(self.classifiers.values(), key=lambda telling: telling.auc, default=None)

    def to_dict(self) -> dict[str, Any]:
        own = {"classes": self.classes, "decoys": self.decoys, "guess": self.guess}
        tellings = {"by": self.by, "classifiers": self.classifiers}
        best = None if self.best is None else self.best.auc
        return own | {"best_auc": best} | {k: {n: t.to_dict() for n, t in of.items()} for k, of in tellings.items()}


def tell(
    found: Mapping[str, np.ndarray], decoy: np.ndarray, chosen: np.ndarray, seed: int = 1, repeats: int = REPEATS
) -> Scope:
    """Tell decoys from real classes among the chosen ones (a mask), by each feature alone and by all together."""
    is_decoy = decoy[chosen] == 1
    decoys, classes = int(is_decoy.sum()), len(is_decoy)
    if min(decoys, classes - decoys) < 2:
        return Scope(classes, decoys, decoys / classes if classes else 0.0, {})
    by = {name: judge(values[chosen], is_decoy) for name, values in found.items()}
    columns = np.stack([_standardized(values[chosen]) for values in found.values()], axis=1)
    learnt = {
        name: judge(cross_validated(columns, is_decoy, seed, learner, repeats), is_decoy, turn=False)
        for name, learner in CLASSIFIERS.items()
    }
    by[ALL] = learnt["logistic"]
    return Scope(classes, decoys, decoys / classes, by, learnt)


def _standardized(values: np.ndarray) -> np.ndarray:
    """In standard deviations from the mean, no more than four, so that one odd value does not outweigh the others."""
    spread = values.std()
    return np.clip((values - values.mean()) / spread, -4, 4) if spread > 0 else np.zeros(len(values))


def cross_validated(
    columns: np.ndarray, is_decoy: np.ndarray, seed: int, classifier: Classifier, repeats: int = REPEATS
) -> np.ndarray:
    """How suspicious each class is by what a classifier learnt from other classes."""
    folds = min(FOLDS, int(is_decoy.sum()), int((~is_decoy).sum()))
    random = np.random.default_rng(seed)
    score = np.zeros(len(is_decoy))
    for _ in range(repeats):
        fold = np.empty(len(is_decoy), dtype=np.int64)
        for kind in (is_decoy, ~is_decoy):  # as many decoys in each fold
            fold[kind] = random.permutation(np.arange(int(kind.sum())) % folds)
        for i in range(folds):
            test = fold == i
            score[test] += classifier(columns[~test], is_decoy[~test], columns[test])
    return np.round(score, 9)


def judge(score: np.ndarray, is_decoy: np.ndarray, turn: bool = True) -> Telling:
    """How well a score tells decoys; equal scores are in any order. With `turn`, low scores may be the suspicious ones."""
    decoys, others = int(is_decoy.sum()), int((~is_decoy).sum())
    auc = _auc(score, is_decoy)
    low = turn and auc < 0.5
    if low:
        score, auc = -score, 1 - auc
    least = np.sort(score)[::-1][decoys - 1]
    sure, tied = score > least, score == least
    share = (decoys - sure.sum()) / tied.sum()
    hit = float((is_decoy[sure].sum() + share * is_decoy[tied].sum()) / decoys)
    taken = AttackResult(hit, decoys / len(score), wilson(hit, decoys), decoys)
    return Telling("low" if low else "high", auc, auc_interval(auc, decoys, others), taken)


def _auc(score: np.ndarray, is_decoy: np.ndarray) -> float:
    decoys, others = int(is_decoy.sum()), int((~is_decoy).sum())
    return float((stats.rankdata(score)[is_decoy].sum() - decoys * (decoys + 1) / 2) / (decoys * others))


def auc_interval(auc: float, decoys: int, others: int) -> tuple[float, float]:
    """Newcombe 2006, method 5: all values from which `auc` is no more than 1.96 standard errors away."""
    half = (decoys + others) / 2 - 1

    def beyond(at: float) -> float:
        variance = at * (1 - at) * (1 + half * ((1 - at) / (2 - at) + at / (1 + at))) / (decoys * others)
        return (auc - at) ** 2 - Z**2 * variance

    near = 1e-9
    low = optimize.brentq(beyond, 0.0, auc - near) if auc > 2 * near else 0.0
    high = optimize.brentq(beyond, auc + near, 1.0) if auc < 1 - 2 * near else 1.0
    return float(low), float(high)
