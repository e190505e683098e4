"""How far columns were generalized is told with an example, on the screen and from a file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strength import examples
from veilmark import Ola, Study
from veilmark.cli.main import main
from veilmark.hierarchy import parse_spec, resolve
from veilmark.tables.domain import Domain
from veilmark.veil.generalized import Generalized, generalized_by_labels


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Generalized(4, 5, "3****"), "level 4 of 5, e.g. 3****"),
        (Generalized(5, 5, "*****"), "level 5 of 5, e.g. *****"),
        (Generalized(0, 5, "33101"), "level 0 of 5, as in the source"),
        (Generalized(None, 2, "20-34"), "ranges or sets, e.g. 20-34"),
        (Generalized(2, 3), "level 2 of 3"),
    ],
)
def test_in_words(of, text):
    assert str(of) == text


@settings(max_examples=examples(40))
@given(
    zips=st.lists(st.sampled_from(["33101", "33102", "94110", "13120"]), min_size=1, max_size=40),
    level=st.integers(0, 5),
)
def test_the_level_of_a_file_and_its_commonest_label(zips, level):
    domain = Domain.of(pa.array(sorted(set(zips))), "zip")
    levels = resolve(parse_spec({"mask": 5}), domain, "zip")
    values = np.array([zips.count(z) for z in domain.text.to_pylist()])
    published = [z[: 5 - level] + "*" * level for z in zips]
    labels = sorted(set(published))
    counts = np.array([published.count(label) for label in labels])
    found = generalized_by_labels(levels, values, pa.array(labels), counts, 3)
    assert (found.level, found.height) == (level, 5)
    assert (found.after is None) == (max(counts) < 3)
    if found.after is not None:
        assert published.count(found.after) == max(counts)
    if found.before is not None:
        assert zips.count(found.before) >= 3
        assert found.before[: 5 - level] + "*" * level == found.after


def test_labels_of_no_level():
    domain = Domain.of(pa.array(["1", "2", "3"]), "age")
    found = generalized_by_labels(
        resolve(None, domain, "age"), np.array([9, 9, 9]), pa.array(["1-2", "3"]), np.array([18, 9]), 5
    )
    assert (found.level, found.after, found.before) == (None, "1-2", None)


def test_on_the_screen_and_in_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("zip,sex\n" + "33101,F\n33102,F\n33103,F\n94110,F\n" * 2)
    study = Study.of("d.csv", {"zip": {"role": "quasi", "hierarchy": {"mask": 5}}, "sex": "quasi"})
    study.save("study.yaml")
    made = study.anonymize(Ola(k=6, suppression=0.25)).to_dict()["generalized"]
    assert made == {
        "zip": {"level": 1, "height": 5, "example": "3310*"},
        "sex": {"level": 0, "height": 1, "example": "F"},
    }
    assert main(["anonymize", "study.yaml", "--k", "6", "--suppress", "25%", "-o", "out.csv"]) == 0
    out = capsys.readouterr().out
    assert "zip: level 1 of 5, e.g. 3310*\nsex: level 0 of 1, as in the source" in out


def test_an_example_is_never_blank_where_most_values_are_missing():
    domain = Domain.of(pa.array(["a", "b", None]))
    levels = resolve(None, domain, "x")
    counts = np.zeros(len(domain))
    counts[domain.missing] = 40
    found = generalized_by_labels(levels, counts, pa.array(["*"]), np.array([40]), 10)
    assert (found.after, found.before) == ("*", "(missing)")
