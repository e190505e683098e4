"""Key files are private and whole, subkeys independent, and what is sealed opens only unchanged."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.helpers import all_end_well, forked
from veilmark.errors import OptionError
from veilmark.ledger.keys import HEADER, Key, SealError, seal, unseal

KEY = bytes(range(32))
OPEN_MODES = [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o777]


def hkdf(secret, info, size):
    """RFC 5869 with SHA-256 and no salt, as it is written there."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    block, output, i = b"", b"", 1
    while len(output) < size:
        block = hmac.digest(extracted, block + info + bytes([i]), "sha256")
        output, i = output + block, i + 1
    return output[:size]


def test_the_oracle_on_the_rfc_s_third_case():
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    assert hkdf(b"\x0b" * 22, b"", 42).hex() == expected


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path, mask):
    before = os.umask(mask)
    try:
        key = Key.open_or_make(tmp_path / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert Key.open_or_make(tmp_path / "key") == Key.open(tmp_path / "key") == key
    assert len(key.secret) == 32
    assert [p.name for p in tmp_path.iterdir()] == ["key"]


def test_two_keys_differ(key, other_key):
    assert key.secret != other_key.secret
    assert key.id != other_key.id


def test_processes_that_make_a_key_at_once_agree(tmp_path):
    def work(i):
        (tmp_path / f"id{i}").write_text(Key.open_or_make(tmp_path / "key").id)

    assert all_end_well([forked(work, i) for i in range(8)])
    assert {(tmp_path / f"id{i}").read_text() for i in range(8)} == {Key.open(tmp_path / "key").id}


@pytest.mark.parametrize("mode", OPEN_MODES)
def test_a_key_open_to_others_is_refused(tmp_path, key, mode):
    (tmp_path / "key").chmod(mode)
    with pytest.raises(OptionError, match=f"Other users can read the key file .*mode {mode:04o}.*chmod 600"):
        Key.open(tmp_path / "key")


@given(st.binary(max_size=80) | st.binary(max_size=60).map(lambda b: HEADER.encode() + b))
def test_something_else_is_no_key_and_is_not_shown(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("keys") / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(OptionError) as caught:
        Key.open(path)
    assert str(caught.value).startswith(f"'{path}' is not a key file of veilmark, or it is damaged.")
    assert caught.value.__cause__ is None


def test_a_key_that_was_cut_short_is_refused(tmp_path, key):
    whole = (tmp_path / "key").read_bytes()
    for length in range(len(whole) - 1):
        (tmp_path / "key").write_bytes(whole[:length])
        with pytest.raises(OptionError, match="not a key file"):
            Key.open(tmp_path / "key")


def test_a_key_that_is_not_there(tmp_path):
    with pytest.raises(OptionError, match="There is no key file"):
        Key.open(tmp_path / "key")
    with pytest.raises(OptionError, match="there is no folder"):
        Key.open_or_make(tmp_path / "nowhere" / "key")
    with pytest.raises(OptionError, match="cannot be read"):
        Key.open(tmp_path)


def test_subkeys_are_those_of_the_rfc():
    assert Key(KEY).subkey("decoys") == hkdf(KEY, b"veilmark/1/decoys", 32)
    assert Key(KEY).subkey("bits", 100) == hkdf(KEY, b"veilmark/1/bits", 100)
    assert Key(KEY).id == hkdf(KEY, b"veilmark/1/id", 8).hex()


def test_a_key_does_not_show_itself(key):
    assert repr(key) == str(key) == f"Key({key.id})"
    assert key.id not in (key.secret.hex(), hashlib.sha256(key.secret).hexdigest()[:16])


@given(st.binary(), st.binary())
def test_what_is_sealed_opens(content, about):
    assert unseal(KEY, seal(KEY, content, about), about) == content


@given(st.binary(max_size=50), st.binary(max_size=20), st.data())
def test_what_was_changed_does_not_open(content, about, data):
    sealed = bytearray(seal(KEY, content, about))
    sealed[data.draw(st.integers(0, len(sealed) - 1))] ^= data.draw(st.integers(1, 255))
    whole = seal(KEY, content, about)
    changed = [
        (KEY, bytes(sealed), about),
        (KEY, whole, about + b"x"),
        (KEY[::-1], whole, about),
        (KEY, whole[: data.draw(st.integers(0, len(whole) - 1))], about),
    ]
    for arguments in changed:
        with pytest.raises(SealError):
            unseal(*arguments)
