"""Recoded rows, written: the same as row by row, whatever the batches, and byte by byte the same each time."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.cli.main import main
from veilmark.engines import writing
from veilmark.engines.recoder import Recoder
from veilmark.engines.writing import even, write_rows
from veilmark.errors import DataError, OptionError
from veilmark.study.study import Settings, Study
from veilmark.tables.cells import BatchCoder
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import Recoding
from veilmark.veil.anonymize import Microaggregation
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola

VALUES = ["a", "b", "c", None]
DOMAIN = Domain.of(pa.array(VALUES))
NUMBERS = Domain.of(pa.array([1, 2, 3, 4]))
LABELS = (pa.array(["x", "y", None]), pa.array(["1-2", "3-4"]))
CODES = (np.array([0, 0, 1, 2], np.int32), np.array([0, 0, 1, 1], np.int32))
SUPPRESSED = np.array([[0, 2], [1, 0]], np.int32)
ROW = st.tuples(st.sampled_from(VALUES), st.integers(1, 4), st.floats(allow_nan=True))


def recoding(local):
    """Full-domain, or the same classes with labels of their own, those kept that are suppressed there."""
    labels = (pa.array(["p", None]), pa.array([1.5, 2.5])) if local else None
    return Recoding(("q", "r"), (DOMAIN, NUMBERS), CODES, LABELS, SUPPRESSED, labels)


def by_hand(row, local):
    value, number, other = row
    group = (CODES[0][DOMAIN.code_of(value)], CODES[1][number - 1])
    place = next((i for i, c in enumerate(SUPPRESSED.T.tolist()) if tuple(c) == group), None)
    other = None if other != other else other
    if local:
        return None if place is None else ([1.5, 2.5][place], other, ["p", None][place])
    return None if place is not None else (LABELS[1][group[1]].as_py(), other, LABELS[0][group[0]].as_py())


@pytest.mark.parametrize("local", [False, True])
@given(rows=st.lists(ROW, min_size=1, max_size=30), size=st.integers(1, 9), dictionary=st.booleans())
def test_rows_are_recoded_as_by_hand(tmp_path_factory, local, rows, size, dictionary):
    q, r, o = (list(column) for column in zip(*rows, strict=True))
    texts = pa.array(q, pa.string())
    table = pa.table({"q": texts.dictionary_encode() if dictionary else texts, "r": r, "o": pa.array(o, pa.float64())})
    path = tmp_path_factory.getbasetemp() / "recoded.parquet"
    recoder = Recoder(recoding(local), ["r", "o", "q"])
    write_rows(recoder.batches(table.to_batches(max_chunksize=size)), path, labels=recoder.labels)
    expected = [kept for row in rows if (kept := by_hand(row, local)) is not None]
    assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == expected


def test_a_value_that_was_not_there_is_an_error():
    for changed in (["a", "new"], ["a", None]):
        coder = BatchCoder(Domain.of(pa.array(["a", "b"])), 1, np.int32)
        with pytest.raises(DataError, match="changed while it was being read"):
            coder.shares(pa.array(changed))


@pytest.mark.parametrize("values", [[0.0, -0.0, float("nan"), None, 1e300, 2.5], [None, "", "b", "a"], [True, None]])
def test_values_are_found_as_their_texts_are(values):
    array = pa.array(values)
    domain = Domain.of(array.unique())
    assert BatchCoder(domain, 1, np.int32)._codes(array).tolist() == domain.codes_of(array).tolist()


def test_a_dictionary_names_no_value_of_a_record_left_out(tmp_path):
    """Neither a label nor another text of suppressed records is anywhere in the file."""
    table = pa.table({"q": ["common"] * 9 + ["hidden label"], "o": ["seen"] * 9 + ["hidden text"]})
    pq.write_table(table, tmp_path / "s.parquet")
    roles = {"q": "quasi", "o": "other"}
    for suffix in ("parquet", "csv"):
        out = tmp_path / f"o.{suffix}"
        method = Ola(k=2, suppression=0.2, levels={"q": 0})
        for order in ("shuffle", "keep"):
            Study.of(str(tmp_path / "s.parquet"), roles).anonymize(method, out, order=order)
            assert b"seen" in out.read_bytes()
            assert b"hidden" not in out.read_bytes()


@given(st.lists(st.integers(0, 7), max_size=8), st.integers(1, 5))
def test_batches_are_made_even(sizes, rows):
    given_, at = [], 0
    for size in sizes:
        given_.append(pa.record_batch({"n": np.arange(at, at + size)}))
        at += size
    made = list(even(given_, rows))
    assert [v for batch in made for v in batch.column(0).to_pylist()] == list(range(at))
    assert all(batch.num_rows == rows for batch in made[:-1])


# Files of releases.

TABLE = pa.table(
    {
        "id": np.arange(6_000),
        "zip": np.random.default_rng(1).integers(10_000, 10_100, 6_000).astype(str),
        "sex": np.random.default_rng(2).choice(["F", "M"], 6_000),
    }
)
ROLES = {"zip": {"role": "quasi", "hierarchy": {"mask": 5}}, "sex": "quasi", "id": "other"}
METHODS = {"ola": Ola(k=40, suppression=0.2), "mondrian": Mondrian(k=5)}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same rows as files and as a frame; Parquet in row groups that are smaller than what an engine reads at once."""
    folder = tmp_path_factory.mktemp("sources")
    pq.write_table(TABLE, folder / "small.parquet", row_group_size=300)
    pq.write_table(TABLE, folder / "whole.parquet")
    pa_csv.write_csv(TABLE, folder / "t.csv")
    for i in range(4):
        pq.write_table(TABLE.slice(1_500 * i, 1_500), folder / f"part{i}.parquet", row_group_size=400)
    names = ["small.parquet", "whole.parquet", "t.csv", "part*.parquet"]
    return {**{name: str(folder / name) for name in names}, "frame": TABLE}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("source", ["small.parquet", "whole.parquet", "t.csv", "part*.parquet", "frame"])
