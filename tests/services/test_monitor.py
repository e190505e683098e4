"""The monitor: scores by hand and by a slow oracle, what is usual, alerts, and the log as it comes."""

from __future__ import annotations

import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strength import PATIENCE
from veilmark.cli.main import main
from veilmark.errors import DataError, OptionError, VeilmarkWarning
from veilmark.services.baseline import Baseline, Usual
from veilmark.services.monitor import Monitor, MonitorOptions, read_log, watch
from veilmark.services.query_log import NotJsonError, Query, parse_query, ready_lines, text_of
from veilmark.study.opening import engine_of, open_source
from veilmark.study.study import Study
from veilmark.tables.domain import as_text
from veilmark.workbench.score import scorer_of

WEIGHTS = {"Migraine": 0.05472, "Flu": 0.05472, "Hypertension": 0.10944, "HIV": 0.21888}
TABLE_1A = [
    ("Calgary", "Female", "Flu"),
    ("Calgary", "Female", "Migraine"),
    ("Edmonton", "Male", "HIV"),
    ("Edmonton", "Male", "Hypertension"),
    ("Edmonton", "Female", "HIV"),
    ("Edmonton", "Female", "Migraine"),
]
TKL = [0.27736, 0.27736, 0.35944, 0.30472, 0.27611, 0.19403]
SHARES = [0.1642, 0.1642, 0.2128, 0.1804, 0.1635, 0.1149]
ROWS = [dict(zip(("City", "Gender", "Diagnosis"), row, strict=True)) for row in TABLE_1A]
PAPER_ROLES = {"City": "quasi", "Gender": "quasi", "Diagnosis": {"role": "sensitive", "weights": WEIGHTS}}
QUIET = MonitorOptions(exposure=())


def paper(options=None, **more):
    frame = pa.Table.from_pylist([{"id": f"p{i}", **row} for i, row in enumerate(ROWS)])
    return Monitor(Study.of(frame, PAPER_ROLES, **more), options=options)


def flat(options=None):
    """A thousand records that all score 1: 0.5 for the weight and 0.5 for how far a class of one value is off."""
    records = [{"id": str(i), "q": i % 2, "s": "ab"[i % 2]} for i in range(1_000)]
    weights = {"role": "sensitive", "weights": {"default": 0.5}}
    study = Study.of(pa.Table.from_pylist(records), {"q": "quasi", "s": weights}, person="id")
    return Monitor(study, options=options)


def line(user, **result):
    return json.dumps({"user": user, "time": "2026-01-02T03:04:05", **result}) + "\n"


def keys(start, count):
    return [str(i) for i in range(start, start + count)]


# --- scores ------------------------------------------------------------------------------------------------


def test_the_paper_s_table_record_by_record():
    monitor = paper()
    for i, row in enumerate(ROWS):
        seen = monitor.observe(f"user {i}", [row])
        assert (seen.records, seen.unknown) == (1, 0)
        assert round(seen.score, 5) == round(seen.score_max, 5) == TKL[i]
        assert round(seen.exposure, 4) == SHARES[i]


def test_the_paper_s_table_as_one_result():
    seen = paper().observe("ann", ROWS, time="2026-01-02")
    assert seen.score == pytest.approx(sum(TKL), abs=3e-5)
    assert round(seen.score_max, 5) == 0.35944
    assert seen.exposure == pytest.approx(1)
    assert seen.time == "2026-01-02"


def test_by_keys_and_by_rows_the_scores_are_the_same():
    monitor = paper(person="id")
    for i, row in enumerate(ROWS):
        assert monitor.observe("ann", keys=[f"p{i}"]).score == monitor.observe("bob", [row]).score


