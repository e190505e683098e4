"""Spark, from end to end: large releases as folders, and OLA from the lowest levels whose classes the driver can hold."""

from __future__ import annotations

import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

from engines.test_spark import PEOPLE, study_of
from veilmark.engines.sources import SparkFiles
from veilmark.errors import VeilmarkWarning
from veilmark.veil.ola import Ola


@pytest.mark.usefixtures("session")
def test_a_large_release_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("veilmark.engines.spark_table.ONE_FILE_ROWS", 100)
    pq.write_table(PEOPLE, tmp_path / "p.parquet", row_group_size=50)
    (tmp_path / "out").mkdir()
    made = study_of(SparkFiles(str(tmp_path / "p.parquet"))).anonymize(Ola(k=4), tmp_path / "out" / "r.parquet")
    plain = study_of(PEOPLE).anonymize(Ola(k=4))
    assert (made.records, made.k, made.plan.loss) == (plain.records, plain.k, plain.plan.loss)
    found, wanted = (
        Counter(map(str, table.to_pylist())) for table in (pq.read_table(tmp_path / "out" / "r.parquet"), plain.table())
    )
    assert found == wanted
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["r.parquet"]
    assert all(f.suffix == ".parquet" for f in (tmp_path / "out" / "r.parquet").iterdir())


@pytest.mark.usefixtures("session")
def test_all_losses_are_those_of_ola_with_these_least_levels(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    study = study_of(SparkFiles(str(tmp_path / "p.parquet"), most_classes=60))
    with pytest.warns(VeilmarkWarning, match="OLA starts at") as said:
        found = study.anonymize(Ola(k=4, suppression=0.1, loss="entropy")).to_dict()
    [warned] = [str(w.message) for w in said if w.category is VeilmarkWarning]
    low = {c: int(n) for c, n in re.findall(r"(\w+) at level (\d+)", warned)}
    levels = {c: (low.get(c, 0), height) for c, height in {"zip": 3, "age": 4, "sex": 1}.items()}
    wanted = study_of(PEOPLE).anonymize(Ola(k=4, suppression=0.1, loss="entropy", levels=levels)).to_dict()
    for name in ("levels", "suppressed", "classes", "k"):
        assert found[name] == wanted[name]
    assert found["loss"] == pytest.approx(wanted["loss"])
    assert found["loss_before"] == pytest.approx(wanted["loss_before"])
