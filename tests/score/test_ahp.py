"""AHP: golden and hand-worked numbers, slow oracles, invariants, and what each error says."""

from __future__ import annotations

import json
import math
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from veilmark.errors import VeilmarkWarning, WeightsError
from veilmark.score.ahp import (
    PairwiseMatrix,
    Revisit,
    _ranks,
    aggregate,
    complete,
    hierarchical,
    priorities,
    random_index,
    read_matrix,
)

SAATY: list[list[float]] = [[1, 3, 5], [1 / 3, 1, 3], [1 / 5, 1 / 3, 1]]
GOLDEN = (0.636986, 0.258285, 0.104729)
NAN = math.nan


def matrix(values: list[list[float]], names: str = "abcdefgh") -> PairwiseMatrix:
    return PairwiseMatrix(tuple(names[: len(values)]), np.array(values, dtype=float))


def consistent(weights: list[float]) -> PairwiseMatrix:
    w = np.array(weights)
    return PairwiseMatrix(tuple(f"n{i}" for i in range(len(w))), w[:, None] / w[None, :])


def write(folder: Path, text: str) -> Path:
    path = folder / "matrix.csv"
    path.write_text(text, encoding="utf-8")
    return path


def power_iteration(rows: list[list[float]]) -> tuple[float, list[float]]:
    """The slow oracle: multiply until nothing changes."""
    size = len(rows)
    weights = [1 / size] * size
    for _ in range(2000):
        product = [sum(rows[i][j] * weights[j] for j in range(size)) for i in range(size)]
        weights = [p / sum(product) for p in product]
    image = [sum(rows[i][j] * weights[j] for j in range(size)) for i in range(size)]
    return sum(image), weights


def largest_eigenvalue(values: np.ndarray) -> float:
    return float(np.linalg.eigvals(values).real.max())