def made_up(seed, quasi=2, sensitive=2, count=300):
    rng = random.Random(seed)
    names = [f"q{i}" for i in range(quasi)], [f"s{i}" for i in range(sensitive)]
    records = [
        {"id": f"k{rng.randrange(count // 2)}"}
        | {q: rng.choice([1, 2, 3, None]) for q in names[0]}
        | {s: rng.choice(["u", "v", "w", "", "x"]) for s in names[1]}
        for _ in range(count)
    ]
    weights = {"": 0.3, "u": 0.1, "v": 0.2, "w": 0.4, "x": 0}
    roles = dict.fromkeys(names[0], "quasi") | {s: {"role": "sensitive", "weights": weights} for s in names[1]}
    return records, Study.of(pa.Table.from_pylist(records), roles)


def explained(study, records):
    with engine_of(study) as engine:
        scorer = scorer_of(open_source(engine, study), study)
        return [scorer.explain(record).tkl for record in records]


@pytest.mark.parametrize(("seed", "quasi", "sensitive"), [(1, 2, 2), (2, 3, 1), (3, 0, 2)])
def test_a_score_is_the_sum_of_its_records_scores(seed, quasi, sensitive):
    records, study = made_up(seed, quasi, sensitive)
    tkl = explained(study, records)
    monitor = Monitor(study, key="id")
    rng = random.Random(seed)
    for _ in range(30):
        rows = [rng.randrange(len(records)) for _ in range(rng.randrange(8))]
        seen = monitor.observe("rows", [records[i] for i in rows])
        assert seen.score == pytest.approx(sum(tkl[i] for i in rows))
        assert seen.score_max == pytest.approx(max((tkl[i] for i in rows), default=0))
        wanted = {f"k{rng.randrange(200)}" for _ in range(rng.randrange(6))}
        seen = monitor.observe("keys", keys=sorted(wanted))
        having = [i for i, r in enumerate(records) if r["id"] in wanted]
        assert seen.records == len(having)
        assert seen.unknown == len(wanted - {r["id"] for r in records})
        assert seen.score == pytest.approx(sum(tkl[i] for i in having))


def test_exposure_counts_each_record_once():
    records, study = made_up(4)
    tkl = explained(study, records)
    monitor = Monitor(study, "id", QUIET)
    rng = random.Random(4)
    by_key, by_row = set(), {}
    for _ in range(40):
        key = f"k{rng.randrange(200)}"
        by_key |= {i for i, r in enumerate(records) if r["id"] == key}
        seen = monitor.observe("keys", keys=[key])
        assert seen.exposure == pytest.approx(sum(tkl[i] for i in by_key) / sum(tkl))
        i = rng.randrange(len(records))
        by_row[tuple(v for name, v in records[i].items() if name != "id")] = tkl[i]
        seen = monitor.observe("rows", [records[i], records[i]])
        assert seen.exposure == pytest.approx(sum(by_row.values()) / sum(tkl))
    assert monitor.users["keys"].distinct_records == len(by_key)
    assert monitor.users["rows"].distinct_records == len(by_row)
    assert monitor.users["rows"].records == 80


@pytest.mark.parametrize("seed", [6, 7, 8])
def test_exposure_by_keys_and_rows_counts_what_surely_differs(seed):
    records, study = made_up(seed)
    tkl = explained(study, records)
    cell = [tuple(v or None for name, v in r.items() if name != "id") for r in records]
    score_of = dict(zip(cell, tkl, strict=True))
    monitor = Monitor(study, "id", QUIET)
    rng = random.Random(seed)
    named, shown = set(), set()
    for _ in range(150):
        if rng.random() < 0.5:
            key = f"k{rng.randrange(200)}"
            named |= {i for i, r in enumerate(records) if r["id"] == key}
            seen = monitor.observe("ann", keys=[key])
        else:
            i = rng.randrange(len(records))
            shown.add(cell[i])
            seen = monitor.observe("ann", [records[i]])
        by_key = Counter(cell[i] for i in named)
        counts = {c: max(by_key[c], int(c in shown)) for c in by_key.keys() | shown}
        assert seen.exposure == pytest.approx(sum(n * score_of[c] for c, n in counts.items()) / sum(tkl))
        assert monitor.users["ann"].distinct_records == sum(counts.values())


