"""Any k of n shares give the key, k - 1 give nothing, and damaged or foreign ones are refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import OptionError
from veilmark.ledger import Key
from veilmark.ledger.shares import Share, inverse, join, multiply, split, value_at, weight_at_zero
from veilmark.workbench import custody

BYTES = st.integers(0, 255)


def slow_product(a, b):
    """Multiply as polynomials over GF(2), then divide by x^8 + x^4 + x^3 + x + 1."""
    product = 0
    for i in range(8):
        if b >> i & 1:
            product ^= a << i
    for i in range(15, 7, -1):
        if product >> i & 1:
            product ^= 0x11B << (i - 8)
    return product


def test_the_field_is_that_of_aes():
    assert multiply(0x57, 0x83) == 0xC1  # the example of FIPS 197
    assert all(multiply(a, b) == slow_product(a, b) for a in range(256) for b in range(256))
    assert all(multiply(a, inverse(a)) == 1 for a in range(1, 256))


@given(st.binary(min_size=1, max_size=6), st.data())
def test_enough_values_give_the_polynomial_at_zero(coefficients, data):
    size = len(coefficients)
    numbers = data.draw(st.lists(st.integers(1, 255), min_size=size, max_size=size, unique=True))
    total = 0
    for i, x in enumerate(numbers):
        total ^= multiply(weight_at_zero(numbers, i), value_at(coefficients, x))
    assert total == coefficients[0]


@pytest.mark.parametrize(("count", "threshold"), [(2, 2), (3, 2), (5, 3), (6, 6)])
def test_any_so_many_give_the_key_and_fewer_are_refused(count, threshold):
    key = Key.new()
    shares = split(key, count, threshold)
    for some in itertools.combinations(shares, threshold):
        assert join(some[::-1]) == key
    assert join(shares) == key
    for few in itertools.combinations(shares, threshold - 1):
        with pytest.raises(OptionError, match=f"{threshold} different shares are needed, but you gave {threshold - 1}"):
            join([*few, few[0]])


@given(BYTES, BYTES)
def test_one_share_of_two_fits_every_key(byte, other):
    """For each byte that the key may have, there is one polynomial through the share: it tells nothing."""
    at = multiply(other ^ byte, inverse(3))
    assert value_at(bytes([byte, at]), 3) == other


def test_shares_are_never_the_same_twice():
    key = Key.new()
    one, two = split(key, 3, 2), split(key, 3, 2)
    assert not {s.values for s in one} & {s.values for s in two}
    assert key.secret not in {s.values for s in one}
    assert "values" not in repr(one[0])


def test_mixed_and_changed_shares_are_refused():
    key = Key.new()
    one, two = split(key, 3, 2), split(Key.new(), 3, 2)
    with pytest.raises(OptionError, match="shares of different keys"):
        join([one[0], two[1]])
    changed = Share(one[0].number, 2, key.id, bytes(32))
    with pytest.raises(OptionError, match="one was changed"):
        join([changed, one[1]])
    with pytest.raises(OptionError, match="one was changed"):
        join([one[0], split(key, 3, 2)[1]])


@pytest.mark.parametrize(("count", "threshold"), [(1, 1), (3, 1), (3, 4), (256, 2), (0, 0)])
def test_shares_that_cannot_be(count, threshold):
    with pytest.raises(OptionError, match=f"{threshold} of {count} shares are not possible"):
        split(Key.new(), count, threshold)


def test_shares_in_files(tmp_path):
    key = Key.open_or_make(tmp_path / "key")
    paths = custody.split_key(tmp_path / "key", tmp_path / "shares", 3, 2)
    assert [p.stat().st_mode & 0o777 for p in paths] == [0o600] * 3
    assert (tmp_path / "shares").stat().st_mode & 0o777 == 0o700
    assert custody.join_key(paths[1:], tmp_path / "again") == key == Key.open(tmp_path / "again")
    with pytest.raises(OptionError, match="exists already"):
        custody.join_key(paths[1:], tmp_path / "again")
    with pytest.raises(OptionError, match="exists already"):
        custody.split_key(tmp_path / "key", tmp_path / "shares", 3, 2)


def test_a_share_that_was_miscopied(tmp_path):
    Key.open_or_make(tmp_path / "key")
    path = custody.split_key(tmp_path / "key", tmp_path / "shares", 3, 2)[0]
    whole = path.read_text()
    for i in range(0, len(whole) - 1, 7):
        path.write_text(whole[:i] + ("A" if whole[i] != "A" else "B") + whole[i + 1 :])
        with pytest.raises(OptionError, match="is not a share of a key, or it is damaged"):
            Share.open(path)
    path.write_text(whole)
    path.chmod(0o644)
    with pytest.raises(OptionError, match="Other users can read"):
        Share.open(path)


@pytest.mark.parametrize(("number", "threshold"), [(-1, 2), (0, 2), (256, 2), (1, 1), (1, 0), (1, -2), (1, 256)])
def test_a_share_that_cannot_be_is_refused(tmp_path, number, threshold):
    """Well copied, and forged: shifting a negative number to the right would never end."""
    key = Key.open_or_make(tmp_path / "key")
    Share(number, threshold, key.id, bytes(32)).save(tmp_path / "forged")
    with pytest.raises(OptionError, match="is not a share of a key, or it is damaged"):
        Share.open(tmp_path / "forged")
