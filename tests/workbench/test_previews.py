"""A preview is what the release at those levels would be."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark.errors import OptionError
from veilmark.privacy.models import DistinctL, KAnonymity, KMap
from veilmark.study.study import Study
from veilmark.veil.anonymize import Microaggregation
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench.anonymize import anonymize
from veilmark.workbench.preview import Explorer, view_marginals
from veilmark.workbench.utility import view_utility

ATTRIBUTES = {
    "name": "direct",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
    "sex": "quasi",
    "illness": "sensitive",
}
ROWS = st.lists(
    st.tuples(st.integers(20, 39), st.sampled_from(["F", "M", None]), st.sampled_from(["flu", "cold", "HIV"])),
    min_size=12,
    max_size=60,
)


def table(rows):
    ages, sexes, illnesses = zip(*rows, strict=True)
    names = [f"person {i}" for i in range(len(rows))]
    return pa.table({"name": names, "age": ages, "sex": sexes, "illness": illnesses, "extra": [1] * len(rows)})


def some(rows=60):
    people = [(20 + i % 17, "FM"[i % 2], ("flu", "cold", "HIV")[i % 3]) for i in range(rows)]
    return Study.of(table(people), ATTRIBUTES)


@settings(max_examples=examples(8), phases=[Phase.generate])
@given(ROWS, st.integers(0, 3), st.integers(0, 1), st.integers(1, 4), st.floats(0, 1))
def test_a_preview_is_the_release_at_these_levels(rows, age, sex, k, limit):
    study = Study.of(table(rows), ATTRIBUTES)
    models = [KAnonymity(k), DistinctL("illness", 2)]
    found = Explorer.open(study, models, Ola(limit, "gcp")).at([age, sex])
    fixed = Ola(1.0, "gcp", levels={"age": age, "sex": sex})
    assert found.passes == (found.suppressed <= limit * len(rows) + 1e-9)
    if found.k is None:
        assert found.suppressed == len(rows)
        assert len(found.rows) == 0
        return
    made = anonymize(study, models, method=fixed, order="keep")
    assert found.levels == made.plan.recoding.levels
    assert (found.suppressed, found.k, found.classes) == (made.plan.suppressed, made.k, made.verified.classes)
    assert found.loss == made.plan.loss
    assert found.by_attribute == made.plan.by_attribute
    assert found.rows.equals(made.table().slice(0, 10))


@settings(max_examples=examples(8), phases=[Phase.generate])
@given(ROWS, st.sampled_from([Ola(1.0), Mondrian(), Mondrian(relaxed=True)]))
def test_marginals_are_those_of_the_written_release(rows, method):
    study = Study.of(table(rows), ATTRIBUTES)
    try:
        made = anonymize(study, [KAnonymity(3)], method=method)
    except OptionError:
        return
    mine = view_marginals(study, made.plan.recoding)
    theirs = view_utility(study, made.table(), target="illness")
    assert mine.records == theirs.records
    for name, of in mine.marginals.items():
        other = theirs.marginals[name]
        assert of.values == other.values
        assert of.total_variation == pytest.approx(other.total_variation)
        assert [c.after for c in of.shares.values()] == pytest.approx([c.after for c in other.shares.values()])


def test_means_are_read_too():
    numbers = Study.of(pa.table({"age": list(range(20, 50)), "pay": [1, 2, 3] * 10}), {"age": "quasi", "pay": "quasi"})
    made = anonymize(numbers, [KAnonymity(3)], method=Microaggregation())
    assert view_marginals(numbers, made.plan.recoding).marginals["age"].unread == 0


def test_persons_and_their_limit():
    """Suppression that counts persons: everybody who loses a record."""
    rows = [(i % 12, 20 + i % 6, "FM"[i % 2]) for i in range(24)] + [(0, 39, "M")]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    study = Study.of(pa.table(columns, ["id", "age", "sex"]), {"age": "quasi", "sex": "quasi"}, person="id")
    models = [KAnonymity(2)]
    found = Explorer.open(study, models, Ola(1 / 12, unit="persons")).at([0, 0])
    assert (found.suppressed, found.passes) == (1, True)
    assert not Explorer.open(study, models, Ola(0.05, unit="persons")).at([0, 0]).passes
    assert Explorer.open(study, models, Ola(0.05, unit="records")).at([0, 0]).passes


def test_a_population_is_linked_once():
    people = table([(20 + i % 20, "FM"[i % 2], "flu") for i in range(200)])
    study, models = some(), [KMap(15)]
    explorer = Explorer.open(study, models, Ola(1.0), people)
    for node in ((0, 0), (1, 0), (3, 1)):
        found = explorer.at(node)
        fixed = Ola(1.0, levels=dict(zip(("age", "sex"), node, strict=True)))
        if found.k is not None:
            made = anonymize(study, models, method=fixed, population=people, order="keep")
            assert (found.suppressed, found.k) == (made.plan.suppressed, made.k)
            assert found.rows.equals(made.table().slice(0, 10))


def test_pseudonyms_are_shown_and_identifiers_are_not():
    study = Study.of(some().data, ATTRIBUTES | {"name": {"role": "direct", "keep": "pseudonym"}})
    rows = Explorer.open(study, [KAnonymity(2)]).at([2, 0]).to_dict()["rows"]
    assert len(rows) == 10
    assert all(len(row[0]) == 32 and "person" not in row[0] for row in rows)
    assert "name" not in Explorer.open(some(), [KAnonymity(2)]).at([2, 0]).rows.column_names


@pytest.mark.parametrize("levels", [[0], [0, 0, 0], [9, 0], [0, -1]])
def test_levels_that_are_not_there(levels):
    with pytest.raises(OptionError, match=r"level"):
        Explorer.open(some(), [KAnonymity(2)]).at(levels)


def test_it_has_a_chart():
    spec = Explorer.open(some(), [KAnonymity(2)]).at([1, 0]).chart().to_dict()
    assert "Marginals" in str(spec["title"])