def test_exposure_never_exceeds_one():
    for first in ("keys", "rows"):
        monitor = paper(person="id")
        results = {"keys": [f"p{i}" for i in range(6)], "rows": ROWS}
        for _ in range(2):
            assert monitor.observe("ann", **{first: results[first]}).exposure == pytest.approx(1)
            first = "rows" if first == "keys" else "keys"
        assert monitor.users["ann"].exposure <= 1
        assert monitor.users["ann"].distinct_records == 6


def test_an_open_source_makes_the_same_monitor():
    records, study = made_up(9)
    with engine_of(study) as engine:
        table = open_source(engine, study)
        opened = Monitor.of(table, scorer_of(table, study), "id", QUIET)
    monitor = Monitor(study, "id", QUIET)
    for result in ({"keys": ["k1", "k2"]}, {"rows": records[:5]}):
        assert opened.observe("ann", **result) == monitor.observe("ann", **result)


def test_observe_many_is_observe_again_and_again():
    records, study = made_up(5)
    rng = random.Random(5)
    queries = []
    for i in range(400):
        size = rng.choice([0, 1, 2, 3, 40])
        by_rows = {"rows": [rng.choice(records) | {"q0": rng.choice([1, 9])} for _ in range(size)]}
        result = by_rows if rng.random() < 0.5 else {"keys": [f"k{rng.randrange(200)}" for _ in range(size)]}
        queries.append(Query(rng.choice(["ann", "bob"]), **result, time=str(i)))
    one, many = Monitor(study, "id"), Monitor(study, "id")
    singly = [one.observe(q.user, q.rows, q.keys, q.time) for q in queries]
    assert many.observe_many(queries) == singly
    assert one.users == many.users
    assert {a.kind for seen in singly for a in seen.alerts} == {"user", "overall", "exposure"}
    assert sum(len(seen.alerts) for seen in singly) == sum(u.alerts for u in one.users.values())


def test_a_key_stands_for_all_its_records_and_counts_once():
    frame = pa.table({"who": [7, 8, 7, None], "q": [1, 1, 2, 3], "s": ["a", "b", "a", "b"]})
    study = Study.of(frame, {"q": "quasi", "s": {"role": "sensitive", "weights": {"default": 1}}})
    with pytest.warns(VeilmarkWarning, match="1 records have no 'who'"):
        monitor = Monitor(study, "who")
    seen = monitor.observe("ann", keys=[7, "7", 7.0])
    assert (seen.records, seen.unknown) == (2, 0)
    seen = monitor.observe("ann", keys=["9", "", None, "07"])
    assert (seen.records, seen.unknown, seen.score, seen.score_max) == (0, 3, 0.0, 0.0)
    assert monitor.users["ann"].distinct_records == 2


def test_numbers_texts_and_missing_values():
    frame = pa.table({"q": [30, None, 31], "s": ["a", "b", None]})
    study = Study.of(frame, {"q": "quasi", "s": {"role": "sensitive", "weights": {"default": 1}}})
    monitor = Monitor(study)
    alike = [{"q": q, "s": "a"} for q in (30, "30", 30.0, np.int64(30))]
    assert monitor.observe("ann", alike).records == 4
    assert monitor.observe("ann", [{"q": q, "s": "b"} for q in (None, "", math.nan)]).records == 3
    assert monitor.observe("ann", [{"q": 31, "s": None, "more": [1]}]).records == 1
    strangers = [{"q": q, "s": "a"} for q in (True, "thirty", 31, "30.5", "\ud800")]
    for _ in range(2):
        assert monitor.observe("ann", strangers).unknown == 5
    assert monitor.users["ann"].distinct_records == 3


