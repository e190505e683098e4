"""Measures: one small table by hand, whole tables against the oracle and against pyCANON, and what errors say."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pycanon import anonymity

import oracle
from strength import examples
from veilmark.errors import OptionError, StudyError
from veilmark.privacy.measures import Sensitive, measure_classes, rank_values
from veilmark.study.study import Study

pytestmark = pytest.mark.filterwarnings("ignore:In a future version, the keys:Warning:pycanon")

ADULT = Path(__file__).parents[3] / "shared/data/adult/adult_arx_30162.csv"

VISITS = pa.table(
    {
        "zip": ["a", "a", "a", "b", "b", "", "a"],
        "illness": ["flu", "flu", "hiv", "flu", "cold", "cold", None],
        "stay": ["1", "2", "2", "5", "5", "10", "1"],
        "who": ["1", "1", "2", "3", "1", "4", "2"],
    }
)
ROLES = {
    "zip": "quasi",
    "illness": {"role": "sensitive", "hierarchy": {"levels": [{"flu": "mild", "cold": "mild", "hiv": "grave"}]}},
    "stay": {"role": "sensitive", "distance": "ordered"},
}


def measured(**options):
    return Study.of(VISITS, ROLES, person="who").measure(**options)


# --- by hand -----------------------------------------------------------------------------------------------


def test_sizes_count_persons():
    found = measured()
    # Persons: a has 1 and 2, b 3 and 1, the missing zip 4.
    assert (found.records, found.persons, found.classes, found.k, found.uniques) == (7, 4, 3, 1, 1)
    assert found.missing == {"zip": 1, "illness": 1}


def test_illness():
    illness = measured().attributes["illness"]
    assert illness.diversity.distinct == 1
    assert illness.diversity.entropy == 1.0
    assert (illness.diversity.recursive_c, illness.diversity.recursive_l) == (None, 2)
    # The missing zip has only cold, 2/7 of the table.
    assert illness.t == illness.t_by_distance["equal"] == pytest.approx(5 / 7)
    # It must give flu 3/7 one step up of two, and hiv and missing 1/7 each at the top.
    assert illness.t_by_distance["hierarchical"] == pytest.approx(3 / 14 + 2 / 7)
    assert "ordered" not in illness.t_by_distance
    assert illness.alpha == 1.0
    assert illness.beta_basic == pytest.approx(7 / 2 - 1)
    assert illness.beta_enhanced == pytest.approx(math.log(7))
    assert illness.delta == pytest.approx(math.log(7 / 2))


def test_stay_is_ordered():
    stay = measured().attributes["stay"]
    # Stays 1 2 5 10 with shares 2 2 2 1 of 7; the class of 10 alone moves 2, 4 and 6 sevenths a step of three.
    assert stay.t == stay.t_by_distance["ordered"] == pytest.approx(12 / 21)
    assert stay.t_by_distance["equal"] == pytest.approx(6 / 7)


def test_recursive_c_is_taken_at_the_distinct_l():
    rows = [{"q": q, "s": s} for q, s in [("a", "x")] * 3 + [("a", "y"), ("b", "x"), ("b", "y"), ("b", "z")]]
    found = Study.of(pa.Table.from_pylist(rows), {"q": "quasi", "s": "sensitive"}).measure()
    assert found.to_dict()["l"]["s"]["recursive"] == {"c": 3.0, "l": 2}


def test_risk_without_a_population():
    risk = measured(threshold=0.5).risk
    assert (risk.prosecutor.max, risk.prosecutor.mean, risk.prosecutor.over) == (1.0, pytest.approx(3 / 5), 1 / 5)
    assert risk.marketer == pytest.approx(3 / 5)
    assert risk.journalist is risk.sample is risk.population_uniques is risk.unlinked_classes is None


def test_risk_with_a_population_table():
    people = pa.table({"zip": ["a"] * 8 + ["b", "c", "d"], "name": [str(i) for i in range(11)]})
    risk = measured(population=people).risk
    # a: 2 of 8. b: 2 persons where the population knows 1; the missing zip is not in it at all.
    assert risk.unlinked_classes == 2
    assert (risk.journalist.max, risk.journalist.mean) == (1.0, pytest.approx((2 / 8 + 2 / 2 + 1) / 5))
    assert risk.journalist.over == 3 / 5
    assert risk.marketer_population == pytest.approx((2 / 8 + 1 + 1) / 5)
    p = 2 / 8
    of_two = p / (1 - p) - (p / (1 - p)) ** 2 * math.log(1 / p)
    assert risk.sample.mean == pytest.approx((2 * of_two + 2 * 1 / 2 + 1) / 5)


def test_missing_links_to_missing():
    people = pa.table({"zip": pa.array(["a", None, "", "", "b"])})
    risk = measured(population=people).risk
    assert risk.journalist.mean == pytest.approx((2 * 1 / 2 + 2 * 1 / 2 + 1 / 3) / 5)


def test_an_empty_population_links_nobody():
    risk = measured(population=pa.table({"zip": pa.array([], pa.string())})).risk
    assert risk.unlinked_classes == 3
    assert risk.journalist == risk.prosecutor


def test_a_population_of_just_the_persons_in_the_table():
    """Four persons, one of them in two classes: the population is no smaller than the table."""
    risk = measured(population_size=4).risk
    assert risk.sample.mean == pytest.approx(risk.prosecutor.mean)
    assert risk.population_uniques.to_dict() == pytest.approx({"zayatz": 1 / 5, "pitman": 1 / 5, "snb": 1 / 5})


def test_a_population_size():
    risk = measured(population_size=40).risk
    one, two = (oracle.benedetti_franconi(f, 0.1) for f in (1, 2))
    assert (risk.sample.max, risk.sample.mean) == (pytest.approx(one), pytest.approx((4 * two + one) / 5))
    assert risk.journalist is None


def test_a_population_that_is_too_small():
    with pytest.raises(OptionError, match=r"population of 3 is smaller than the 4 in the table. Give the number"):
        measured(population_size=3)


def test_an_order_that_lacks_a_value():
    with pytest.raises(StudyError, match=r"order of 'illness' lacks the values 'hiv', which occur in the data. Add"):
        rank_values(oracle.class_table(VISITS.to_pylist(), [], ["illness"]), "illness", ["flu", "cold"])


def test_ranks():
    table = oracle.class_table(VISITS.to_pylist(), [], ["illness"])
    assert table.histograms["illness"].domain.text.to_pylist() == ["cold", "flu", "hiv", None]
    assert rank_values(table, "illness", None) is None
    assert rank_values(table, "illness", ["hiv", "plague", "cold", "flu"]).tolist() == [1, 2, 0, 3]


def test_no_classes():
    """Where everything was suppressed, nothing is given away."""
    table = oracle.class_table(VISITS.to_pylist(), ["zip"], ["illness"], "who").take(np.zeros(3, dtype=bool))
    for people in (None, table):
        found = measure_classes(table, {"illness": Sensitive(rank=np.arange(4))}, population=people)
        assert (found.records, found.persons, found.k, found.uniques) == (0, 0, 0, 0)
        assert found.attributes["illness"].diversity.distinct == 0
        assert found.attributes["illness"].t == found.risk.prosecutor.max == 0.0
    sized = measure_classes(table, {}, population_size=10)
    assert sized.risk.population_uniques.zayatz == sized.risk.sample.max == 0.0


def test_as_a_dict():
    found = measured(population_size=40).to_dict()
    assert found["k"] == 1
    assert found["l"]["illness"] == {"distinct": 1, "entropy": 1.0, "recursive": {"c": None, "l": 2}}
    assert found["t"]["stay"] == found["t_by_distance"]["stay"]["ordered"]
    assert found["risk"]["prosecutor"]["max"] == 1.0
    assert set(found["risk"]["population_uniques"]) == {"zayatz", "pitman", "snb"}
    assert found["risk"]["journalist"] is None


def test_measuring_loads_no_scipy():
    """It takes longer to load than all the rest, and only population uniques need it."""
    code = "import sys, veilmark.workbench; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- against the oracle ------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(oracle.cases(), oracle.cases(changed=False), st.sampled_from([0.1, 0.34, 0.5]))
def test_measures_are_of_the_worst_class(case, other, threshold):
    table, rows, quasi = case.table, case.rows, case.quasi
    if not rows:
        return
    people = oracle.class_table(other.rows, quasi)
    found = measure_classes(table, {"illness": Sensitive()}, people, threshold=threshold)
    size, links = oracle.sizes(rows, quasi, case.person), oracle.sizes(other.rows, quasi)
    assert found.k == min(size.values())
    assert found.persons == (len({row["person"] for row in rows}) if case.person else None)
    illness = found.attributes["illness"]
    assert illness.diversity.distinct == min(oracle.distinct_l(rows, quasi, "illness").values())
    assert illness.diversity.entropy == pytest.approx(min(oracle.entropy_l(rows, quasi, "illness").values()))
    assert illness.t == pytest.approx(max(oracle.t_equal(rows, quasi, "illness").values()))
    assert illness.alpha == pytest.approx(max(oracle.alpha(rows, quasi, "illness", case.person).values()))
    assert illness.delta == pytest.approx(max(oracle.delta(rows, quasi, "illness").values()))
    risk = found.risk
    of_each = {key: oracle.benedetti_franconi(n, n / max(n, links.get(key, 0))) for key, n in size.items()}
    for risks, expected in [
        (risk.prosecutor, oracle.prosecutor(size, threshold)),
        (risk.journalist, oracle.journalist(size, links, threshold)),
        (risk.sample, oracle.summary(of_each, size, threshold)),
    ]:
        assert (risks.max, risks.mean, risks.over) == pytest.approx(expected)
    assert risk.marketer_population == pytest.approx(oracle.marketer(size, links))
    assert risk.unlinked_classes == sum(links.get(key, 0) < n for key, n in size.items())


# --- against pyCANON ---------------------------------------------------------------------------------------


def agree_with_pycanon(frame, quasi, attribute):
    """All that pyCANON defines as we do; where it does not, both numbers."""
    ordered = pd.api.types.is_numeric_dtype(frame[attribute])
    roles = {attribute: {"role": "sensitive", "distance": "ordered" if ordered else "equal"}}
    found = Study.of(frame, dict.fromkeys(quasi, "quasi") | roles).measure()
    mine = found.attributes[attribute]
    asked = (frame, quasi, [attribute])
    assert (pytest.approx(mine.alpha), found.k) == anonymity.alpha_k_anonymity(*asked)
    assert mine.diversity.distinct == anonymity.l_diversity(*asked)
    assert mine.beta_basic == pytest.approx(anonymity.basic_beta_likeness(*asked))
    assert mine.beta_enhanced == pytest.approx(anonymity.enhanced_beta_likeness(*asked), abs=1e-12)
    assert mine.delta == pytest.approx(anonymity.delta_disclosure(*asked), abs=1e-12)
    assert mine.t == pytest.approx(anonymity.t_closeness(*asked), abs=1e-12)
    # pyCANON cuts entropy l down to a whole number, after rounding: at times one too low where it is whole.
    assert anonymity.entropy_l_diversity(*asked) in (math.floor(mine.diversity.entropy), mine.diversity.entropy - 1)
    return mine


@pytest.mark.parametrize(
    ("quasi", "attribute"),
    [
        (["sex", "race"], "salary-class"),
        (["marital-status"], "salary-class"),
        (["sex", "race"], "occupation"),
        (["marital-status"], "occupation"),
        (["sex"], "age"),
        (["race"], "age"),
    ],
)
def test_adult(quasi, attribute):
    if not ADULT.exists():
        pytest.skip(f"the Adult data are not at {ADULT}")
    agree_with_pycanon(pd.read_csv(ADULT, sep=";"), quasi, attribute)


def test_a_sample_of_adult_in_many_classes():
    if not ADULT.exists():
        pytest.skip(f"the Adult data are not at {ADULT}")
    frame = pd.read_csv(ADULT, sep=";").sample(500, random_state=1, ignore_index=True)
    agree_with_pycanon(frame, ["sex", "education"], "occupation")


@pytest.mark.parametrize("seed", range(8))
def test_random_tables(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(4, 40)
    frame = pd.DataFrame(
        {
            "q": rng.choice(["a", "b", "c"], rows),
            "r": rng.integers(0, 2, rows),
            "s": rng.choice(["x", "y", "z"], rows),
            "n": np.append([1, 50], rng.zipf(2, rows - 2) % 100),
        }
    )
    agree_with_pycanon(frame, ["q", "r"], "s")
    agree_with_pycanon(frame, ["q"], "n")


def test_pycanon_leaves_out_records_that_lack_a_quasi_identifier():
    """pandas' groupby drops them, so that pyCANON does not see who stands alone. To us missing is a value."""
    frame = pd.DataFrame({"q": ["a", "a", "b", "b", None], "s": ["x", "y", "x", "y", "x"]})
    found = Study.of(frame, {"q": "quasi", "s": "sensitive"}).measure()
    assert anonymity.k_anonymity(frame, ["q"]) == 2
    assert found.k == 1
    assert anonymity.l_diversity(frame, ["q"], ["s"]) == 2
    assert found.attributes["s"].diversity.distinct == 1