def test_any_number_of_threads_writes_the_same_file(sources, tmp_path, monkeypatch, source, suffix, method):
    monkeypatch.setattr(writing, "GROUP_ROWS", 1_000)
    out, files = tmp_path / f"o.{suffix}", {}
    for order in ("keep", "shuffle"):
        digests = set()
        for threads in (1, 2, 2, 3):
            study = Study.of(sources[source], ROLES, settings=Settings(threads=threads))
            study.anonymize(METHODS[method], out, order=order, seed=11)
            digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
        assert len(digests) == 1
        table = pq.read_table(out) if suffix == "parquet" else pa_csv.read_csv(out)
        files[order] = np.array(table["id"].to_pylist(), dtype=np.int64)
    assert (np.diff(files["keep"]) > 0).all()
    assert files["shuffle"].tolist() != files["keep"].tolist()
    assert sorted(files["shuffle"].tolist()) == files["keep"].tolist()


def test_rows_are_shuffled_unless_asked_otherwise(sources):
    study = Study.of(TABLE, ROLES)
    first, second = (study.anonymize(Mondrian(k=5)).table()["id"].to_numpy() for _ in range(2))
    assert first.tolist() != second.tolist()
    for order in (first, second):
        assert sorted(order.tolist()) == list(range(6_000))
        steps = np.diff(order)
        assert ((steps > 0) & (steps <= 3)).mean() < 0.01
    again = study.anonymize(Mondrian(k=5), seed=1), study.anonymize(Mondrian(k=5), seed=2)
    assert again[0].table()["id"].to_pylist() != again[1].table()["id"].to_pylist()


def test_means_and_applied_rules_are_shuffled_too(tmp_path):
    ages = Study.of(pa.table({"age": np.arange(500) % 80, "id": np.arange(500)}), {"age": "quasi", "id": "other"})
    made = ages.anonymize(Microaggregation(k=5), recoding=tmp_path / "r.json", seed=1).table()
    assert made["id"].to_pylist() != list(range(500))
    assert ages.apply(tmp_path / "r.json", seed=1).table().equals(made)
    assert ages.apply(tmp_path / "r.json").table()["id"].to_pylist() != made["id"].to_pylist()
    assert ages.apply(tmp_path / "r.json", order="keep").table()["id"].to_pylist() == list(range(500))


def test_orders_and_seeds_that_are_none(capsys, tmp_path, monkeypatch):
    study = Study.of(TABLE, ROLES)
    with pytest.raises(OptionError, match="must be 'shuffle' or 'keep', not 'sorted'"):
        study.anonymize(Ola(k=2), order="sorted")
    with pytest.raises(OptionError, match="The seed must be 0 or more, not -1"):
        study.anonymize(Ola(k=2), seed=-1)
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(TABLE, "t.csv")
    Study.of("t.csv", ROLES).save("s.yaml")
    assert main(["anonymize", "s.yaml", "--order", "sorted", "-o", "o.csv"]) == 2
    assert main(["anonymize", "s.yaml", "--seed", "-1", "-o", "o.csv"]) == 2
    assert main(["anonymize", "s.yaml", "--method", "fslip", "--order", "keep", "-o", "o"]) == 2
    assert "--order does not belong to --method fslip" in capsys.readouterr().err


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(TABLE, "t.csv")
    Study.of("t.csv", ROLES).save("s.yaml")
    options = {"keep.csv": ["--order", "keep"], "one.csv": ["--seed", "8"], "two.csv": ["--seed", "8"], "free.csv": []}
    for out, given_ in options.items():
        assert main(["anonymize", "s.yaml", "--k", "5", "--recoding", "r.json", *given_, "-o", out, "--json"]) == 0
        assert main(["apply", "s.yaml", "r.json", *given_, "-o", f"again-{out}", "--json"]) == 0
    texts = {out: (tmp_path / out).read_bytes() for out in options}
    assert texts["one.csv"] == texts["two.csv"] == (tmp_path / "again-one.csv").read_bytes()
    assert texts["keep.csv"] == (tmp_path / "again-keep.csv").read_bytes()
    assert len(set(texts.values())) == 3
    assert len({tuple(sorted(text.splitlines())) for text in texts.values()}) == 1