@pytest.mark.parametrize(
    ("written", "alike", "others"),
    [
        (["30", "31"], [30, 30.0, "30.0", "30.00", np.float32(30), Decimal("30.0")], ["030", 30.5, True]),
        (["30.0", "31.5"], [30, 30.0, "30", "30.00"], [31, "30.1"]),
        (["True", "False"], [True, "true", "TRUE", np.True_], [1, "yes"]),
        ([True, False], [True, "True", "true"], [1, "t"]),
        (["2026-01-02", "x"], [date(2026, 1, 2), datetime(2026, 1, 2), "2026-01-02T00:00:00"], [date(2026, 1, 3)]),
        ([datetime(2026, 1, 2), None], [date(2026, 1, 2), datetime(2026, 1, 2), "2026-01-02"], ["2026-01-02 00:00:01"]),
        (["30", "30.0"], ["30", 30], ["30.00"]),
    ],
)
def test_values_that_are_written_otherwise(written, alike, others):
    weights = {"role": "sensitive", "weights": {"default": 1}}
    monitor = Monitor(Study.of(pa.table({"q": written, "s": ["a", "a"]}), {"q": "quasi", "s": weights}))
    for _ in range(2):
        for value in alike:
            seen = monitor.observe("ann", [{"q": value, "s": "a"}])
            assert (seen.records, seen.unknown) == (1, 0), value
        for value in others:
            assert monitor.observe("ann", [{"q": value, "s": "a"}]).unknown == 1, value
    assert monitor.users["ann"].distinct_records == 1


def test_only_so_many_strange_values_are_remembered(monkeypatch):
    monkeypatch.setattr("veilmark.services.query_log.REMEMBERED", 3)
    monitor = paper()
    rows = [ROWS[0] | {"City": f"Nowhere {i}"} for i in range(9)]
    for row in rows + rows:
        assert monitor.observe("ann", [row, ROWS[0]]).unknown == 1
    assert sum(map(len, monitor._source.codes)) < 20


def test_a_frame_of_rows():
    assert paper().observe("ann", pa.Table.from_pylist(ROWS[:2])).score == pytest.approx(TKL[0] + TKL[1], abs=1e-5)


@given(st.one_of(st.floats(), st.integers(-(2**62), 2**62), st.booleans(), st.text(), st.none(), st.dates()))
def test_the_text_of_a_value_is_the_engines(value):
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        return
    assert text_of(value) == as_text(pa.array([value]))[0].as_py()


# --- what is usual -----------------------------------------------------------------------------------------


def test_the_robust_spread_by_hand():
    usual = Usual.of(np.array([4.0, 1, 100, 2, 3]), floor=0.001)
    assert usual == Usual(3, 1.4826)
    assert usual.times(10) == pytest.approx(7 / 1.4826)
    assert Usual.of(np.array([1.0, 2, 3, 10]), floor=0.001) == Usual(2.5, 1.4826)


def test_scores_that_are_all_alike_still_have_a_spread():
    assert Usual.of(np.full(9, 2.0), floor=0.001).spread == pytest.approx(1.4826 * 0.1)
    assert Usual.of(np.zeros(9), floor=0.001).spread == pytest.approx(1.4826 * 0.001)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_the_median_is_the_median(scores):
    median = float(np.median(scores))
    deviation = max(np.median(np.abs(np.array(scores) - median)), 0.05 * median, 1e-6)
    usual = Usual.of(np.array(scores), 1e-6)
    assert usual.median == pytest.approx(median)
    assert usual.spread == pytest.approx(1.4826 * deviation)


def test_a_baseline_judges_late_forgets_and_is_renewed_by_and_by():
    baseline = Baseline(window=40, min_history=4, floor=1)
    for score in (1, 2, 3):
        baseline.add(score)
    assert baseline.usual is None
    baseline.add(4)
    assert baseline.usual.median == 2.5
    baseline.add(5)
    assert baseline.usual.median == 2.5
    baseline.add(6)
    assert baseline.usual.median == 3.5
    for _ in range(40):
        baseline.add(9)
    assert baseline.usual.median == 9


# --- alerts ------------------------------------------------------------------------------------------------


