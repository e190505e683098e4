from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from veilmark.errors import OptionError
from veilmark.score.ranking import scores_by_draw
from veilmark.score.scores import Options
from veilmark.study.opening import engine_of, open_source
from veilmark.study.study import Study
from veilmark.workbench.score import breach, compare_scores, scorer_of

RNG = np.random.default_rng(5)
ROWS = 300
SOURCE = pa.table(
    {
        "a": RNG.choice(list("xyz"), ROWS),
        "s": RNG.choice(list("uvw"), ROWS),
        "t": RNG.choice(list("pq"), ROWS),
    }
)
STUDY = Study.of(
    SOURCE,
    {
        "a": "quasi",
        "s": {"role": "sensitive", "weights": {"u": 0.1, "v": 0.4, "w": 0.6}},
        "t": {"role": "sensitive", "weights": {"p": 0.2, "q": 0.3}},
    },
)


@pytest.mark.parametrize("options", [Options(), Options(x=3, cap=True), Options(x=math.inf)])
def test_each_draw_is_a_score_with_other_weights(options):
    """The sums over combinations against scoring anew with the moved weights."""
    with engine_of(STUDY) as engine:
        scorer = scorer_of(open_source(engine, STUDY), STUDY)
        part, _ = scorer.find(engine.open(SOURCE.slice(0, 40)).group(scorer.cells.columns), "part")
    moved = {n: (place, w * RNG.uniform(0.5, 1.5, (4, len(w)))) for n, (place, w) in scorer.stated.items()}
    drawn = scores_by_draw(part, moved, options)
    for d in range(4):
        roles = {"a": "quasi"}
        for name, letters in (("s", "uvw"), ("t", "pq")):
            roles[name] = {"role": "sensitive", "weights": dict(zip(letters, moved[name][1][d].tolist(), strict=False))}
        want = Study.of(SOURCE, roles).score(SOURCE.slice(0, 40), options).scores
        for name, score in want.items():
            assert drawn[name][d] == pytest.approx(score.value, rel=1e-9)


def test_least_misuseable_first():
    tables = [SOURCE.slice(0, 100), SOURCE.slice(0, 10), SOURCE.slice(0, 50)]
    got = compare_scores(STUDY, tables, draws=200)
    assert list(got.candidates) == ["table 2", "table 3", "table 1"]
    assert got.stability["tkl"].same_order == 1.0
    assert got.stability["tkl"].rank_range == {"table 2": (1, 1), "table 3": (2, 2), "table 1": (3, 3)}


def test_equals_change_places_when_weights_move():
    even = {"u": 0.5, "v": 0.5, "w": 0.5}
    roles = {"a": "quasi", "s": {"role": "sensitive", "weights": even}}
    study = Study.of(SOURCE, roles)
    one, other = (pa.table({"a": ["x"], "s": [value]}) for value in "uv")
    got = compare_scores(study, [one, other], draws=500)
    assert 0.4 < got.stability["tkl"].same_order < 0.6
    assert got.stability["tkl"].rank_range == {"table 1": (1, 2), "table 2": (1, 2)}
    assert got == compare_scores(study, [one, other], draws=500)


def test_a_range_is_one_opinion():
    """Two weights that differ by little stay in doubt, however many values each covers."""
    n = 4000
    source = pa.table({"a": ["x"] * (2 * n), "s": pa.array(range(2 * n))})
    ranges = [{"to": n, "weight": 0.30}, {"from": n, "weight": 0.31}]
    study = Study.of(source, {"a": "quasi", "s": {"role": "sensitive", "weights": {"ranges": ranges}}})
    got = compare_scores(study, [source.slice(0, n), source.slice(n, n)], draws=300)
    assert 0.4 < got.stability["tkl"].same_order < 0.7


def test_an_empty_candidate():
    got = compare_scores(STUDY, [SOURCE, SOURCE.slice(0, 0)], draws=10)
    assert list(got.candidates) == ["table 2", "table 1"]


def test_options_that_make_no_sense():
    with pytest.raises(OptionError, match="spread"):
        compare_scores(STUDY, [SOURCE], spread=1.5)
    with pytest.raises(OptionError, match="draws"):
        compare_scores(STUDY, [SOURCE], draws=0)


def test_a_breach():
    leak = pa.concat_tables([SOURCE.slice(0, 30), pa.table({"a": ["?"], "s": ["u"], "t": ["p"]})])
    got = breach(STUDY, leak)
    assert (got.score.records, got.score.unknown_records) == (30, 1)
    assert got.share_of_records == pytest.approx(0.1)
    assert got.severity == pytest.approx(STUDY.score(SOURCE.slice(0, 30)).scores["tkl"].normalized)
    assert got.identifiable == 0