class TestPriorities:
    def test_golden(self) -> None:
        result = priorities(matrix(SAATY))
        assert result.weights == pytest.approx(GOLDEN, abs=1e-6)
        assert result.lambda_max == pytest.approx(3.0385, abs=1e-4)
        assert result.consistency_index == pytest.approx(0.01926, abs=1e-5)
        assert result.consistency_ratio == pytest.approx(0.0332, abs=1e-4)

    def test_geometric_means_by_hand(self) -> None:
        rows: list[list[float]] = [[1, 2, 4, 1], [1 / 2, 1, 3, 2], [1 / 4, 1 / 3, 1, 1 / 2], [1, 1 / 2, 2, 1]]
        means = [8 ** (1 / 4), 3 ** (1 / 4), (1 / 24) ** (1 / 4), 1.0]
        result = priorities(matrix(rows), "geometric")
        assert result.weights == pytest.approx([m / sum(means) for m in means])

    def test_geometric_equals_eigenvector_for_three(self) -> None:
        assert priorities(matrix(SAATY), "geometric").weights == pytest.approx(GOLDEN, abs=1e-6)

    def test_rescale_makes_the_largest_one(self) -> None:
        weights = priorities(matrix(SAATY), rescale=True).weights
        assert weights == pytest.approx([1, 0.258285 / 0.636986, 0.104729 / 0.636986], abs=1e-5)

    def test_one_name(self) -> None:
        result = priorities(matrix([[1]]))
        assert (result.weights, result.lambda_max, result.consistency_ratio) == ((1.0,), 1.0, 0.0)
        assert result.revisit is None

    def test_two_names_cannot_contradict(self) -> None:
        result = priorities(matrix([[1, 4], [1 / 4, 1]]))
        assert result.weights == pytest.approx([0.8, 0.2])
        assert (result.consistency_index, result.consistency_ratio, result.revisit) == (0.0, 0.0, None)

    def test_warns_and_names_the_judgement(self) -> None:
        circular = matrix([[1, 2, 9, 2], [1 / 2, 1, 2, 1], [1 / 9, 1 / 2, 1, 9], [1 / 2, 1, 1 / 9, 1]])
        with pytest.warns(VeilmarkWarning, match=r"above 0\.10.*'c' against 'd' is judged 9") as caught:
            result = priorities(circular)
        assert len(caught) == 1
        assert result.consistency_ratio > 0.10
        assert result.revisit is not None
        assert (result.revisit.row, result.revisit.column, result.revisit.given) == ("c", "d", 9.0)
        weights = result.by_name
        assert result.revisit.suggested == pytest.approx(weights["c"] / weights["d"])

    def test_circle_of_three_by_hand(self) -> None:
        # Each beats the next ninefold: equal weights, and rows that sum to 1 + 9 + 1/9.
        with pytest.warns(VeilmarkWarning):
            result = priorities(matrix([[1, 9, 1 / 9], [1 / 9, 1, 9], [9, 1 / 9, 1]]))
        assert result.weights == pytest.approx([1 / 3] * 3)
        assert result.lambda_max == pytest.approx(91 / 9)
        assert result.consistency_ratio == pytest.approx((91 / 9 - 3) / 2 / 0.58)

    def test_weights_many_powers_of_ten_apart(self) -> None:
        result = priorities(consistent([1.0, 1e-12, 1e-24]))
        assert result.weights == pytest.approx([1.0, 1e-12, 1e-24], rel=1e-9)

    def test_unknown_method(self) -> None:
        with pytest.raises(WeightsError, match=r"'geometrical' is not known\. Did you mean 'geometric'\?"):
            priorities(matrix(SAATY), "geometrical")  # type: ignore[arg-type]

    def test_fifty_names_are_instant(self) -> None:
        rng = np.random.default_rng(1)
        values = np.exp(rng.normal(0, 0.3, (50, 50)))
        values[np.tril_indices(50)] = NAN
        holes = np.triu(rng.random((50, 50)) < 0.4, 2)
        values[holes] = NAN
        fifty = PairwiseMatrix(tuple(f"n{i}" for i in range(50)), values)
        from scipy import optimize  # noqa: F401  (its import is not what is timed)

        start = time.perf_counter()
        result = priorities(fifty)
        assert time.perf_counter() - start < 2
        assert sum(result.weights) == pytest.approx(1)
        assert result.missing == holes.sum()

    def test_to_dict_is_json(self) -> None:
        told = json.loads(json.dumps(priorities(matrix(SAATY)).to_dict()))
        assert told["weights"]["a"] == pytest.approx(0.636986, abs=1e-6)
        assert told["consistency_ratio"] == pytest.approx(0.0332, abs=1e-4)
        assert told["revisit"]["sentence"] == "'a' against 'b' is judged 3, the weights suggest 2.47"


class TestRandomIndex:
    @pytest.mark.parametrize(("size", "expected"), [(1, 0), (2, 0), (3, 0.58), (5, 1.12), (11, 1.51)])
    def test_table(self, size: int, expected: float) -> None:
        assert random_index(size) == expected

    def test_fit_beyond_eleven(self) -> None:
        assert random_index(12) == pytest.approx((1.7699 * 12 - 4.3513) / 11)

    def test_missing_judgements(self) -> None:
        assert random_index(5, 2) == pytest.approx(1.12 * (1 - 4 / 12))
        assert random_index(5, 6) == 0