def test_a_user_s_own_usual():
    monitor = flat(QUIET)
    for i in range(19):
        assert not monitor.observe("ann", keys=keys(i, 2)).alerts
    assert not monitor.observe("ann", keys=keys(0, 2)).alerts, "the twentieth is not judged, it completes the history"
    # The median is 2, every deviation 0, so the least one counts: a quarter of the mean record's score of 1.
    spread = 1.4826 * 0.25
    assert not monitor.observe("ann", keys=keys(0, 4)).alerts
    seen = monitor.observe("ann", keys=keys(0, 12), time="now")
    own, overall = seen.alerts
    assert (own.user, own.time, own.kind, own.records, own.score) == ("ann", "now", "user", 12, 12)
    assert own.reason == f"score 12 is {10 / spread:.1f} times the usual deviation above ann's usual 2"
    assert overall.kind == "overall"
    assert overall.reason == f"score 12 is {10 / spread:.1f} times the usual deviation above all users' usual 2"
    assert monitor.users["ann"].alerts == 2


def test_over_all_a_user_is_told_of_again_only_at_a_new_height():
    monitor = flat(QUIET)
    for i in range(300):
        monitor.observe(f"user {i % 30}", keys=keys(i, 2))
    told = [len(monitor.observe("large", keys=keys(0, size)).alerts) for size in (20, 20, 19, 21, 21)]
    assert told == [1, 0, 0, 1, 0]


def test_a_threshold():
    monitor = flat(MonitorOptions(threshold=50, exposure=()))
    monitor.observe_many(Query("ann", keys=keys(0, 2)) for _ in range(20))
    assert not monitor.observe("ann", keys=keys(0, 12)).alerts


def test_each_exposure_limit_is_told_once_and_only_the_highest_reached():
    monitor = flat(MonitorOptions(exposure=(0.05, 0.01, 0.02)))
    reasons = []
    for start, count in [(0, 9), (0, 9), (9, 1), (0, 10), (10, 39), (49, 1), (50, 900)]:
        seen = monitor.observe("ann", keys=keys(start, count))
        reasons.append([a.reason for a in seen.alerts if a.kind == "exposure"])
    assert reasons == [
        [],
        [],
        ["10 distinct records returned so far, 1.00% of the source's score (limit 1.00%)"],
        [],
        ["49 distinct records returned so far, 4.90% of the source's score (limit 2.00%)"],
        ["50 distinct records returned so far, 5.00% of the source's score (limit 5.00%)"],
        [],
    ]
    assert monitor.observe("bob", keys=keys(0, 10)).alerts


def test_the_whole_source_reaches_the_limit_of_one():
    frame = pa.table({"q": [str(i % 7) for i in range(99)], "s": [str(i % 5) for i in range(99)]})
    weights = {str(i): 0.1 * i for i in range(5)}
    study = Study.of(frame, {"q": "quasi", "s": {"role": "sensitive", "weights": weights}})
    study = Study.of(frame.append_column("id", pa.array(range(99))), study.spec.model_dump()["attributes"])
    monitor = Monitor(study, "id", MonitorOptions(exposure=(1,)))
    assert [len(monitor.observe("ann", keys=[i]).alerts) for i in range(99)] == [0] * 98 + [1]


def test_a_source_without_any_score():
    frame = pa.table({"q": ["a", "a"], "s": ["u", "u"]})
    monitor = Monitor(Study.of(frame, {"q": "quasi", "s": {"role": "sensitive", "weights": {"u": 0}}}))
    for _ in range(30):
        seen = monitor.observe("ann", [{"q": "a", "s": "u"}])
    assert (seen.score, seen.exposure, seen.alerts) == (0, 0, ())


# --- nothing is known --------------------------------------------------------------------------------------


def strange(kind, i):
    return {"keys": [f"P{i}"]} if kind == "keys" else {"rows": [ROWS[0] | {"City": "calgary"}]}


