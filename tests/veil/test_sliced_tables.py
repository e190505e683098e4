"""A release in several tables: fingerprints as text, the folder whole or not at all."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.errors import DataError, OptionError
from veilmark.tables.domain import Domain
from veilmark.tables.persons import Fingerprints
from veilmark.veil.sliced import Sliced, fingerprint_texts, parse_fingerprints, shuffled

LABELS = st.one_of(st.none(), st.text(st.sampled_from('ab|\\,";\nß '), min_size=1, max_size=4))


def fingerprints(persons: list[list[str | None]]) -> Fingerprints:
    domain = Domain.of(pa.array([label for of in persons for label in of], pa.string()).unique())
    codes = [sorted(domain.codes_of(pa.array(of, pa.string())).tolist()) for of in persons]
    starts = np.cumsum([0, *map(len, codes)])
    return Fingerprints(domain, starts, np.array([c for of in codes for c in of], dtype=np.int32))


def parsed(texts: pa.Array) -> list[list[str | None]]:
    starts, labels = parse_fingerprints(texts)
    return [labels.to_pylist()[a:b] for a, b in pairwise(starts.tolist())]


@given(st.lists(st.lists(LABELS, min_size=1, max_size=5), min_size=1, max_size=6))
def test_texts_are_read_back_as_they_were(persons):
    of = fingerprints(persons)
    texts = fingerprint_texts(of)
    written = [[of.domain.text[c].as_py() for c in of.values[a:b]] for a, b in pairwise(of.starts.tolist())]
    for person, labels, text in zip(parsed(texts), written, texts.to_pylist(), strict=True):
        if set(labels) == {None}:
            assert (text is None) == (len(labels) == 1)
        assert person == labels
    assert parsed(pa.chunked_array([texts]).dictionary_encode()) == parsed(texts)
    assert parsed(texts.slice(1)) == parsed(texts)[1:]


def test_how_it_is_written():
    texts = fingerprint_texts(fingerprints([["D", "B", "D"], ["a|b", "c\\"], [None], [None, "B"]]))
    assert texts.to_pylist() == ["B|D|D", "a\\|b|c\\\\", None, "B|"]
    single = fingerprint_texts(fingerprints([["x|y"], [None]]))
    assert single.to_pylist() == ["x\\|y", None]


def release(linked: bool = True) -> Sliced:
    links = {"gid_1": pa.array([1, 2, 1, 2])} if linked else {}
    quasi = pa.table({"age": pa.array([1.5, 1.5, None, None]), "zip": pa.array(["01", "01", "a,b", None]), **links})
    codes = pa.array(["B|D", "x\ny", None, 'a"b'])
    return Sliced(
        quasi, (pa.table({"gid": pa.array([1, 1, 2, 2]), "code": codes}),), (("code",),), {"k": 2}, {"ncp": 0.5}
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("linked", [True, False])
def test_what_is_written_is_read_back(tmp_path, form, linked):
    made = release(linked)
    made.write(tmp_path / "out", form)
    assert sorted(os.listdir(tmp_path)) == ["out"]
    assert sorted(os.listdir(tmp_path / "out")) == [f"qi.{form}", f"sensitive_1.{form}"]
    found = Sliced.open(tmp_path / "out")
    assert (found.linked, len(found), found.groups) == (linked, 4, (("code",),))
    assert found.sensitive[0].to_pylist() == made.sensitive[0].to_pylist()
    ages = found.quasi["age"].to_pylist()
    assert [age if age is None else float(age) for age in ages] == [1.5, 1.5, None, None]
    assert found.quasi["zip"].to_pylist() == ["01", "01", "a,b", None]
    if linked:
        assert found.quasi["gid_1"].to_pylist() == [1, 2, 1, 2]


def test_a_release_replaces_a_release_and_nothing_else(tmp_path):
    (tmp_path / "empty").mkdir()
    release().write(tmp_path / "empty")
    release().write(tmp_path / "empty", "parquet")
    assert sorted(os.listdir(tmp_path / "empty")) == ["qi.parquet", "sensitive_1.parquet"]
    (tmp_path / "empty" / "mine.txt").write_text("mine")
    with pytest.raises(OptionError, match=r"contains other files, such as 'mine.txt'"):
        release().write(tmp_path / "empty")
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="is a file"):
        release().write(tmp_path / "file")
    with pytest.raises(OptionError, match="there is no folder"):
        release().write(tmp_path / "not" / "there")
    assert sorted(os.listdir(tmp_path)) == ["empty", "file"]


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    release().write(tmp_path / "out")
    before = (tmp_path / "out" / "qi.csv").read_bytes()
    intervals = pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval())
    broken = Sliced(release().quasi, (pa.table({"gid": pa.array([1, 1, 2, 2]), "code": intervals}),), (("code",),))
    with pytest.raises(pa.ArrowNotImplementedError):
        broken.write(tmp_path / "out", "parquet")
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out" / "qi.csv").read_bytes() == before


def test_other_folders_are_no_release(tmp_path):
    with pytest.raises(DataError, match="There is no folder"):
        Sliced.open(tmp_path / "none")
    with pytest.raises(DataError, match="not a release in several tables"):
        Sliced.open(tmp_path)
    release().write(tmp_path / "out")
    (tmp_path / "out" / "sensitive_1.csv").write_text("code\nB\n")
    with pytest.raises(DataError, match="must begin with the column 'gid'"):
        Sliced.open(tmp_path / "out")
    (tmp_path / "out" / "sensitive_1.csv").write_text("gid,code\none,B\n")
    with pytest.raises(DataError, match="cannot be read"):
        Sliced.open(tmp_path / "out")


def test_an_attribute_may_not_be_called_as_a_gid():
    column = pa.array([1])
    twice = pa.Table.from_arrays([column, column], ["gid_1", "gid_1"])
    with pytest.raises(OptionError, match="An attribute has the name 'gid_1'"):
        Sliced(twice, (), ())


def test_shuffled_has_the_same_rows_in_another_order():
    table = pa.table({"x": pa.array(range(100)), "y": pa.array([str(i) for i in range(100)])})
    mixed = shuffled(table, np.random.default_rng(1))
    assert mixed != table
    assert mixed.sort_by("x") == table


def test_facts_and_losses_are_told():
    told = {"k": 2, "persons": 4, "groups": [["code"]], "loss": {"ncp": 0.5}, "columns_left_out": []}
    assert release().to_dict() == told
    assert "4 persons; code; linked" in repr(release())
