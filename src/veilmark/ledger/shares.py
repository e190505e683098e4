"""A key in shares: any k of n together give the key, fewer tell nothing about it (Shamir 1979).

Each byte of the key is the value at 0 of a random polynomial of degree k - 1 over GF(256), the field of AES (modulo
x^8 + x^4 + x^3 + x + 1). Share i holds its values at i. k shares determine the polynomial.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path

from veilmark.errors import OptionError
from veilmark.ledger.files import new_private_file
from veilmark.ledger.keys import LONGEST, SIZE, Key, refuse_open_to_others

HEADER = "veilmark-share-1"
MOST = 255


def multiply(a: int, b: int) -> int:
    """The product of two elements of GF(256): shift and add, and take the modulus off where the eighth bit overflows."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a = (a << 1) ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def inverse(a: int) -> int:
    """1 / a, which is a to the power of 254."""
    result = 1
    for _ in range(254):
        result = multiply(result, a)
    return result


@dataclass(frozen=True, repr=False)
class Share:
    """One of n: the polynomials' values at `number`; `threshold` of them are needed. `key_id` tells whose share it is."""

    number: int
    threshold: int
    key_id: str
    values: bytes

    def save(self, path: Path) -> None:
        """Write it, for its owner alone. The last field finds slips of the hand."""
        with new_private_file(path) as temporary:
            temporary.write_text(f"{self._text()}:{_checksum(self._text())}\n", encoding="ascii")

    def _text(self) -> str:
        values = base64.b64encode(self.values).decode()
        return f"{HEADER}:{self.key_id}:{self.threshold}:{self.number}:{values}"

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Share:
        try:
            with Path(path).open("rb") as file:
                refuse_open_to_others(path, os.fstat(file.fileno()).st_mode)
                text, _, checksum = file.read(LONGEST).decode("ascii").strip().rpartition(":")
            header, key_id, threshold, number, values = text.split(":")
            share = cls(int(number), int(threshold), key_id, base64.b64decode(values, validate=True))
            is_whole = header == HEADER and checksum == _checksum(text) and len(share.values) == SIZE
            if not (is_whole and 1 <= share.number <= MOST and 2 <= share.threshold <= MOST):
                raise ValueError
        except OSError as error:
            raise OptionError(f"The share '{path}' cannot be read: {error.strerror}.") from None
        except (ValueError, binascii.Error):
            raise OptionError(f"'{path}' is not a share of a key, or it is damaged. Give another share.") from None
        return share


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def split(key: Key, count: int, threshold: int) -> list[Share]:
    """`count` shares, of which any `threshold` give the key."""
    if not 2 <= threshold <= count <= MOST:
        raise OptionError(
            f"{threshold} of {count} shares are not possible. At least 2 shares must be needed, and at most as "
            f"many as there are (up to {MOST}). Try 2 of 3."
        )
    rows = [bytes([byte]) + secrets.token_bytes(threshold - 1) for byte in key.secret]
    return [
        Share(number, threshold, key.id, bytes(value_at(row, number) for row in rows)) for number in range(1, count + 1)
    ]


def value_at(coefficients: bytes, x: int) -> int:
    """The value of a polynomial, its constant first."""
    value = 0
    for coefficient in reversed(coefficients):
        value = multiply(value, x) ^ coefficient
    return value


def join(shares: Sequence[Share]) -> Key:
    """The key, from enough different shares of it."""
    different = {share.number: share for share in shares}
    if len({(share.key_id, share.threshold) for share in shares}) != 1:
        raise OptionError("These are shares of different keys. Give shares of one key.")
    needed = shares[0].threshold
    if len(different) < needed:
        raise OptionError(f"{needed} different shares are needed, but you gave {len(different)}. Give more shares.")
    chosen = list(different.values())[:needed]
    weights = [weight_at_zero([s.number for s in chosen], i) for i in range(needed)]
    columns = zip(*(share.values for share in chosen), strict=True)
    secret = bytes(reduce(xor, map(multiply, weights, values)) for values in columns)
    key = Key(secret)
    if key.id != shares[0].key_id:
        raise OptionError("These shares do not combine to the right key: one was changed. Try other shares.")
    return key


def weight_at_zero(numbers: Sequence[int], i: int) -> int:
    """Lagrange: by what the i-th value is multiplied to give the value at 0. Minus is plus in this field."""
    weight = 1
    for other in [*numbers[:i], *numbers[i + 1 :]]:
        weight = multiply(weight, multiply(other, inverse(other ^ numbers[i])))
    return weight
