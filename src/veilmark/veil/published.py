"""The classes of a table as a recoding publishes them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from veilmark.tables.cells import CellIndex
from veilmark.tables.classes import ClassTable
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import Recoding


def published_labels(classes: ClassTable, recoding: Recoding) -> tuple[list[tuple[pa.Array, np.ndarray]], np.ndarray]:
    """For each quasi-identifier its labels and which of them each class gets; and which classes are kept."""
    if recoding.class_labels is not None:
        place = CellIndex(recoding.classes, recoding.domains).find(classes.codes, classes.domains)
        kept = place >= 0
        coded = [labels.dictionary_encode(null_encoding="encode") for labels in recoding.class_labels]
        found = [(of.dictionary, of.indices.to_numpy()[np.where(kept, place, 0)]) for of in coded]
        return found, kept
    groups = [code[own] for code, own in zip(recoding.codes, classes.codes, strict=True)]
    index = CellIndex(recoding.classes, [Domain(labels, labels) for labels in recoding.labels])
    return list(zip(recoding.labels, groups, strict=True)), index.find_codes(np.array(groups)) < 0


def published_classes(classes: ClassTable, recoding: Recoding) -> ClassTable:
    """The classes that a release has, with all that the table says of them."""
    labelled, kept = published_labels(classes, recoding)
    codes = np.array([groups[kept] for _, groups in labelled], dtype=np.int32)
    return classes.take(kept).merge(codes, [Domain(labels, labels) for labels, _ in labelled])
