"""Recoding: which value becomes what, and which classes are left out. Pure data, which an engine applies to rows.

Full-domain recodings have a label for each value. Local ones (Mondrian) have labels for each class, so that a value may
become one thing here and another there.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from veilmark.classes import ClassTable
from veilmark.domain import Domain
from veilmark.errors import DataError
from veilmark.hierarchy import Levels
from veilmark.output import write_text


@dataclass(frozen=True, eq=False)
class Recoding:
    """For each quasi-identifier the `domains` of its values, the code of each value's group (`codes`) and, where the
    recoding is full-domain, each group's label (`labels`).

    `classes` are combinations of codes: the suppressed ones of a full-domain recoding; the kept ones of a local one, with
    `class_labels` by attribute.
    """

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]
    codes: tuple[np.ndarray, ...]
    labels: tuple[pa.Array, ...]
    classes: np.ndarray
    class_labels: tuple[pa.Array, ...] | None = None
    levels: Mapping[str, int] = field(default_factory=dict)

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
        """For the engine: the keys of the classes and, of a local recoding, their labels."""
        keys = np.zeros(self.classes.shape[1], dtype=np.int64)
        for code, stride in zip(self.classes, self._strides, strict=True):
            keys += code.astype(np.int64) * stride
        labels = {f"label{i}": labels for i, labels in enumerate(self.class_labels or ())}
        return pa.table({"key": pa.array(keys), **labels})

    @property
    def _strides(self) -> list[int]:
        sizes = [int(code.max(initial=0)) + 1 for code in self.codes]
        if math.prod(sizes) >= 1 << 62:
            raise DataError(
                "These quasi-identifiers have too many values to be recoded together. Generalize the ones that are "
                "nearly unique, or give them the role direct."
            )
        return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]

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
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            columns = content["columns"]
            texts = [pa.array(c["values"], pa.string()) for c in columns.values()]
            local = content.get("class_labels")
            return cls(
                tuple(columns),
                tuple(Domain(text, text) for text in texts),
                tuple(np.array(c["groups"], dtype=np.int32) for c in columns.values()),
                tuple(pa.array(c["labels"], pa.string()) for c in columns.values()),
                np.array(content["classes"], dtype=np.int32).reshape(len(columns), -1),
                None if local is None else tuple(pa.array(labels, pa.string()) for labels in local),
                content["levels"],
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = f"'{path}' cannot be read as a recoding: {error}. Make it with `anonymize --recoding`."
            raise DataError(why) from None


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
