"""Marked releases made up without any data: labels, classes, covers and decoys, as the ledger keeps them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from veilmark.mark.code import bits, derive, make_code
from veilmark.trace.evidence import Marked
from veilmark.trace.sealed import Values, seal_pool

COLUMNS = ("place", "year", "sex")
ABOVE = {
    "place": [[f"p{i:02d}" for i in range(40)], [f"q{i // 4}" for i in range(40)], ["*"] * 40],
    "year": [
        [str(1950 + i) for i in range(20)],
        [f"{1950 + i // 2 * 2}-{1951 + i // 2 * 2}" for i in range(20)],
        ["*"] * 20,
    ],
    "sex": [["f", "m", None], ["*", "*", "*"]],
}
EVERY = np.array(list(product(range(40), range(20), range(3)))).T


def secret(rng, names, classes=600, pool=200, covers=0, decoys=2, code=None, key=b"", sizes=None, earlier=()):
    """A release's secret. Covers are kept for one recipient each, as many for each; with a code, it shares them out."""
    chosen = rng.permutation(EVERY.shape[1])[: classes + pool]
    drawn = rng.permutation(pool)[: decoys * len(names)].reshape(len(names), decoys)
    if code is None:
        count = covers * len(names)
        holds = np.zeros((len(names), count), dtype=bool)
        holds[np.repeat(np.arange(len(names)), covers), rng.permutation(count)] = True
    else:
        count, holds = code.length, bits(key, names, code)
    candidates = EVERY[:, chosen[classes:]]
    return {
        "columns": list(COLUMNS),
        "identity": ["voter"],
        "above": ABOVE,
        "classes": EVERY[:, chosen[:classes]].tolist(),
        "sizes": [5] * classes if sizes is None else sizes.tolist(),
        "covers": rng.permutation(classes)[:count].tolist(),
        "holds": {name: "".join("01"[int(b)] for b in row) for name, row in zip(names, holds, strict=True)},
        "code": None if code is None else {"kind": code.kind, "coalition": code.coalition, "p": code.p.tolist()},
        "pool": candidates.tolist(),
        "drawn": {name: drawn[i].tolist() for i, name in enumerate(names)},
        "decoys": {name: _persons(candidates, drawn[i], 4) for i, name in enumerate(names)},
        "sealed": {
            **seal_pool(*_everybody(candidates), VALUES, rng.bytes(32)),
            "earlier": list(earlier),
            "spared": [[] for _ in COLUMNS],
        },
    }


EACH = 6
"""So many persons each class of the pool has, of whom four are planted where it is drawn."""


def _values(labels):
    """A label stands for two values, itself with an x or a y; a missing one for a missing value."""
    pairs = [(i, of) for i, label in enumerate(labels) for of in ([f"{label}x", f"{label}y"] if label else [None])]
    texts = pa.array([text for _, text in pairs], pa.string())
    return Values.of(texts, np.array([i for i, _ in pairs]), np.arange(len(pairs)), np.empty(0, dtype=np.int64))


VALUES = {c: _values(ABOVE[c][0]) for c in COLUMNS}


def voter(codes, n):
    """Who the n-th person of a class is."""
    return "-".join(map(str, [*codes, n]))


def _everybody(classes):
    persons = [voter(codes, n) for codes in classes.T.tolist() for n in range(EACH)]
    return pa.table({"voter": persons}), np.repeat(np.arange(classes.shape[1]), EACH), classes.shape[1]


def _persons(classes, drawn, each):
    rows = []
    for codes in classes[:, drawn].T.tolist():
        labels = {c: ABOVE[c][0][v] for c, v in zip(COLUMNS, codes, strict=True)}
        rows += [{"voter": voter(codes, n), **labels} for n in range(each)]
    return rows


def marked(rng, names, release="r00000001", collusion=None, length=600, **given):
    """A marked release; with `collusion` by a code of some length, kept under a key from the generator."""
    key = rng.bytes(32)
    code = None if collusion is None else make_code(derive(key, "code"), "nuida", collusion, length)
    return Marked.of(release, secret(rng, names, code=code, key=derive(key, "code"), **given))


def copies(of):
    """The classes of each recipient's copy, as sets of label numbers."""
    found = []
    for i in range(len(of.names)):
        stay = np.ones(of.class_codes.shape[1], dtype=bool)
        stay[of.covers[~of.holds[i]]] = False
        held = {tuple(c) for c in of.class_codes[:, stay].T.tolist()}
        found.append(held | {tuple(c) for c in of.pool_codes[:, of.drawn[i]].T.tolist()})
    return found


def rows_of(of, i, decoy_size=7):
    """The rows of a recipient's copy, with as many as each class has records: columns of label numbers."""
    stay = np.ones(len(of.sizes), dtype=bool)
    stay[of.covers[~of.holds[i]]] = False
    decoys = np.repeat(of.pool_codes[:, of.drawn[i]], decoy_size, axis=1)
    return np.concatenate([np.repeat(of.class_codes[:, stay], of.sizes[stay], axis=1), decoys], axis=1)


def as_table(classes, levels=None, columns=COLUMNS):
    """A leaked table with these classes, at some levels and with some of the columns."""
    rows = list(classes)
    found = {}
    for column in columns:
        labels = ABOVE[column][(levels or {}).get(column, 0)]
        found[column] = pa.array([labels[row[COLUMNS.index(column)]] for row in rows], pa.string())
    return pa.table(found)
