from __future__ import annotations

import pyarrow as pa
import pytest

from veilmark.errors import VeilmarkWarning, WeightsError
from veilmark.score.weights import read_weights
from veilmark.tables.domain import Domain


def weights_of(given, values, folder):
    return read_weights("d", given, folder).of(Domain.of(pa.array(values))).tolist()


def test_direct_weights_with_default_and_missing(tmp_path):
    given = {"HIV": 0.9, "": 0.5, "default": 0.1}
    assert weights_of(given, ["Flu", "HIV", None], tmp_path) == [0.1, 0.9, 0.5]


def test_a_value_without_weight(tmp_path):
    with pytest.raises(WeightsError, match="lack the values 'Flu', 'Gout', which occur in the data"):
        weights_of({"HIV": 0.9}, ["HIV", "Flu", "Gout"], tmp_path)
    with pytest.raises(WeightsError, match=r"lack missing values.*under the key ''"):
        weights_of({"HIV": 0.9}, ["HIV", None], tmp_path)


def test_weights_for_absent_values_are_a_warning(tmp_path):
    with pytest.warns(VeilmarkWarning, match="do not occur in the data: 'Fluu'"):
        weights_of({"HIV": 0.9, "Fluu": 0.1, "default": 0}, ["HIV", "Flu"], tmp_path)


@pytest.mark.parametrize("bad", [-0.1, "high", True, float("nan"), float("inf"), None, [1]])
def test_weights_that_are_none(tmp_path, bad):
    with pytest.raises(WeightsError, match="The weight of 'd' value 'HIV' is"):
        read_weights("d", {"HIV": bad}, tmp_path)


def test_ranges_of_numbers(tmp_path):
    given = {"ranges": [{"to": 10, "weight": 0.3}, {"from": 10, "to": 20, "weight": 0.2}], "default": 0.05}
    assert weights_of(given, ["5", "10", "19.5", "20", None], tmp_path) == [0.3, 0.2, 0.2, 0.05, 0.05]


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ([{"from": 5, "to": 5, "weight": 1}], "an empty range, from 5 to 5"),
        ([{"to": 6, "weight": 1}, {"from": 5, "weight": 0.5}], "overlap"),
        ([{"to": 6, "weight": -1}], "A weight is a number"),
        ([{"to": 6, "weight": 1.5}], "from 0 .* to 1"),
        ([{"too": 6, "weight": 1}], "unknown key 'too'"),
        ([{"to": 6}], "'weight' is missing"),
    ],
)
def test_ranges_that_make_no_sense(tmp_path, ranges, words):
    with pytest.raises(WeightsError, match=words):
        read_weights("d", {"ranges": ranges}, tmp_path)


def test_missing_values_under_ranges(tmp_path):
    with pytest.raises(WeightsError, match="under the key missing"):
        weights_of({"ranges": [{"weight": 1}]}, ["5", None], tmp_path)
    assert weights_of({"ranges": [{"weight": 1}], "missing": 0.5}, ["5", None], tmp_path) == [1, 0.5]


@pytest.mark.parametrize("given", [{"ranges": [{"weight": 1}]}, {"ahp": "a.csv"}, {"model": "m.yaml"}])
@pytest.mark.parametrize("bad", [-5.0, float("nan")])
def test_defaults_that_are_no_weights(tmp_path, given, bad):
    with pytest.raises(WeightsError, match="The weight of 'd' value 'default'"):
        read_weights("d", {**given, "default": bad}, tmp_path)


def test_ranges_of_texts(tmp_path):
    with pytest.raises(WeightsError, match="not all of its values are numbers"):
        weights_of({"ranges": [{"weight": 1}]}, ["x"], tmp_path)


def test_ahp_panel_and_hierarchy(tmp_path):
    (tmp_path / "a.csv").write_text(",HIV,Flu\nHIV,1,4\nFlu,1/4,1\n")
    (tmp_path / "b.csv").write_text(",HIV,Flu\nHIV,1,9\nFlu,1/9,1\n")
    (tmp_path / "top.csv").write_text(",d,income\nd,1,3\nincome,1/3,1\n")
    assert weights_of({"ahp": "a.csv"}, ["HIV", "Flu"], tmp_path) == pytest.approx([0.2, 0.8])
    panel = weights_of({"ahp": ["a.csv", "b.csv"]}, ["HIV", "Flu"], tmp_path)
    assert panel == pytest.approx([1 / 7, 6 / 7])
    assert weights_of({"ahp": "a.csv", "rescale": True}, ["HIV", "Flu"], tmp_path) == pytest.approx([0.25, 1])
    nested = weights_of({"ahp": "a.csv", "attributes": "top.csv"}, ["HIV", "Flu"], tmp_path)
    assert nested == pytest.approx([0.2 * 0.75, 0.8 * 0.75])
    with pytest.raises(WeightsError, match="rescale cannot be combined with attributes"):
        read_weights("d", {"ahp": "a.csv", "attributes": "top.csv", "rescale": True}, tmp_path)
    with pytest.raises(WeightsError, match="but not 'd'"):
        read_weights("d", {"ahp": "a.csv", "attributes": "a.csv"}, tmp_path)


def test_a_data_model(tmp_path):
    (tmp_path / "m.yaml").write_text("tree: {d: {sensitivity: 0.5, values: {HIV: 1, Flu: 0.2}}}\n")
    assert weights_of({"model": "m.yaml"}, ["HIV", "Flu"], tmp_path) == pytest.approx([0.1, 0.5])
    with pytest.raises(WeightsError, match="has no attribute 'x'; it has 'd'"):
        read_weights("x", {"model": "m.yaml"}, tmp_path)


def test_no_weights(tmp_path):
    with pytest.raises(WeightsError, match="'d' is sensitive but has no weights"):
        read_weights("d", None, tmp_path)


def test_a_value_may_be_called_like_a_kind(tmp_path):
    assert weights_of({"model": 0.3, "ahp": 0.2}, ["model", "ahp"], tmp_path) == [0.2, 0.3]