class TestComplete:
    def test_a_chain_is_multiplied_through(self) -> None:
        chain = PairwiseMatrix.from_judgements({("a", "b"): 2, ("b", "c"): 3})
        assert complete(chain).values[0, 2] == pytest.approx(6)
        result = priorities(chain)
        assert result.weights == pytest.approx([0.6, 0.3, 0.1])
        assert (result.consistency_ratio, result.missing, result.revisit) == (0.0, 1, None)

    def test_a_missing_pair_by_hand(self) -> None:
        # a:d through b is 2·2 = 4, through c is 1·9 = 9; by symmetry the best filling is their mean, 6.
        values = [[1, 2, 1, NAN], [NAN, 1, NAN, 2], [NAN, NAN, 1, 9], [NAN, NAN, NAN, 1]]
        filled = complete(matrix(values)).values
        assert filled[0, 3] == pytest.approx(6)
        assert filled[0, 1] == 2

    def test_complete_is_returned_as_it_is(self) -> None:
        whole = matrix(SAATY)
        assert complete(whole) is whole

    @pytest.mark.parametrize("seed", range(8))
    def test_one_missing_cell_against_a_search(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        values = np.exp(rng.normal(0, 1, (5, 5)))
        values[np.tril_indices(5)] = NAN
        values[1, 3] = NAN
        holed = matrix(values.tolist())

        def height(log: float) -> float:
            trial = holed.values.copy()
            trial[1, 3], trial[3, 1] = math.exp(log), math.exp(-log)
            return largest_eigenvalue(trial)

        best = minimize_scalar(height, bounds=(-8, 8), method="bounded", options={"xatol": 1e-9})
        assert math.log(complete(holed).values[1, 3]) == pytest.approx(best.x, abs=1e-5)

    def test_two_missing_cells_against_a_grid(self) -> None:
        values = [[1, 2, NAN, 7], [NAN, 1, 4, NAN], [NAN, NAN, 1, 3], [NAN, NAN, NAN, 1]]
        found = complete(matrix(values)).values
        lowest = largest_eigenvalue(found)
        grid = np.linspace(-0.4, 0.4, 17)
        for first, second in ((x, y) for x in grid for y in grid):
            trial = found.copy()
            trial[0, 2] *= math.exp(first)
            trial[2, 0] = 1 / trial[0, 2]
            trial[1, 3] *= math.exp(second)
            trial[3, 1] = 1 / trial[1, 3]
            assert largest_eigenvalue(trial) >= lowest - 1e-12

    def test_geometric_fits_only_what_was_given(self) -> None:
        # Least squares in logarithms, the triangle a,b,c with d hung on c: worked as means of logs.
        judged = PairwiseMatrix.from_judgements({("a", "b"): 2, ("b", "c"): 2, ("a", "c"): 8, ("c", "d"): 5})
        w = priorities(judged, "geometric").by_name
        assert w["a"] / w["b"] == pytest.approx((2 * 2 * 8 / 2) ** (1 / 3))
        assert w["c"] / w["d"] == pytest.approx(5)

    def test_geometric_leaves_no_slope_at_any_name(self) -> None:
        rng = np.random.default_rng(3)
        values = np.exp(rng.normal(0, 0.4, (5, 5)))
        values[np.tril_indices(5)] = values[0, 2] = values[1, 4] = NAN
        judged = matrix(values.tolist())
        w = np.array(priorities(judged, "geometric").weights)
        misfit = np.log(judged.values * w[None, :] / w[:, None])
        assert np.nansum(misfit, axis=1) == pytest.approx(0, abs=1e-12)

    def test_separate_groups_are_named(self) -> None:
        split = PairwiseMatrix.from_judgements({("a", "b"): 2, ("c", "d"): 3}, source="panel.csv")
        with pytest.raises(WeightsError, match=r"panel\.csv has 2 groups .*'a', 'b'; 'c', 'd'\. Judge at least"):
            complete(split)


class TestRead:
    def test_plain(self, tmp_path: Path) -> None:
        read = read_matrix(write(tmp_path, ",a,b,c\na,1,3,5\nb,0.333,1,3\nc,1/5,1/3,1\n"))
        assert read.names == ("a", "b", "c")
        assert read.values[0, 1] == pytest.approx(math.sqrt(3 / 0.333))
        assert read.values[1, 0] == pytest.approx(1 / read.values[0, 1])
        assert priorities(read).weights == pytest.approx(GOLDEN, abs=1e-3)

    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_delimiters_and_upper_triangle(self, tmp_path: Path, delimiter: str) -> None:
        text = ",a,b,c\na,1,3,5\nb,,1,3\nc,,,1\n".replace(",", delimiter)
        assert read_matrix(write(tmp_path, text)).values == pytest.approx(np.array(SAATY))

    def test_columns_in_another_order(self, tmp_path: Path) -> None:
        read = read_matrix(write(tmp_path, ",c,a,b\na,5,1,3\nb,3,1/3,1\nc,1,1/5,1/3\n"))
        assert read.names == ("a", "b", "c")
        assert read.values == pytest.approx(np.array(SAATY))

    def test_spreadsheet_habits(self, tmp_path: Path) -> None:
        text = '\ufeff;Flu, mild;"Flu, bad";;\r\nFlu, mild;1;0,5;;\r\n"Flu, bad"; ;;;\r\n;;;;\r\n'
        read = read_matrix(write(tmp_path, text))
        assert read.names == ("Flu, mild", "Flu, bad")
        assert read.values == pytest.approx(np.array([[1, 0.5], [2, 1]]))

    def test_names_that_hold_another_delimiter(self, tmp_path: Path) -> None:
        read = read_matrix(write(tmp_path, ";x, y, z;w\nx, y, z;1;0,5\nw;2;1\n"))
        assert read.names == ("x, y, z", "w")
        assert read.values == pytest.approx(np.array([[1, 0.5], [2, 1]]))

    def test_missing_judgement(self, tmp_path: Path) -> None:
        read = read_matrix(write(tmp_path, ",a,b,c\na,,2,\nb,,,3\nc\n"))
        assert read.missing == 1
        assert math.isnan(read.values[0, 2])
        assert read.to_dict()["values"][0] == [1.0, 2.0, None]

    def test_acceptance_form(self, tmp_path: Path) -> None:
        rows = "".join(f"{n},{','.join(map(str, row))}\n" for n, row in zip("abc", SAATY, strict=True))
        assert priorities(read_matrix(write(tmp_path, ",a,b,c\n" + rows))).weights == pytest.approx(GOLDEN, abs=1e-6)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "has no pairwise matrix"),
            ("a\nb\n", "has no pairwise matrix"),
            (",a,b\na,1,3\n", "not square: 1 rows and 2 columns; 'b' has a column but no row"),
            (",a,b\na,1,3\nb,,1\nc,,\n", "not square: 3 rows and 2 columns; 'c' has a row but no column"),
            (",Fever,b\nFevr,1,3\nb,,1\n", r"'Fevr' has a row but no column\. Did you mean 'Fever'\?"),
            (",a,a\na,1,3\nb,,1\n", "'a' more than once"),
            (",a,\na,1,3\n,,1\n", "without a name, number 2"),
            (",a,b\na,1,3\n,,1\n", "without a name, number 2"),
            (",a,b\na,1,3,4\nb,,1\n", "row 'a' has a cell '4' beyond the 2 columns"),
            (",a,b\na,1,x\nb,,1\n", r"row 'a', column 'b': 'x' is not a number\. A judgement is a positive"),
            (",a,b\na,1,1/0\nb,,1\n", "row 'a', column 'b': '1/0' is not a number"),
            (",a,b\na,1,nan\nb,,1\n", "'nan' is not a number"),
            (",a,b\na,1,inf\nb,,1\n", "'inf' is not a number"),
            (",a,b\na,1,1/2/3\nb,,1\n", "'1/2/3' is not a number"),
            (",a,b\na,1,-3\nb,,1\n", "row 'a', column 'b': -3 is not positive"),
            (",a,b\na,1,0\nb,,1\n", "0 is not positive"),
            (",a,b\na,1,1e200\nb,,1\n", "too extreme"),
            (",a,b\na,2,3\nb,,1\n", "row 'a', column 'a': the diagonal is 2, not 1"),
            (
                ",a,b\na,1,3\nb,0.5,1\n",
                r"row 'a', column 'b': 3 is not the reciprocal of 0\.5 in row 'b', column 'a'",
            ),
        ],
    )
    def test_errors_name_the_cell(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(WeightsError, match=words) as caught:
            read_matrix(write(tmp_path, text))
        assert "matrix.csv" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_hundredth_of_rounding_passes(self, tmp_path: Path) -> None:
        assert read_matrix(write(tmp_path, ",a,b\na,1,3\nb,0.33,1\n")).values[0, 1] == pytest.approx(3.015, abs=1e-3)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match=r"none\.csv does not exist"):
            read_matrix(tmp_path / "none.csv")

    def test_not_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(WeightsError, match="cannot be read"):
            read_matrix(tmp_path)

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(WeightsError, match="not UTF-8"):
            read_matrix(tmp_path / "m.csv")


