"""Pseudonyms: HMAC as Python computes it, unlinkable between releases unless the key is kept."""

from __future__ import annotations

import hashlib
import hmac
import stat

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from veilmark.cli.main import main
from veilmark.errors import OptionError, OutputError, StudyError, VeilmarkWarning
from veilmark.study.study import Study
from veilmark.tables.pseudonyms import Pseudonyms, read_key, write_key
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola

SOURCE = pa.table(
    {
        "id": [7, 7, 8, 9, None, 8],
        "name": ["Zoë", "Zoë", "O'Hara", "", None, "O'Hara"],
        "sex": ["F", "F", "M", "M", "F", "M"],
    }
)
ROLES = {
    "id": {"role": "direct", "keep": "pseudonym"},
    "name": {"role": "direct", "keep": "pseudonym"},
    "sex": "quasi",
}
STUDY = Study.of(SOURCE, ROLES)


@pytest.mark.parametrize("method", [Ola(k=3), Mondrian(k=3)])
def test_the_engine_computes_hmac(tmp_path, method):
    key = tmp_path / "key"
    got = STUDY.anonymize(method, pseudonym_key=key, order="keep").table()
    secret = bytes.fromhex(key.read_text().strip())

    def want(value):
        return hmac.new(secret, str(value).encode(), hashlib.sha256).digest()[:16].hex() if value else None

    assert got.column_names == ["id", "name", "sex"]
    assert got["id"].to_pylist() == [want(v) for v in SOURCE["id"].to_pylist()]
    assert got["name"].to_pylist() == [want(v) for v in SOURCE["name"].to_pylist()]
    assert Pseudonyms(("id",), secret).of("7") == want(7)


def test_the_same_key_gives_the_same_pseudonyms_and_no_key_others(tmp_path):
    first, second = (STUDY.anonymize(Ola(k=3), pseudonym_key=tmp_path / "key", seed=4).table() for _ in range(2))
    third, fourth = (STUDY.anonymize(Ola(k=3), seed=4).table() for _ in range(2))
    assert first.equals(second)
    assert len({t["id"][0].as_py() for t in (first, third, fourth)}) == 3


def test_a_key_is_its_owner_s_alone(tmp_path):
    STUDY.anonymize(Ola(k=3), tmp_path / "o.csv", pseudonym_key=tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    key = read_key(tmp_path / "key")
    assert len(key) == 32
    assert key.hex() not in repr(Pseudonyms(("id",), key)) + repr(Pseudonyms(("id",), key).key[:0])
    with pytest.raises(OutputError, match="cannot be written"):
        write_key(tmp_path / "key", key)


def test_keys_that_are_none(tmp_path):
    (tmp_path / "key").write_text("secret\n")
    with pytest.raises(OptionError, match="64 hexadecimal digits"):
        STUDY.anonymize(Ola(k=3), tmp_path / "o.csv", pseudonym_key=tmp_path / "key")
    with pytest.raises(OptionError, match="no such folder"):
        STUDY.anonymize(Ola(k=3), tmp_path / "o.csv", pseudonym_key=tmp_path / "none" / "key")
    plain = Study.of(SOURCE, {"id": "direct", "name": "direct", "sex": "quasi"})
    with pytest.raises(OptionError, match="keep: pseudonym"):
        plain.anonymize(Ola(k=3), pseudonym_key=tmp_path / "key")
    assert plain.anonymize(Ola(k=3)).table().column_names == ["sex"]
    assert sorted(f.name for f in tmp_path.iterdir()) == ["key"]


def test_no_key_is_left_behind_when_there_is_no_release(tmp_path):
    with pytest.raises(OptionError, match="cannot be reached"):
        STUDY.anonymize(Ola(k=7), tmp_path / "o.csv", pseudonym_key=tmp_path / "key")
    assert not list(tmp_path.iterdir())


def test_the_study_says_what_is_kept(tmp_path):
    for role in ("quasi", "sensitive", "other"):
        with pytest.raises(StudyError, match="needs the role direct"):
            Study.of(SOURCE, {"id": {"role": role, "keep": "pseudonym"}})
    with pytest.raises(StudyError, match="keep"):
        Study.of(SOURCE, {"id": {"role": "direct", "keep": "initials"}})
    Study.of("d.csv", ROLES).save(tmp_path / "s.yaml")
    assert Study.open(tmp_path / "s.yaml").pseudonyms == ["id", "name"]


def visits(sexes):
    return pa.table({"id": ["a", "a", "b", "c", "d"], "sex": sexes})


PERSONS = {"id": {"role": "direct", "keep": "pseudonym"}, "sex": "quasi"}


def test_the_person_column_may_be_a_pseudonym():
    got = Study.of(visits(["F", "F", "F", "M", "M"]), PERSONS, person="id").anonymize(Ola(k=2), order="keep")
    ids = got.table()["id"].to_pylist()
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4


def test_a_pseudonym_that_links_classes_is_told():
    study = Study.of(visits(["F", "M", "F", "M", "M"]), PERSONS, person="id")
    with pytest.warns(VeilmarkWarning, match="1 persons have records in several classes"):
        study.anonymize(Ola(k=2))


def test_the_command_keeps_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(SOURCE, "d.csv")
    Study.of("d.csv", ROLES).save("study.yaml")
    command = ["anonymize", "study.yaml", "--k", "3", "--pseudonym-key", "key", "--seed", "4", "-o"]
    assert main([*command, "1.parquet"]) == main([*command, "2.parquet"]) == 0
    first, second = pq.read_table("1.parquet"), pq.read_table("2.parquet")
    assert first.equals(second)
    assert first["id"].null_count == 1
