"""Keyed draws for classes: numbers that follow from a key and a class's labels alone.

A class has the same numbers in every release under the key that has it, whatever other classes there are. So the marks of a
recipient stay the same over releases of one study: whoever intersects or joins its own copies gains nothing by it. Without
the key the numbers look random: the labels' secret numbers are added up (a universal hash), and the sum is encrypted by AES
(a pseudo-random function; Wegman and Carter 1981).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from veilmark.mark.code import derive
from veilmark.tables.domain import as_text


@dataclass(frozen=True, eq=False)
class ClassDraw:
    """Numbers of some classes, one a class for each purpose. `sums` are two secret sums a class."""

    key: bytes
    sums: np.ndarray

    @staticmethod
    def of(key: bytes, columns: Sequence[str], labels: Sequence[pa.Array], codes: np.ndarray) -> ClassDraw:
        """The classes whose label of each column is `labels[i][codes[i, j]]`."""
        sums = np.zeros((codes.shape[1], 2), dtype=np.uint64)
        for column, texts, code in zip(columns, labels, codes, strict=True):
            used, nth = np.unique(code, return_inverse=True)
            sums += _secrets(key, column, texts.take(pa.array(used)))[nth]
        return ClassDraw(key, sums)

    def __len__(self) -> int:
        return len(self.sums)

    def take(self, chosen: np.ndarray) -> ClassDraw:
        """The draw of some of the classes."""
        return ClassDraw(self.key, self.sums[chosen])

    def numbers(self, purpose: str) -> np.ndarray:
        """A uniform number of 64 bits for each class; those for other purposes tell nothing of it."""
        cipher = Cipher(algorithms.AES(derive(self.key, f"classes {purpose}")), modes.ECB()).encryptor()
        blocks = np.ascontiguousarray(self.sums.astype("<u8")).tobytes()
        return np.frombuffer(cipher.update(blocks) + cipher.finalize(), dtype="<u8")[::2].copy()

    def order(self, purpose: str) -> np.ndarray:
        """A permutation of the classes; two of them keep their order whatever others there are."""
        return np.argsort(self.numbers(purpose), kind="stable")


def _secrets(key: bytes, column: str, texts: pa.Array) -> np.ndarray:
    """Two secret numbers for each label of a column."""
    own = derive(key, f"labels {len(column)} {column}")
    names = (b"0" if text is None else b"1" + text.encode() for text in as_text(texts).to_pylist())
    return np.frombuffer(b"".join(hmac.digest(own, name, hashlib.sha256)[:16] for name in names), dtype="<u8").reshape(
        -1, 2
    )