class TestPairwiseMatrix:
    def test_from_judgements(self) -> None:
        made = PairwiseMatrix.from_judgements({("a", "b"): 3, ("a", "c"): 5, ("c", "b"): "1/3"})
        assert made.names == ("a", "b", "c")
        assert made.values == pytest.approx(np.array(SAATY))

    def test_values_cannot_be_changed(self) -> None:
        with pytest.raises(ValueError, match="read-only"):
            matrix(SAATY).values[0, 1] = 4

    def test_does_not_touch_its_argument(self) -> None:
        mine = np.array([[NAN, 2], [NAN, NAN]])
        PairwiseMatrix(("a", "b"), mine)
        assert np.isnan(mine).sum() == 3

    def test_wrong_shape(self) -> None:
        with pytest.raises(WeightsError, match=r"not square: its shape is \(2, 3\) for 2 names"):
            PairwiseMatrix(("a", "b"), np.ones((2, 3)))

    def test_no_names(self) -> None:
        with pytest.raises(WeightsError, match="no names"):
            PairwiseMatrix((), np.ones((0, 0)))

    def test_judgement_of_an_unknown_name(self) -> None:
        with pytest.raises(WeightsError, match="judges 'c', which is not among the names 'a', 'b'"):
            PairwiseMatrix.from_judgements({("a", "c"): 2}, names=["a", "b"])

    def test_sentence_writes_fractions(self) -> None:
        assert str(Revisit("a", "b", 1 / 3, 0.41)) == "'a' against 'b' is judged 1/3, the weights suggest 0.41"