@pytest.mark.parametrize(("kind", "hint"), [("rows", "Compare City, Gender, Diagnosis"), ("keys", "Check key=")])
def test_results_of_strangers_only_are_warned_of_once(kind, hint):
    monitor = paper(person="id")
    for i in range(19):
        monitor.observe("ann", **strange(kind, i))
        monitor.observe("ann", **{kind: []})
    with pytest.warns(VeilmarkWarning, match=f"In 20 results in a row, none of the {kind} .* written.*{hint}"):
        monitor.observe("bob", **strange(kind, 19))
    for i in range(50):
        monitor.observe("ann", **strange(kind, i))


def test_a_known_record_ends_the_row():
    monitor = paper(person="id")
    for i in range(60):
        monitor.observe("ann", ROWS[:1] if i % 20 == 19 else strange("rows", i)["rows"])


# --- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({}, "Give either the keys of the returned records or their rows"),
        ({"rows": [], "keys": []}, "not both"),
        ({"rows": [{"City": "Calgary", "Diagnosis": "Flu"}]}, "A returned row has no 'Gender'"),
        ({"rows": ["Calgary"]}, "not an object of names and plain values"),
        ({"rows": [{"City": ["Calgary"], "Gender": 1, "Diagnosis": 1}]}, "plain values"),
        ({"rows": [{"City": (1, 2), "Gender": 1, "Diagnosis": 1}]}, "plain values"),
        ({"keys": [["p1"]]}, "A returned key is not a plain value"),
    ],
)
def test_a_result_that_cannot_be_read_changes_nothing(result, words):
    monitor = paper(person="id")
    with pytest.raises(DataError, match=words):
        monitor.observe_many([Query("ann", keys=["p1"]), Query("ann", **result)])
    assert monitor.users == {}


def test_keys_need_a_key_column():
    with pytest.raises(OptionError, match=r"the key column is not named. Name it with key="):
        paper().observe("ann", keys=["p1"])
    with pytest.raises(DataError, match=r"has no column 'Cty', which the key of the log names. Did you mean 'City'"):
        Monitor(Study.of(pa.Table.from_pylist(ROWS), PAPER_ROLES), "Cty")


@pytest.mark.parametrize("options", [{"threshold": 0}, {"exposure": (0.1, 1.5)}, {"window": 1}, {"min_history": 0}])
def test_options_that_make_no_sense(options):
    with pytest.raises(OptionError):
        MonitorOptions(**options)


# --- the log -----------------------------------------------------------------------------------------------


def test_a_line():
    assert parse_query('{"user": "ann", "time": 5, "keys": ["p1"]}') == Query("ann", keys=["p1"], time="5")
    assert parse_query(b'\xef\xbb\xbf{"user": 7, "rows": []}\r') == Query("7", rows=[])
    assert parse_query('{"user": "a\\u001b[2J\\ud800", "keys": []}').user == r"a\u001b[2J\ud800"


@pytest.mark.parametrize("line", [b"", b"ann", b"[1]", b'{"user": ', b"\xff\xfe", b"[" * 100_000, b"null"])
def test_a_line_that_is_not_json(line):
    with pytest.raises(NotJsonError, match="not a JSON object"):
        parse_query(line)


@pytest.mark.parametrize("line", ['{"keys": []}', '{"user": "ann"}', '{"user": "ann", "rows": {}}', '{"user": [1]}'])
def test_a_line_that_is_no_query(line):
    with pytest.raises(DataError, match=r"The line has (no user|neither)"):
        parse_query(line)


class Trickle(io.BytesIO):
    """Gives a few bytes at a time, as a pipe may."""

    def __init__(self, content, step):
        super().__init__(content)
        self.step = step

    def read1(self, size=-1):
        return super().read1(min(self.step, size))


@given(st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"\n", b"")), max_size=12), st.integers(1, 30))
def test_lines_come_whole_however_they_are_cut(lines, step):
    blocks = list(ready_lines(Trickle(b"\n".join(lines), step), most=3))
    assert [line for block in blocks for line in block] == (lines[:-1] if lines and not lines[-1] else lines)
    assert all(0 < len(block) <= 3 for block in blocks)


