"""The AnonTokens reproduction: its shortcuts against the plain way, its populations, its verdicts, its page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmark.cli import reproduce as cli
from veilmark.engines.duckdb import DuckDB
from veilmark.errors import DataError, OptionError
from veilmark.hierarchy import parse_spec, resolve
from veilmark.mark.discover import link
from veilmark.privacy.models import KAnonymity
from veilmark.reproduce import anontokens_paper as paper
from veilmark.reproduce.anontokens import PeopleNodes, SampleNodes, grid, run
from veilmark.reproduce.comparison import (
    AGREES,
    DIFFERS,
    NEAR,
    SPREAD,
    UNKNOWN,
    Mean,
    Reproduced,
    Row,
    compare,
    verdict,
)
from veilmark.reproduce.population import DATA, STATES, draw_sample, levels_of, population, write_population
from veilmark.tables.classes import ClassTable, Tally
from veilmark.tables.domain import Domain
from veilmark.tables.recoding import full_domain
from veilmark.veil.ola import Ola, search
from veilmark.workbench.reproduce import reproduce, write_populations

HERE = pytest.mark.skipif(not DATA.is_dir(), reason="needs shared/data/zcta_us")
SMALL = [replace(state, voters=40_000) for state in STATES]


@st.composite
def people(draw):
    """A small population by age and town, with its hierarchies."""
    cells = draw(st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 3)), st.integers(1, 30), min_size=1))
    domains = Domain.of(pa.array(range(20, 28))), Domain.of(pa.array(["a1", "a2", "b1", "b2"]))
    codes = np.array(sorted(cells), dtype=np.int32).T
    table = ClassTable(("age", "town"), domains, codes, Tally(np.array([cells[key] for key in sorted(cells)])))
    specs = [parse_spec({"intervals": [2, 4]}), parse_spec({"mask": 2})]
    return table, [resolve(*given) for given in zip(specs, domains, table.columns, strict=True)]


@given(people(), st.integers(2, 6), st.sampled_from([0.0, 0.05, 0.2, 0.5]), st.integers(0, 3))
def test_one_look_at_all_nodes_is_ola_and_linking(case, k, suppression, seed):
    everybody, levels = case
    sample = draw_sample(everybody, max(everybody.total_records // 3, 1), [seed])
    nodes = SampleNodes(sample, levels, 6)
    try:
        found = search(sample, levels, [KAnonymity(k)], Ola(suppression, loss="dm_star"))
    except OptionError:
        with pytest.raises(OptionError, match="No generalization reaches"):
            nodes.best(k, suppression)
        return
    node = nodes.best(k, suppression)
    assert node == found.node
    ours = PeopleNodes(everybody, levels).link(nodes, node, k)
    recoding = full_domain(
        sample.columns, sample.domains, levels, node, found.table.codes[:, found.table.records < k].astype(np.int32)
    )
    plain = link(sample, recoding, everybody, levels, everybody.domains)
    assert ours.min_link == plain.min_link
    for count in ("published", "suppressed", "population"):
        assert sorted(getattr(ours, count)) == sorted(getattr(plain, count))
    for mask in ("found", "candidates"):
        assert sorted(ours.population[getattr(ours, mask)(k)]) == sorted(plain.population[getattr(plain, mask)(k)])


@given(people(), st.integers(0, 5), st.data())
def test_a_sample_is_part_of_its_population(case, seed, data):
    everybody, _ = case
    size = data.draw(st.integers(0, everybody.total_records))
    sample = draw_sample(everybody, size, [seed])
    assert sample.total_records == size
    place = sample.find_in(everybody)
    assert (place >= 0).all()
    assert (sample.records <= everybody.records[place]).all()
    assert (sample.records == draw_sample(everybody, size, [seed]).records).all()


def test_the_whole_population_can_be_drawn():
    everybody = population(SMALL[2])
    assert (draw_sample(everybody, 40_000, [1]).records == everybody.records).all()


@pytest.mark.parametrize("state", SMALL, ids=lambda s: s.name)
def test_built_in_populations(state):
    found = population(state, seed=2)
    assert found.columns == state.columns
    assert found.total_records == 40_000
    assert [of.height + 1 for of in levels_of(found)] == [6, 2, 5, 2][: len(state.columns)]
    assert (found.records == population(state, seed=2).records).all()
    assert len(found) != len(population(state, seed=3))
    assert (np.diff(np.ravel_multi_index(found.codes, [len(d) for d in found.domains])) > 0).all()


@HERE
@pytest.mark.parametrize("state", STATES[1:], ids=lambda s: s.name)
def test_populations_from_public_files(state):
    found = population(state, folder=DATA)
    assert len(found) == pytest.approx(state.printed_classes, rel=0.03)
    assert found.total_records == state.voters
    gender = np.bincount(found.codes[1], weights=found.records) / state.voters
    assert 0.49 < gender[0] < 0.56
    assert gender[2] == pytest.approx(state.unknown, rel=0.1)
    years = np.bincount(found.codes[2], weights=found.records)
    assert 1e-5 < years[:15].sum() / state.voters < 1e-3  # 1900 to 1914: the odd ones
    assert 44 < 2017 - np.average(found.domains[2].numbers, weights=years) < 54


@HERE
def test_state_3_comes_near_the_paper():
    state = STATES[2]
    everybody = population(state, folder=DATA)
    levels = levels_of(everybody)
    found = grid(everybody, levels, PeopleNodes(everybody, levels), state.voters // 100, [1, 0])
    printed = paper.printed(paper.TABLE_5, paper.DETECTABILITY)
    for key in ((2, 0.05), (2, 0.1), (5, 0.1), (5, 0.15), (10, 0.05), (10, 0.1), (20, 0.1)):
        assert found[key].seen.classes == pytest.approx(printed[state.name, *key]["classes in D'"].value, rel=0.06)
    assert found[10, 0.0].suppressed == 0
    assert all(outcome.suppressed <= suppression for (_, suppression), outcome in found.items())


def test_rows_are_the_classes(tmp_path):
    everybody = population(SMALL[1])
    write_population(everybody, tmp_path / "voters.parquet")
    with DuckDB() as engine:
        again = ClassTable.build(engine.open(str(tmp_path / "voters.parquet")), everybody.columns)
    assert len(again) == len(everybody)
    assert (again.records == everybody.records).all()
    ids = pq.read_table(tmp_path / "voters.parquet", columns=["voter_id"])["voter_id"]
    assert (ids[0].as_py(), ids[-1].as_py()) == ("V00000001", "V00040000")
    assert len(ids.unique()) == 40_000


def test_what_the_paper_prints():
    four = paper.printed(paper.TABLE_4, paper.FEASIBILITY)
    five = paper.printed(paper.TABLE_5, paper.DETECTABILITY)
    assert len(four) == len(five) == 3 * 25
    assert five["State 1", 10, 0.15] == {"classes in D'": Mean(4944, 18), "near k": Mean(550, 20)}
    assert four["State 2", 5, 0.0]["minLink"] == Mean(1_902_000, 3_191_000)
    assert four["State 1", 10, 0.02] == {"minLink": Mean(504, 88), "classes": Mean(324, 20), "records": None}
    assert four["State 1", 5, 0.1]["records"] == Mean(95_808)


@pytest.mark.parametrize(
    ("printed", "ours", "word"),
    [
        (Mean(100), Mean(110), AGREES),
        (Mean(0), Mean(0.4), AGREES),
        (Mean(100, 20), Mean(140), SPREAD),
        (Mean(100), Mean(140, 20), SPREAD),
        (Mean(100, 90), Mean(20), DIFFERS),  # within the spread, but a fifth
        (Mean(4, 7), Mean(0), SPREAD),
        (Mean(100), Mean(76), NEAR),
        (Mean(100), Mean(74), DIFFERS),
        (None, Mean(74), UNKNOWN),
    ],
)
def test_verdicts(printed, ours, word):
    assert verdict(printed, ours) == word


def test_a_row_s_verdict_is_its_worst():
    row = compare(
        "4", "x", {"a": Mean(100, 5), "b": None, "c": Mean(10)}, {"a": Mean(101), "b": Mean(3), "c": Mean(20)}
    )
    assert row.to_dict() == {
        "table": "4",
        "what": "x",
        "printed": "100 (5) / – / 10",
        "ours": "101 / 3 / 20",
        "verdict": "differs: c +100%",
    }
    assert not row.holds
    assert compare("4", "x", {}, {"a": Mean(1)}).verdict == UNKNOWN


def test_a_run_in_small(tmp_path):
    found = run(samples=2, states=SMALL, folder=None, ks=(2, 10, 50), suppressions=(0.0, 0.05, 0.1))
    tables = Counter(row.table.partition(":")[0] for row in found.rows)
    assert (tables["2"], tables["4"], tables["5"]) == (3, 27, 27)
    assert sum(found.verdicts.values()) == len(found.rows)
    plain = json.loads(json.dumps(found.to_dict()))
    assert len(plain["settings"]) == 27
    first = plain["settings"][0]
    assert set(first["figures"]) == {*paper.FEASIBILITY, *paper.DETECTABILITY}
    assert first["first_sample"]["classes"] <= 400
    again = run(samples=2, states=SMALL, folder=None, ks=(2, 10, 50), suppressions=(0.0, 0.05, 0.1))
    assert list(again.rows) == list(found.rows)


def test_the_page(tmp_path):
    found = reproduce("anontokens", tmp_path / "page.html", samples=1)
    text = (tmp_path / "page.html").read_text()
    assert found.in_words() in text
    assert text.count("<svg") == 2
    assert text.count("<tr class=") == len(found.rows)
    for heading in ("Table 2", "Table 4", "Table 5", "Figure 2", "Figure 3"):
        assert f"<h2>{heading}" in text
    with pytest.raises(OptionError, match=r"must end in \.html"):
        reproduce("anontokens", tmp_path / "page.pdf")


def test_the_tkl_paper_comes_out_to_the_last_digit(capsys):
    cli.reproduce("tkl", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["verdicts"] == {"hold": 24, "differ": 0, "unknown": 0}
    assert {row["table"] for row in found["rows"]} == {"1b", "1d", "2b", "2c"}


def test_rows_are_printed(capsys):
    cli.reproduce("fslip")
    assert "rows hold, 0 differ." in capsys.readouterr().out


def test_the_f_slip_paper(monkeypatch, tmp_path):
    found = reproduce("fslip", tmp_path / "page.html")
    assert found.verdicts["differ"] == 0
    assert "Table 7" in (tmp_path / "page.html").read_text()
    more = Reproduced("fslip", "", [Row("Figure 5", "", "1", "2", DIFFERS)], ["noted"], {"persons": 3})
    monkeypatch.setattr("veilmark.reproduce.fslip_experiment.experiment", lambda scope, path: more)
    both = reproduce("fslip", experiment=True)
    assert len(both.rows) == len(found.rows) + 1
    assert (both.verdicts["differ"], both.to_dict()["persons"], both.notes) == (1, 3, ["noted"])


def test_populations_on_request(monkeypatch, tmp_path):
    monkeypatch.setattr("veilmark.reproduce.population.STATES", SMALL)
    monkeypatch.setattr("veilmark.reproduce.population.DATA", tmp_path / "none")
    written = write_populations(tmp_path / "out")
    assert [path.name for path in written] == ["state_1.parquet", "state_2.parquet", "state_3.parquet"]
    assert pq.read_metadata(written[2]).num_rows == 40_000


def test_bad_input_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"'tlk' is not a paper that can be reproduced\. Did you mean 'tkl'"):
        reproduce("tlk")
    with pytest.raises(OptionError, match="at least one sample"):
        run(samples=0)
    with pytest.raises(DataError, match=r"zcta_combined\.csv"):
        population(STATES[0], folder=tmp_path)
    (tmp_path / "zcta_combined.csv").write_text("zcta,pop2010\n00601,5\n")
    with pytest.raises(DataError, match="cannot be read"):
        population(STATES[0], folder=tmp_path)
    with pytest.raises(OptionError, match="cannot be created"):
        write_populations(tmp_path / "no" / "such")