class TestHierarchical:
    ATTRIBUTES = PairwiseMatrix.from_judgements({("Disease", "Age"): 4})
    DISEASE = PairwiseMatrix.from_judgements({("HIV", "Flu"): 3, ("HIV", "Migraine"): 5, ("Flu", "Migraine"): 3})
    AGE = PairwiseMatrix.from_judgements({("<30", "30+"): 1})

    def test_products_by_hand(self) -> None:
        result = hierarchical(self.ATTRIBUTES, {"Disease": self.DISEASE, "Age": self.AGE})
        assert result["Disease"] == pytest.approx(
            dict(zip(("HIV", "Flu", "Migraine"), (0.8 * g for g in GOLDEN), strict=True)), abs=1e-6
        )
        assert dict(result)["Age"] == pytest.approx({"<30": 0.1, "30+": 0.1})
        assert len(result) == 2
        assert sum(w for values in result.weights.values() for w in values.values()) == pytest.approx(1)

    def test_overall_consistency_by_hand(self) -> None:
        result = hierarchical(self.ATTRIBUTES, {"Disease": self.DISEASE, "Age": self.AGE})
        # Only the matrix of three can contradict itself: its share cancels, and its own ratio stays.
        assert result.consistency_ratio == pytest.approx(0.0332, abs=1e-4)
        assert result.within["Disease"].consistency_ratio == pytest.approx(0.0332, abs=1e-4)
        assert result.attributes.consistency_ratio == 0

    def test_overall_consistency_of_two_levels(self) -> None:
        top = matrix(SAATY)
        flat = PairwiseMatrix(("x", "y", "z"), np.ones((3, 3)))
        result = hierarchical(top, {"a": flat, "b": flat, "c": matrix(SAATY)})
        index = (3.0385111 - 3) / 2
        assert result.consistency_ratio == pytest.approx(index * (1 + 0.104729) / (0.58 * 2), abs=1e-6)

    def test_rescale(self) -> None:
        result = hierarchical(self.ATTRIBUTES, {"Disease": self.DISEASE, "Age": self.AGE}, rescale=True)
        assert result["Disease"]["HIV"] == pytest.approx(1)
        assert result["Age"]["30+"] == pytest.approx(0.1 / (0.8 * 0.636986), abs=1e-6)

    def test_to_dict_is_json(self) -> None:
        told = json.loads(
            json.dumps(hierarchical(self.ATTRIBUTES, {"Disease": self.DISEASE, "Age": self.AGE}).to_dict())
        )
        assert set(told) == {"weights", "consistency_ratio", "attributes", "within"}

    def test_attribute_without_values(self) -> None:
        with pytest.raises(WeightsError, match=r"'Age', but there is no matrix of its values\. Did you mean 'age'\?"):
            hierarchical(self.ATTRIBUTES, {"Disease": self.DISEASE, "age": self.AGE})

    def test_values_without_attribute(self) -> None:
        with pytest.raises(WeightsError, match="matrix of values for 'Job', which"):
            hierarchical(self.ATTRIBUTES, {"Disease": self.DISEASE, "Age": self.AGE, "Job": self.AGE})