def log_of(*lines):
    return io.BytesIO("\n".join(lines).encode())


def test_watching_a_log():
    study = Study.of(pa.Table.from_pylist(ROWS), PAPER_ROLES)
    log = line("ann", rows=ROWS[:1]), "{", line("bob", rows=ROWS)
    told = []
    with pytest.warns(VeilmarkWarning, match="Line 3 of the log was skipped. This is not a JSON object"):
        quiet = watch(study, log_of(*log), MonitorOptions(exposure=(0.5,)))
    with pytest.warns(VeilmarkWarning):
        loud = watch(study, log_of(*log), MonitorOptions(exposure=(0.5,)), tell=told.extend)
    assert (quiet.queries, quiet.records, quiet.malformed, quiet.stopped) == (2, 7, 1, False)
    assert [alert.user for alert in quiet.alerts] == ["bob"]
    assert tuple(told) == quiet.alerts
    assert loud == replace(quiet, alerts=())
    with pytest.raises(DataError, match="Line 3 of the log"):
        watch(study, log_of(*log), strict=True)


def test_a_monitor_goes_on_with_the_next_log():
    monitor = paper(QUIET)
    read_log(monitor, log_of(line("ann", rows=ROWS[:3])))
    assert read_log(monitor, log_of(line("ann", rows=ROWS[3:]))).users["ann"].exposure == pytest.approx(1)


# --- the command line --------------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path):
    rows = "\n".join(",".join((f"p{i}", *row)) for i, row in enumerate(TABLE_1A))
    (tmp_path / "d.csv").write_text(f"id,City,Gender,Diagnosis\n{rows}\n")
    weights = json.dumps(WEIGHTS)
    (tmp_path / "study.yaml").write_text(
        "version: 1\nsource: d.csv\nattributes:\n  City: {role: quasi}\n  Gender: {role: quasi}\n"
        f"  Diagnosis: {{role: sensitive, weights: {weights}}}\n"
    )
    return tmp_path / "study.yaml"


def run(study, log, *options, code=0):
    (study.parent / "log.jsonl").write_text(log)
    arguments = ["monitor", str(study), "--log", str(study.parent / "log.jsonl"), *options]
    assert main(arguments) == code


def test_json(study, capsys):
    log = line("ann", keys=["p0", "p2", "secret"]) + "\n" + line("bob", rows=[ROWS[5]]) + line("ann", keys=["p0"])
    run(study, log, "--log-key", "id", "--exposure", "0.3", "--json")
    out, err = capsys.readouterr()
    got = json.loads(out)
    assert (got["queries"], got["records"], got["unknown"]) == (3, 4, 1)
    assert got["malformed"] == {"lines": 0, "first": []}
    (alert,) = got["alerts"]
    assert (alert["user"], alert["time"], alert["kind"]) == ("ann", "2026-01-02T03:04:05", "exposure")
    assert alert["reason"] == "2 distinct records returned so far, 37.70% of the source's score (limit 30.00%)"
    assert (alert["records"], alert["score"]) == (2, pytest.approx(0.6368))
    assert got["users"]["ann"] == {
        "queries": 2,
        "records": 3,
        "unknown": 1,
        "distinct_records": 2,
        "exposure": pytest.approx(0.377, abs=1e-4),
        "alerts": 1,
    }
    assert list(got["users"]) == ["ann", "bob"]
    assert err == ""
    assert "p0" not in out
    assert "secret" not in out


def test_text_for_a_person(study, capsys):
    run(study, line("ann", keys=["p0", "x"]) + line("[b]", keys=["p1"]), "--log-key", "id", "--exposure", "0.1")
    out, err = capsys.readouterr()
    assert out.startswith("2026-01-02T03:04:05  ann: 1 distinct records returned so far, 16.42% of")
    assert "2 queries by 2 users" in out
    assert "[b]" in out
    assert "1 of the returned records are not in the source" in out
    assert err == ""


