"""Five classifiers that learn which classes are decoys: small ones, because decoys are few.

Each takes standardized columns and the truth of some classes, and returns how suspicious others are: the higher, the more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations_with_replacement

import numpy as np
from scipy import special
from scipy.spatial import KDTree

RIDGE = 1.0
NEIGHBOURS = 15
ROUNDS, CUTS = 40, 16

Classifier = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def logistic(columns: np.ndarray, is_decoy: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Ridge logistic regression by Newton's steps. The constant is left out of the result: it differs between folds, and
    would tell which fold a class is in."""
    rows = np.column_stack([columns, np.ones(len(columns))])
    ridge = np.diag([*np.full(columns.shape[1], RIDGE), 1e-6])
    weight = np.zeros(rows.shape[1])
    for _ in range(30):
        p = special.expit(rows @ weight)
        slope = rows.T @ (p - is_decoy) + ridge @ weight
        step = np.linalg.solve((rows * (p * (1 - p))[:, None]).T @ rows + ridge, slope)
        weight -= step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(others @ weight[:-1])


def quadratic(columns: np.ndarray, is_decoy: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Logistic regression with all squares and products of two."""
    return logistic(_with_products(columns), is_decoy, _with_products(others))


def _with_products(columns: np.ndarray) -> np.ndarray:
    pairs = combinations_with_replacement(range(columns.shape[1]), 2)
    return np.column_stack([columns, *(columns[:, i] * columns[:, j] / 4 for i, j in pairs)])


def neighbours(columns: np.ndarray, is_decoy: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The share of decoys among the nearest classes, near ones counting for more."""
    count = min(NEIGHBOURS, len(columns))
    distance, nearest = KDTree(columns).query(others, k=[*range(1, count + 1)])
    weight = 1 / (distance + 0.1)
    return np.asarray((weight * is_decoy[nearest]).sum(axis=1) / weight.sum(axis=1))


def bayes(columns: np.ndarray, is_decoy: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Naive Bayes with normal distributions, whose spread is held back from being too small."""
    score = np.zeros(len(others))
    for kind, sign in ((is_decoy, 1), (~is_decoy, -1)):
        mean = columns[kind].mean(axis=0)
        variance = (columns[kind].var(axis=0) * kind.sum() + 2) / (kind.sum() + 2)
        score -= sign * ((others - mean) ** 2 / variance + np.log(variance)).sum(axis=1) / 2
    return score


def boosted(columns: np.ndarray, is_decoy: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Boosted stumps (AdaBoost): single cuts, each made where those before it were wrong."""
    cuts = np.quantile(columns, (np.arange(CUTS) + 0.5) / CUTS, axis=0)
    above = np.where(columns[:, None, :] > cuts, 1.0, -1.0).reshape(len(columns), -1)
    right = np.where(others[:, None, :] > cuts, 1.0, -1.0).reshape(len(others), -1)
    truth = np.where(is_decoy, 1.0, -1.0)
    weight = np.where(is_decoy, 0.5 / is_decoy.sum(), 0.5 / (~is_decoy).sum())
    score = np.zeros(len(others))
    for _ in range(ROUNDS):
        edge = (weight * truth) @ above
        cut = int(np.abs(edge).argmax())
        strength = np.arctanh(np.clip(edge[cut], -0.99, 0.99))
        weight = weight * np.exp(-strength * truth * above[:, cut])
        weight /= weight.sum()
        score += strength * right[:, cut]
    return score


CLASSIFIERS: Mapping[str, Classifier] = {
    "logistic": logistic,
    "quadratic": quadratic,
    "neighbours": neighbours,
    "bayes": bayes,
    "boosted": boosted,
}