class TestAggregate:
    def test_geometric_mean_by_hand(self) -> None:
        panel = aggregate([matrix([[1, 2], [1 / 2, 1]]), matrix([[1, 8], [1 / 8, 1]])])
        assert panel.matrix.values[0, 1] == pytest.approx(4)
        assert panel.result.weights == pytest.approx([0.8, 0.2])
        assert [e.weights[0] for e in panel.experts if e] == pytest.approx([2 / 3, 8 / 9])
        assert panel.concordance == 1

    def test_names_in_another_order(self) -> None:
        panel = aggregate([matrix(SAATY), matrix(SAATY).aligned(("c", "a", "b"))])
        assert panel.result.weights == pytest.approx(GOLDEN, abs=1e-6)

    def test_opposite_experts_do_not_concur(self) -> None:
        panel = aggregate([consistent([1, 2, 4]), consistent([4, 2, 1])])
        assert panel.concordance == 0
        assert panel.result.weights == pytest.approx([1 / 3] * 3)

    def test_concordance_with_ties_by_hand(self) -> None:
        # Ranks 1 2 3, 1 3 2 and 1.5 1.5 3: totals 3.5 6.5 8, S = 10.5;
        # W = 12·10.5 / (9·24 − 3·6) = 126/198.
        panel = aggregate([consistent([1, 2, 4]), consistent([1, 4, 2]), consistent([1, 1, 4])])
        assert panel.concordance == pytest.approx(126 / 198)

    def test_ties_forgive_rounding(self) -> None:
        ranks, ties = _ranks((0.1 + 0.2, 0.3, 1.0))
        assert (ranks.tolist(), ties) == ([1.5, 1.5, 3.0], 6)

    def test_all_equal_is_full_agreement(self) -> None:
        assert aggregate([consistent([1, 1, 1])] * 3).concordance == 1

    def test_one_name_and_one_expert(self) -> None:
        assert aggregate([matrix([[1]])]).concordance == 1

    def test_experts_who_share_the_work(self) -> None:
        first = PairwiseMatrix.from_judgements({("a", "b"): 2}, names="abc")
        second = PairwiseMatrix.from_judgements({("b", "c"): 3}, names="abc")
        panel = aggregate([first, second])
        assert panel.result.weights == pytest.approx([0.6, 0.3, 0.1])
        assert panel.experts == (None, None)
        assert panel.concordance is None
        assert json.loads(json.dumps(panel.to_dict()))["experts"] == [None, None]

    def test_no_expert(self) -> None:
        with pytest.raises(WeightsError, match="no expert"):
            aggregate([])

    def test_other_names(self) -> None:
        with pytest.raises(WeightsError, match=r"Expert 2 .* different names from expert 1: 'b', 'z' are in only one"):
            aggregate([matrix([[1, 2], [1 / 2, 1]]), matrix([[1, 2], [1 / 2, 1]], names="az")])