@pytest.mark.filterwarnings("always::veilmark.errors.VeilmarkWarning")
def test_malformed_lines_are_counted_and_the_first_are_named(study, capsys):
    bad = ["{", '{"user": "ann"}', line("ann", rows=[{"City": "SECRET"}]).strip(), *["oops"] * 7]
    run(study, line("ann", rows=ROWS[:1]) + "\n".join(bad) + "\n" + line("ann", rows=ROWS), "--json")
    out, err = capsys.readouterr()
    got = json.loads(out)
    assert got["queries"] == 2
    assert got["malformed"]["lines"] == 10
    assert [m["line"] for m in got["malformed"]["first"]] == [2, 3, 4, 5, 6]
    assert err.count("\n") == 5
    assert "Note: Line 4 of the log was skipped. A returned row has no 'Gender'" in err
    assert "SECRET" not in out + err


@pytest.mark.parametrize(
    ("log", "options", "words"),
    [
        ("not json\n" + line("ann", rows=[]), [], "Line 1 of the log: This is not a JSON object"),
        ('{"user": 1}\n{}\n', [], "No line of the log is a query. Line 1: The line has neither"),
        (line("ann", rows=[]) + "{\n", ["--strict"], "Line 2 of the log: This is not a JSON object"),
        (line("ann", rows=[{}]), ["--strict"], "Line 1 of the log: A returned row has no 'City'"),
        (line("ann", keys=["p1"]), [], "the key column is not named"),
        ("", ["--exposure", "0.1,x"], "--exposure takes shares"),
        ("", ["--exposure", "7"], "at most 1, not 7"),
        ("", ["--threshold", "0"], "threshold must be above 0"),
        ("", ["--log-key", "Id"], "has no column 'Id'.*Did you mean 'id'"),
        ("", ["--log", "gone.jsonl"], "The log 'gone.jsonl' cannot be read: No such file"),
    ],
)
def test_errors(study, capsys, log, options, words):
    run(study, log, *options, "--json", code=2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert re.search(words, err), err


def test_an_empty_log_is_a_quiet_one(study, capsys):
    run(study, "\n", "--json")
    assert json.loads(capsys.readouterr().out)["queries"] == 0


def test_without_quasi_identifiers_it_is_said(study, capsys):
    study.write_text(study.read_text().replace("role: quasi", "role: other"))
    run(study, line("ann", rows=[{"Diagnosis": "HIV"}]))
    assert "names no quasi-identifier" in capsys.readouterr().out


def live(study, *options):
    command = [sys.executable, "-c", "from veilmark.cli.main import run; run()", "monitor", str(study), *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, env=os.environ | {"COLUMNS": "120"})


def test_an_alert_comes_before_the_log_ends(study):
    with live(study, "--exposure", "0.3") as process:
        process.stdin.write(line("ann", rows=ROWS[:1]) + line("ann", rows=ROWS[1:3]) + '{"user": "bo')
        process.stdin.flush()
        assert "ann: 3 distinct records returned" in process.stdout.readline()
        process.stdin.write('b", "rows": []}')
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "3 queries by 2 users" in out
    assert err == ""


def test_ctrl_c_ends_the_log(study):
    with live(study, "--exposure", "0.1") as process:
        process.stdin.write(line("ann", rows=ROWS))
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "1 queries by 1 users" in out
    assert "Stopped" in err


def test_strict_stops_after_the_lines_before(study, capsys):
    good = line("ann", rows=ROWS[:1]), line("ann", rows=ROWS[1:2])
    for bad in ("{\n", line("ann", rows=[{}])):
        run(study, good[0] + bad + good[1] + "{", "--strict", "--exposure", "0.1,0.3", code=2)
        out, err = capsys.readouterr()
        assert out.count("\n") == 1
        assert "(limit 10.00%)" in out
        assert err.startswith("Error: Line 2 of the log: ")