def test_pycanon_takes_the_rarest_value_for_the_commonest():
    """(c,l)-diversity asks r_1 < c·(r_l + … + r_m) with counts falling; pyCANON sorts them rising, and takes the
    next whole number. Of 3 and 1 at l = 2 that is 1/3, and so 1, where c must exceed 3."""
    frame = pd.DataFrame({"q": ["a"] * 4, "s": ["x", "x", "x", "y"]})
    mine = Study.of(frame, {"q": "quasi", "s": "sensitive"}).measure().attributes["s"].diversity
    assert anonymity.recursive_c_l_diversity(frame, ["q"], ["s"]) == (1, 2)
    assert (mine.recursive_c, mine.recursive_l) == (3.0, 2)


def test_pycanon_cuts_entropy_to_a_whole_number():
    frame = pd.DataFrame({"q": ["a"] * 4, "s": ["x", "x", "x", "y"]})
    mine = Study.of(frame, {"q": "quasi", "s": "sensitive"}).measure().attributes["s"].diversity
    assert anonymity.entropy_l_diversity(frame, ["q"], ["s"]) == 1
    assert mine.entropy == pytest.approx(4 / 3**0.75)


def test_uniques_of_a_population_table_are_counted():
    people = pa.table({"zip": ["1", "2", "2", "3"]})
    risk = measured(population=people).risk
    assert risk.unique_in_population == 0.5
    assert risk.population_uniques is None