weight_lists = st.lists(st.floats(0.01, 100), min_size=1, max_size=8)


@st.composite
def judged(draw: st.DrawFn) -> PairwiseMatrix:
    size = draw(st.integers(3, 6))
    values = np.full((size, size), NAN)
    for pair in combinations(range(size), 2):
        values[pair] = draw(st.floats(1 / 3, 3))
    return matrix(values.tolist())


@given(weight_lists)
@pytest.mark.parametrize("method", ["eigenvector", "geometric"])
def test_a_consistent_matrix_gives_its_weights_back(method: str, weights: list[float]) -> None:
    result = priorities(consistent(weights), method)  # type: ignore[arg-type]
    assert result.weights == pytest.approx([w / sum(weights) for w in weights], rel=1e-9)
    assert result.consistency_ratio == pytest.approx(0, abs=1e-9)
    assert result.revisit is None


@given(judged())
@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
def test_against_power_iteration(given_matrix: PairwiseMatrix) -> None:
    result = priorities(given_matrix)
    root, weights = power_iteration(given_matrix.values.tolist())
    assert result.weights == pytest.approx(weights, rel=1e-8)
    assert result.lambda_max == pytest.approx(root, rel=1e-9)
    assert min(result.weights) > 0
    assert sum(result.weights) == pytest.approx(1)
    assert result.lambda_max >= len(weights)


@given(judged(), st.randoms(use_true_random=False))
@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
def test_order_of_names_does_not_matter(given_matrix: PairwiseMatrix, random: object) -> None:
    names = list(given_matrix.names)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert priorities(given_matrix.aligned(names)).by_name == pytest.approx(priorities(given_matrix).by_name)


@st.composite
def holed(draw: st.DrawFn) -> tuple[PairwiseMatrix, PairwiseMatrix]:
    """A consistent matrix, and the same with judgements removed but a tree of them left."""
    whole = consistent(draw(st.lists(st.floats(0.05, 20), min_size=2, max_size=7)))
    size = len(whole.names)
    tree = {(draw(st.integers(0, i - 1)), i) for i in range(1, size)}
    values = whole.values.copy()
    for pair in combinations(range(size), 2):
        if pair not in tree and draw(st.booleans()):
            values[pair] = values[pair[::-1]] = NAN
    return whole, PairwiseMatrix(whole.names, values)


@given(holed())
@settings(deadline=None)
def test_holes_in_a_consistent_matrix_are_filled_back(pair: tuple[PairwiseMatrix, PairwiseMatrix]) -> None:
    whole, incomplete = pair
    assert complete(incomplete).values == pytest.approx(whole.values, rel=1e-6)
    assert priorities(incomplete).weights == pytest.approx(priorities(whole).weights, rel=1e-6)


@given(st.lists(st.permutations([1.0, 2.0, 3.0, 3.0]), min_size=1, max_size=5))
def test_concordance_is_a_share(rankings: list[list[float]]) -> None:
    concordance = aggregate([consistent(list(r)) for r in rankings]).concordance
    assert concordance is not None
    assert 0 <= concordance <= 1
