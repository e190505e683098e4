"""Recoding: which value becomes what, and which classes are left out. Pure data, which an engine applies to rows.

Full-domain recodings have a label for each value. Local ones (Mondrian) have labels for each class, so that a value may
become one thing here and another there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from veilmark.errors import DataError
from veilmark.hierarchy import Levels
from veilmark.messages import param
from veilmark.output import write_text
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain

KEY_BOUND = 1 << 62
"""Keys of classes stay below it, so that sums of shares fit into 64 bits."""

Unit = Literal["records", "persons"]


@dataclass(frozen=True, eq=False)
class Recoding:
    """For each quasi-identifier the `domains` of its values, the code of each value's group (`codes`) and, where the
    recoding is full-domain, each group's label (`labels`).

    `classes` are combinations of codes: the suppressed ones of a full-domain recoding; the kept ones of a local one, with
    `class_labels` by attribute. `models` are what the release was to meet, as plain values, and `published` its columns.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    codes: tuple[np.ndarray, ...]
    labels: tuple[pa.Array, ...]
    classes: np.ndarray
    class_labels: tuple[pa.Array, ...] | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    models: tuple[Mapping[str, Any], ...] = ()
    published: tuple[str, ...] = ()
    pseudonyms: tuple[str, ...] = ()

    def __repr__(self) -> str:
        what = "local" if self.local else ", ".join(f"{name} at level {level}" for name, level in self.levels.items())
        return f"Recoding({what}; {self.classes.shape[1]:,} classes {'kept' if self.local else 'suppressed'})"

    @property
    def local(self) -> bool:
        return self.class_labels is not None

    def map_table(self, i: int) -> pa.Table:
        """For the engine: a value's label, and its share of the key of the class it falls into."""
        codes = self.codes[i]
        share = pa.array(codes.astype(np.int64) * self._strides[i])
        label = self.domains[i].text if self.local else self.labels[i].take(pa.array(codes))
        return pa.table({"value": self.domains[i].values, "label": label, "share": share})

    def class_table(self) -> pa.Table:
        """For the engine: the keys of the classes (`key0`, …) and, of a local recoding, their labels."""
        table = {}
        for n, of in enumerate(self._keys):
            keys = np.zeros(self.classes.shape[1], dtype=np.int64)
            for i in of:
                keys += self.classes[i].astype(np.int64) * self._strides[i]
            table[f"key{n}"] = pa.array(keys)
        return pa.table(table | {f"label{i}": labels for i, labels in enumerate(self.class_labels or ())})

    def key_columns(self) -> list[list[str]]:
        """For the engine: the columns whose shares add up to each key."""
        return [[self.columns[i] for i in of] for of in self._keys]

    @cached_property
    def _sizes(self) -> list[int]:
        pairs = zip(self.codes, self.classes, strict=True)
        return [int(max(code.max(initial=0), of.max(initial=0))) + 1 for code, of in pairs]

    @cached_property
    def _keys(self) -> list[list[int]]:
        """The columns, by position, that go into one key together; almost always that is all of them."""
        keys: list[list[int]] = [[]]
        bound = 1
        for i, size in enumerate(self._sizes):
            if bound * size >= KEY_BOUND:
                keys.append([])
                bound = 1
            keys[-1].append(i)
            bound *= size
        return keys

    @cached_property
    def _strides(self) -> list[int]:
        strides = [1] * len(self.columns)
        for of in self._keys:
            for i, following in reversed(list(pairwise(of))):
                strides[i] = strides[following] * self._sizes[following]
        return strides

    def on(self, domains: Sequence[Domain]) -> Recoding:
        """The same for domains whose values are all known here."""
        places = [mine.codes_of(theirs.text) for mine, theirs in zip(self.domains, domains, strict=True)]
        codes = tuple(code[place] for code, place in zip(self.codes, places, strict=True))
        return replace(self, domains=tuple(domains), codes=codes)

    def to_dict(self) -> dict[str, Any]:
        """As it is saved."""
        values = [d.text.to_pylist() for d in self.domains]
        groups = [c.tolist() for c in self.codes]
        labels = [of.to_pylist() for of in self.labels]
        per_column = {
            name: {"values": v, "groups": g, "labels": of}
            for name, v, g, of in zip(self.columns, values, groups, labels, strict=True)
        }
        content: dict[str, Any] = {"version": 1, "columns": per_column, "levels": dict(self.levels)}
        content["models"] = [dict(m) for m in self.models]
        content["published"] = list(self.published)
        content["pseudonyms"] = list(self.pseudonyms)
        content["classes"] = self.classes.tolist()
        if self.class_labels is not None:
            content["class_labels"] = [labels.to_pylist() for labels in self.class_labels]
        return content

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recoding as JSON."""
        write_text(Path(path), json.dumps(self.to_dict(), ensure_ascii=False))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Recoding:
        """Read a recoding that was saved."""
        try:
            return _read(json.loads(Path(path).read_text(encoding="utf-8")))
        except OSError as error:
            raise DataError(
                f"'{path}' cannot be read: {error.strerror}. Name a file that anonymize wrote with {param('recoding')}."
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
            why = f"{type(error).__name__}: {error}"
            raise DataError(
                f"'{path}' cannot be read as a recoding ({why}). Make one: anonymize with {param('recoding')}."
            ) from None


def _read(content: Any) -> Recoding:
    """A recoding from what was saved; what does not fit together is a ValueError."""
    if content["version"] != 1:
        raise ValueError(f"version {content['version']} is not known")
    columns, local = content["columns"], content.get("class_labels")
    texts = [pa.array(c["values"], pa.string()) for c in columns.values()]
    found = Recoding(
        tuple(columns),
        tuple(Domain(text, text) for text in texts),
        tuple(np.array(c["groups"], dtype=np.int32) for c in columns.values()),
        tuple(pa.array(c["labels"], pa.string()) for c in columns.values()),
        np.array(content["classes"], dtype=np.int32).reshape(len(columns), -1),
        None if local is None else tuple(_label_array(labels) for labels in local),
        {name: int(level) for name, level in content["levels"].items()},
        tuple(content.get("models", ())),
        tuple(content.get("published", ())),
        tuple(content.get("pseudonyms", ())),
    )
    _check_whole(found)
    return found


def _label_array(labels: Sequence[Any]) -> pa.Array:
    """Texts, or the means of microaggregation."""
    return pa.array(labels, pa.float64() if any(isinstance(v, float) for v in labels) else pa.string())


def _check_whole(found: Recoding) -> None:
    rows = zip(found.domains, found.codes, found.labels, found.classes, strict=True)
    for name, (domain, codes, labels, classes) in zip(found.columns, rows, strict=True):
        fits = len(codes) == len(domain) and codes.min(initial=0) >= 0 and codes.max(initial=0) < max(len(labels), 1)
        if not fits or classes.min(initial=0) < 0 or classes.max(initial=0) >= max(len(labels), 1):
            raise ValueError(f"the groups and labels of '{name}' do not match")
    lengths = {len(labels) for labels in found.class_labels or ()} | {found.classes.shape[1]}
    if len(lengths) > 1 or (found.class_labels is not None and len(found.class_labels) != len(found.columns)):
        raise ValueError("its classes and labels do not match")
    if not found.local and set(found.levels) != set(found.columns):
        raise ValueError("its levels and columns do not match")


def full_domain(
    columns: Sequence[str],
    domains: Sequence[Domain],
    levels: Sequence[Levels],
    node: Sequence[int],
    suppressed: np.ndarray,
) -> Recoding:
    """Every value goes to its label at the node's levels; `suppressed` are class codes at these levels."""
    return Recoding(
        tuple(columns),
        tuple(domains),
        tuple(of.codes[level] for of, level in zip(levels, node, strict=True)),
        tuple(of.labels[level] for of, level in zip(levels, node, strict=True)),
        suppressed,
        levels={name: int(level) for name, level in zip(columns, node, strict=True)},
    )


def local(classes: ClassTable, part: np.ndarray, labels: Sequence[pa.Array]) -> Recoding:
    """Every class goes to the labels of its part."""
    return Recoding(
        classes.columns,
        classes.domains,
        tuple(np.arange(len(d), dtype=np.int32) for d in classes.domains),
        tuple(d.text for d in classes.domains),
        classes.codes,
        tuple(of.take(pa.array(part)) for of in labels),
    )


def counted(groups: Tally, unit: Unit) -> int:
    """The records of some classes, or the persons who have any record in them, each counted once.

    Of the classes that are left out: the persons who lose a record, even where they keep others. Where generalizing
    lets fewer records fail, fewer persons lose one.
    """
    if unit == "records" or groups.settled is None:
        return int(groups.records.sum())
    return int(groups.settled.sum()) + len(np.unique(groups.wander_person))
