"""Class tables are the same on every engine: codes, the domains' text, counts, persons and wanderers."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.contract.helpers import opened, plain_cells, plain_fold, plain_persons, study_of
from strength import examples
from veilmark.tables.persons import Folding, fold

VALUES = st.sampled_from([None, "", " ", "a", "A", "b", "ä", "a\u0308", "0123", "123", "'", '"', "x\ny", "\\N", "😀"])
NUMBERS = st.one_of(st.none(), st.integers(-3, 3), st.just(1 << 60))
FLOATS = st.sampled_from([None, float("nan"), float("inf"), -0.0, 0.0, 0.1, 1e300, -1.5])


@st.composite
def tables(draw):
    """A few rows of persons, texts and numbers."""
    rows = draw(
        st.lists(st.tuples(st.sampled_from("pqr"), VALUES, NUMBERS, FLOATS, st.sampled_from("uvw")), min_size=1)
    )
    kinds = {"who": pa.string(), "text": pa.string(), "number": pa.int64(), "float": pa.float64(), "s": pa.string()}
    columns = [pa.array(of, kind) for of, kind in zip(zip(*rows, strict=True), kinds.values(), strict=True)]
    return pa.table(dict(zip(kinds, columns, strict=True)))


ROLES = {"text": "quasi", "number": "quasi", "float": "quasi", "s": "sensitive"}
few = settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(table=tables())
def test_group(case, duck, table):
    found, expected = (
        opened(
            study_of(of.load(table), ROLES), lambda source: plain_cells(source.group(["text", "number", "float", "s"]))
        )
        for of in (case, duck)
    )
    assert found == expected


@few
@given(table=tables())
def test_group_persons(case, duck, table):
    def ask(source):
        return plain_persons(source.group_persons(["text", "number", "float"], ["s"], "who"))

    found, expected = (opened(study_of(of.load(table), ROLES, "who"), ask) for of in (case, duck))
    assert found == expected


@few
@given(table=tables(), rule=st.sampled_from(["first", "mode", "latest"]))
def test_fold(case, duck, table, rule):
    def ask(source):
        folding = Folding(rule, "number" if rule == "latest" else None)
        return plain_fold(fold(source, "who", ["text", "float"], ["s", "number"], folding))

    found, expected = (opened(study_of(of.load(table), ROLES, "who"), ask) for of in (case, duck))
    assert found == expected
