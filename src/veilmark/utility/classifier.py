"""What a plain classifier learns from a release, beside what it learns from the source.

Logistic regression predicts a target from the quasi-identifiers. Both models are tested on the same records of the
source, held out in five folds. A value is a vector with a 1 for its group; a released label is the mean of the vectors
of the values that it covers. So the model of the release is asked about real people, as its user would.

Nothing says which released record is which person. So that the release does not show a model the records that it is
tested on, each of those takes one record out of the released cell that covers it (quasi-identifiers and target). In a
cell records are alike: it does not matter which goes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from veilmark.progress import step
from veilmark.tables.cells import Cells, pack
from veilmark.utility.columns import Column

MOST_RECORDS = 50_000
FOLDS = 5
MOST_CELLS = 60_000
"""In a release with more cells it is not looked for the records that are tested on: of so large a table hardly any
sampled record is in both samples."""

MOST_BYTES = 1 << 27
"""Nor where what covers what takes more memory than this, by column."""

CHUNK = 4096


@dataclass(frozen=True)
class Classified:
    """Accuracy on held-out records of the source, mean and standard deviation over folds.

    `baseline` always says the most frequent value.
    """

    target: str
    records: int
    folds: int
    baseline: float
    original: float
    original_sd: float
    released: float
    released_sd: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def available() -> bool:
    """Whether scikit-learn is there."""
    return find_spec("sklearn") is not None


def classify(columns: Sequence[Column], target: Column, before: Cells, after: Cells, seed: int = 1) -> Classified:
    """Accuracy from source and release. Cells are those of the columns and, last, the target."""
    random = np.random.default_rng(seed)
    sample = _draw(before.records, MOST_RECORDS, random)
    chosen = np.flatnonzero(sample)
    codes = before.codes[:, chosen]
    people = np.repeat(np.arange(len(chosen)), sample[chosen])
    fold = random.permutation(len(people)) % FOLDS
    source, release = _of_source(columns, target, codes), _of_release(columns, target, after.codes)
    same = matching([*columns, target], codes, after.codes)
    scores: list[list[float]] = []
    with step("Training classifiers", lambda: len(scores) / FOLDS):
        for number in range(FOLDS):
            held = np.bincount(people[fold == number], minlength=len(chosen))
            out = np.bincount(same[same >= 0], weights=held[same >= 0], minlength=len(after))
            left = np.maximum(after.records - out.astype(np.int64), 0)
            test, train = source.count(held), source.count(sample[chosen] - held)
            models = (
                np.full(len(train), np.bincount(source.answer, weights=train).argmax()),
                _predicted(source, train, source.features),
                _predicted(release, release.count(_draw(left, int(train.sum()), random)), source.features),
            )
            scores.append([float(np.dot(test, said == source.answer)) / max(test.sum(), 1) for said in models])
    means, sds = np.mean(scores, axis=0).tolist(), np.std(scores, axis=0).tolist()
    return Classified(target.name, len(people), FOLDS, means[0], means[1], sds[1], means[2], sds[2])


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a model sees: distinct rows of features with their answer (-1: none), and the row of each cell."""

    features: np.ndarray
    answer: np.ndarray
    row: np.ndarray

    def count(self, records: np.ndarray) -> np.ndarray:
        """Records by cell as records by row."""
        return np.bincount(self.row, weights=records, minlength=len(self.answer))


def _of_source(columns: Sequence[Column], target: Column, codes: np.ndarray) -> _Seen:
    kinds = [c.groups.of[of] for c, of in zip(columns, codes, strict=False)]
    return _seen([np.eye(len(c.groups)) for c in columns], kinds, target.groups.of[codes[-1]])


def _of_release(columns: Sequence[Column], target: Column, codes: np.ndarray) -> _Seen:
    """Records whose target is not in one group have no answer."""
    distinct = [np.unique(c.shares, axis=0, return_inverse=True) for c in columns]
    kinds = [kind[of] for (_, kind), of in zip(distinct, codes, strict=False)]
    answers = target.shares[codes[-1]]
    answer = np.where(answers.max(axis=1, initial=0) > 1 - 1e-9, answers.argmax(axis=1), -1)
    return _seen([vectors for vectors, _ in distinct], kinds, answer)


def _seen(vectors: Sequence[np.ndarray], kinds: Sequence[np.ndarray], answer: np.ndarray) -> _Seen:
    """Rows that are alike are one: a model then costs what is different, not how many records there are."""
    keys, _ = pack([*kinds, answer + 1], [*map(len, vectors), int(answer.max(initial=0)) + 2])
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    features = np.hstack([of[kind[first]] for of, kind in zip(vectors, kinds, strict=True)])
    return _Seen(features, answer[first], row)


def _draw(records: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """At most so many of the records, at random, as counts by cell."""
    if records.sum() <= most:
        return records
    return random.multivariate_hypergeometric(records, most, method="marginals")


def _predicted(seen: _Seen, records: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """What a model trained on some records says of others."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    used = (records > 0) & (seen.answer >= 0)
    known = np.unique(seen.answer[used])
    if len(known) < 2:
        return np.full(len(asked), known[0] if len(known) else -1)
    model = LogisticRegression(max_iter=200, tol=1e-3)
    # The products are small: threads would wait for each other, a hundred times longer on a busy machine.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(seen.features[used], seen.answer[used], sample_weight=records[used])
    said: np.ndarray = model.predict(asked)
    return said


def matching(columns: Sequence[Column], codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each combination of values the first released combination of labels that covers it, -1 where there is none."""
    cells = labels.shape[1]
    found = np.full(codes.shape[1], -1)
    largest = max(c.cover.values * max(len(c.cover.labels), cells // 8) for c in columns)
    if not 0 < cells <= MOST_CELLS or largest > MOST_BYTES:
        return found
    bits = [_covering_cells(c, of) for c, of in zip(columns, labels, strict=True)]
    for begin in range(0, len(found), CHUNK):
        some = codes[:, begin : begin + CHUNK]
        fits = np.full((some.shape[1], bits[0].shape[1]), 255, dtype=np.uint8)
        for of, code in zip(bits, some, strict=True):
            fits &= of[code]
        byte = (fits > 0).argmax(axis=1)
        rows = np.arange(len(byte))
        place = byte * 8 + np.unpackbits(fits[rows, byte][:, None], axis=1).argmax(axis=1)
        found[begin : begin + CHUNK] = np.where(fits[rows, byte] > 0, place, -1)
    return found


def _covering_cells(column: Column, labels: np.ndarray) -> np.ndarray:
    """For each value a bit for each cell, set where the cell's label covers it."""
    masks = column.cover.masks()
    step = max(MOST_BYTES // len(labels), 1)
    return np.vstack([np.packbits(masks[i : i + step][:, labels], axis=1) for i in range(0, len(masks), step)])
