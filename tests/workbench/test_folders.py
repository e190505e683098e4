"""Tables in several Parquet files, in a folder as Spark writes it: one table to every verb. And addresses stay whole."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmark.cli.main import main
from veilmark.errors import DataError
from veilmark.ledger.files import digests
from veilmark.ledger.releases import Release
from veilmark.study.study import Study
from veilmark.veil.ola import Ola
from veilmark.workbench.anonymize import written_columns
from veilmark.workbench.report import _copies

ROLES = {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"}


@pytest.fixture
def study():
    rng = np.random.default_rng(1)
    return Study.of(pa.table({"age": rng.integers(20, 60, 400), "ill": rng.choice(list("abc"), 400)}), ROLES)


def folder_of(table, path, parts=4):
    """The table in several files, each of which has few rows of each class."""
    path.mkdir()
    for i in range(parts):
        pq.write_table(table.take(np.arange(i, len(table), parts)), path / f"part-{i:05}.parquet")
    return path


@pytest.fixture
def release(study, tmp_path):
    """A release as one file and as a folder."""
    study.anonymize(Ola(k=5), tmp_path / "file.parquet", seed=1)
    return tmp_path / "file.parquet", folder_of(pq.read_table(tmp_path / "file.parquet"), tmp_path / "folder.parquet")


def test_verbs_take_a_folder_as_one_table(study, release):
    file, folder = release
    assert study.measure(data=folder).to_dict() == study.measure(data=file).to_dict()
    assert study.utility(folder).to_dict() == study.utility(file).to_dict()
    found, expected = (study.attack(of, seed=1, targets=50).to_dict() for of in (folder, file))
    assert found["attacks"] == expected["attacks"]


def test_a_report_names_all_files_of_a_folder(study, release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(study.data, "t.parquet")
    Study.of("t.parquet", ROLES).save("s.yaml")
    assert main(["report", "s.yaml", "folder.parquet", "--attacks", "none", "-o", "r.html"]) == 0
    page = (tmp_path / "r.html").read_text()
    assert all(part.name in page for part in release[1].iterdir())


def test_a_folder_that_is_no_table(study, tmp_path):
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(DataError, match="is a folder, not a table"):
        study.utility(tmp_path / "empty.parquet")


def test_every_part_must_have_the_columns(release):
    file, folder = release
    assert written_columns(folder) == written_columns(file) == ["age", "ill"]
    pq.write_table(pa.table({"ill": ["a"], "age": ["1"]}), folder / "part-9.parquet")
    assert written_columns(folder) == []


def published(folder, names):
    public = {"recipients": [{"name": name, "file": f"{name}.parquet"} for name in names]}
    public["parameters"] = {"models": [{"model": "k", "k": 5}]}
    return Release("r1", "published", "", public, str(folder), "", digests(folder), ())


def test_a_copy_in_a_folder_is_checked_as_a_whole(study, release, tmp_path):
    """Its parts have classes of fewer than k records; the copy has not."""
    copies = tmp_path / "copies"
    copies.mkdir()
    table = pq.read_table(release[0])
    pq.write_table(table, copies / "ada.parquet")
    for name in ("bob", "cyd", "dan"):
        folder_of(table, copies / f"{name}.parquet")
    book = published(copies, ["ada", "bob", "cyd", "dan"])
    (copies / "cyd.parquet" / "part-00002.parquet").unlink()
    pq.write_table(table.slice(0, 1), copies / "dan.parquet" / "part-00009.parquet")
    ada, bob, cyd, dan = _copies(study, copies, book)
    assert [c.recipient for c in (ada, bob, cyd, dan)] == ["ada", "bob", "cyd", "dan"]
    assert [c.status for c in (ada, bob, cyd, dan)] == ["as published", "as published", "changed", "changed"]
    assert (bob.records, bob.classes, bob.k) == (ada.records, ada.classes, ada.k)
    assert all(promise.kept for promise in bob.promises)


ADDRESS = "s3a://bucket/some folder/t.parquet"
VERBS = {
    "measure": ["measure", "s.yaml", "--data", ADDRESS],
    "score": ["score", "s.yaml", "--published", ADDRESS],
    "compare scores": ["score", "s.yaml", "--compare", ADDRESS],
    "breach": ["breach", "s.yaml", "--records", ADDRESS],
    "attack": ["attack", "s.yaml", ADDRESS],
    "utility": ["utility", "s.yaml", ADDRESS],
    "utility of other data": ["utility", "s.yaml", "t.parquet", "--data", ADDRESS],
    "apply": ["apply", "s.yaml", "r.json", "--data", ADDRESS, "-o", "o.csv"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_addresses_stay_whole(verb, study, tmp_path, monkeypatch, capsys):
    """With a slash less, as a path has it, Spark would look for another file."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(study.data, "t.parquet")
    weighted = {**ROLES, "ill": {"role": "sensitive", "weights": {"default": 0.5}}}
    named = Study.of("t.parquet", weighted)
    named.save("s.yaml")
    named.anonymize(Ola(k=2), recoding="r.json")
    assert main([*VERBS[verb], "--json"]) == 2
    told = capsys.readouterr()
    assert f"'{ADDRESS}' is a URL" in told.err
    assert told.out == "" or not json.loads(told.out)
