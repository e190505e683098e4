"""Row marks: every class stays large and diverse enough in every copy; leaks name who leaked, and nobody else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from veilmark.errors import OptionError, StudyError
from veilmark.ledger import Key, Ledger
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.mark.rowmarks import fingerprints, number_rows
from veilmark.privacy.models import DistinctL, TCloseness
from veilmark.study.study import Study
from veilmark.trace.accuse import trace_file
from veilmark.trace.bits import marks_of
from veilmark.trace.columns import match_columns
from veilmark.trace.evidence import Marked
from veilmark.trace.leaked import LeakedTable
from veilmark.trace.sighting import sightings
from veilmark.veil.ola import Ola
from veilmark.workbench.release import release

NAMES = ("ada", "bob", "cyd", "dan", "eve")
QUASI = ["area", "sex", "age"]


def people(rows=1_500, seed=0, areas=4):
    """A small table: few classes, so that covers alone cannot carry a code."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "area": rng.choice([str(10 + i) for i in range(areas)], rows),
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.choice(["20", "30", "40"], rows),
            "dx": rng.choice(list("uvwxyz"), rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05]),
            "cost": rng.integers(100, 99_999, rows),
        }
    )


def study(data, **more):
    roles = {**dict.fromkeys(QUASI, "quasi"), "dx": "sensitive", "cost": "other"}
    return Study.of(data, roles, **more)


def published(place, data, models=(), marks="rows", collusion=2, seed=3):
    marking = CopyMarking(NAMES, 5, decoys=0, collusion=collusion, false_accusation=1e-4, marks=marks)
    job = ReleaseRequest(None, (), marking, models=models, method=Ola(0.0), seed=seed)
    made = release(study(data), job, place / "ledger.db", place / "key", place / "copies")
    book = Ledger.open(place / "ledger.db")
    secret = book.secrets(made.release, Key.open(place / "key"))
    copies = {c.name: pa_csv.read_csv(c.file, convert_options=TEXTS) for c in made.copies}
    return made, Marked.of(made.release, secret), copies


TEXTS = pa_csv.ConvertOptions(column_types=dict.fromkeys([*QUASI, "dx", "cost"], pa.string()))


def accused(marked, leak):
    return set(trace_file([marked], leak, 1e-4).accused)


def sizes(table):
    return Counter(zip(*(table.column(c).to_pylist() for c in QUASI), strict=True))


def test_a_small_table_carries_a_code_by_rows(tmp_path):
    data = people()
    with pytest.raises(OptionError, match="marks='both'"):
        published(tmp_path, data, marks="classes")
    assert not list(tmp_path.iterdir())
    made, marked, copies = published(tmp_path, data)
    whole = sizes(data)
    assert len(marked.rows.marked) >= 60
    for i, copy in enumerate(made.copies):
        table = copies[copy.name]
        assert len(table) == copy.records == len(data) - copy.withheld_records
        assert copy.withheld_records == (~marked.rows.holds[i]).sum() < 0.05 * len(data)
        assert sizes(table).keys() == whole.keys()
        assert min(sizes(table).values()) >= 5


@pytest.mark.parametrize("marks", ["rows", "both"])
def test_leaks_name_their_source(tmp_path, marks):
    made, marked, copies = published(tmp_path, people(), marks=marks)
    assert made.to_dict()["cost"]["row_marks"] == len(marked.rows.marked)
    rng = np.random.default_rng(1)
    for name, table in copies.items():
        assert accused(marked, table) == {name}
        some = table.take(pa.array(rng.permutation(len(table))[: int(0.8 * len(table))]))
        assert accused(marked, some) == {name}
        renamed = some.rename_columns({"cost": "amount", "dx": "code"}).drop_columns("code")
        assert accused(marked, renamed) == {name}


def test_every_row_mark_can_be_seen(tmp_path):
    _, marked, copies = published(tmp_path, people())
    seen = sightings(marked, LeakedTable(copies["eve"]), match_columns(marked, LeakedTable(copies["eve"])))[0]
    table = marks_of(marked, seen).to_pylist()
    assert [row["mark"] for row in table] == ["row mark"] * len(marked.rows.marked)
    assert all(row["told"] and row["in_leak"] == row["holds: eve"] for row in table)


def test_a_changed_column_is_left_aside(tmp_path):
    _, marked, copies = published(tmp_path, people())
    leak = copies["cyd"]
    other = pa.array([text[::-1] for text in leak.column("dx").to_pylist()[::-1]])
    assert accused(marked, leak.set_column(3, "dx", other)) == {"cyd"}
    without = trace_file([marked], leak.drop_columns(["dx"]), 1e-4)
    assert without.accused == ("cyd",)


def test_mixes_of_two_name_no_third(tmp_path):
    _, marked, copies = published(tmp_path, people())
    rng = np.random.default_rng(5)
    hits = 0
    for one, two in [("ada", "bob"), ("cyd", "eve"), ("bob", "dan"), ("dan", "eve")]:
        rows = [set(map(tuple, (r.values() for r in copies[n].to_pylist()))) for n in (one, two)]
        both = rows[0] & rows[1]
        mixed = sorted(both | {row for row in rows[0] ^ rows[1] if rng.random() < 0.5})
        leak = pa.table({c: [row[i] for row in mixed] for i, c in enumerate(copies[one].column_names)})
        named = accused(marked, leak)
        assert named <= {one, two}
        hits += bool(named)
    assert hits >= 3


def test_limits_hold_with_and_without_the_marked_rows(tmp_path):
    """The files are measured anew when they are written, too; here by counting."""
    data = people(6_000, 2, areas=20)
    models = (DistinctL("dx", 4), TCloseness("dx", 0.3))
    _, marked, copies = published(tmp_path, data, models)
    assert Counter(marked.rows.owner[marked.rows.marked].tolist()).most_common(1)[0][1] == 1
    for table in copies.values():
        values = {}
        for row in table.to_pylist():
            values.setdefault(tuple(row[c] for c in QUASI), set()).add(row["dx"])
        assert min(map(len, values.values())) >= 4


@pytest.mark.parametrize("marks", ["rows", "both"])
def test_what_groups_lose_by_row_marks_is_counted_and_limited(tmp_path, marks):
    """Over several fresh keys, from the copies themselves."""
    data = people()
    for turn in range(3):
        (place := tmp_path / str(turn)).mkdir()
        made, _, copies = published(place, data, marks=marks, seed=turn)
        worst = 0.0
        for column in QUASI:
            whole = Counter(data.column(column).to_pylist())
            for copy in copies.values():
                there = Counter(copy.column(column).to_pylist())
                worst = max(worst, *(1 - there[label] / count for label, count in whole.items()))
        assert made.cost["most_lost"] == pytest.approx(worst)
        assert worst > 0.001
        marking = CopyMarking(NAMES, 5, decoys=0, collusion=2, false_accusation=1e-4, marks=marks, most_lost=0.001)
        job = ReleaseRequest(None, (), marking, method=Ola(0.0), seed=turn)
        with pytest.raises(OptionError, match=r"but most_lost= allows at most 0\.1%"):
            release(study(data), job, place / "limited.db", place / "limited.key", place / "limited")


def test_the_ledger_keeps_fingerprints_and_no_values(tmp_path):
    data = people()
    data = data.set_column(4, "cost", pa.array([f"secret {i}" for i in range(len(data))]))
    published(tmp_path, data)
    book = Ledger.open(tmp_path / "ledger.db")
    secret = str(book.secrets(book.releases()[0].id, Key.open(tmp_path / "key")))
    assert "secret " not in secret


def test_the_same_rows_are_marked_in_the_next_release(tmp_path):
    data = people()
    _, first, copies = published(tmp_path, data)
    later = pa.concat_tables([data.slice(40), people(60, 9)])
    marking = CopyMarking(NAMES, 5, decoys=0, collusion=2, false_accusation=1e-4, marks="rows")
    made = release(
        study(later),
        ReleaseRequest(None, (), marking, method=Ola(0.0), seed=8),
        tmp_path / "ledger.db",
        tmp_path / "key",
        tmp_path / "again",
    )
    again = {c.name: pa_csv.read_csv(c.file, convert_options=TEXTS) for c in made.copies}
    rows = [set(map(tuple, (r.values() for r in of["bob"].to_pylist()))) for of in (copies, again)]
    kept = sorted(rows[0] & rows[1])
    leak = pa.table({c: [row[i] for row in kept] for i, c in enumerate(copies["bob"].column_names)})
    assert accused(first, leak) == {"bob"}


def test_innocents_are_named_as_seldom_as_the_probability_says(tmp_path):
    """The holds of one recipient are drawn anew, many times. Printed is the probability for any of five."""
    _, marked, copies = published(tmp_path, people())
    rng = np.random.default_rng(6)
    leak = copies["ada"].take(pa.array(rng.permutation(1_400)[:900]))
    seen = []
    for _ in range(150):
        marked.rows.holds[3] = rng.random(len(marked.rows.p)) < marked.rows.p
        seen.append(next(s.p_value for s in trace_file([marked], leak, 1e-4).suspects if s.name == "dan"))
    for a in (0.5, 0.1, 0.02):
        assert np.mean(np.array(seen) <= a) <= a / 5 + 4 * np.sqrt(a / 5 / len(seen))


def test_fingerprints_follow_the_value_and_not_its_spelling():
    spelled = pa.table({"a": ["12", "12.0", " 12", "13", None, "Flu", "FLU "]})
    prints = fingerprints(spelled, bytes(32))[:, 0].tolist()
    assert prints[0] == prints[1] == prints[2] != prints[3]
    assert prints[5] == prints[6]
    assert len({prints[0], prints[3], prints[4], prints[5]}) == 4
    assert fingerprints(spelled, bytes(range(32)))[0, 0] != prints[0]
    count, each = number_rows(np.array([0, 0, 1, 0]), np.array([[1, 2], [1, 3], [1, 2], [1, 2]], dtype=np.uint32))
    assert (count, each[0] == each[3], len(set(each.tolist()))) == (3, True, 3)


def test_what_row_marks_need_is_said(tmp_path):
    with pytest.raises(OptionError, match="collusion="):
        CopyMarking(NAMES, 5, decoys=0, covers=3, marks="rows")
    with pytest.raises(OptionError, match="marks='both'"):
        CopyMarking(NAMES, 5, decoys=2, collusion=2, marks="rows")
    data = people().append_column("id", pa.array([f"p{i // 2}" for i in range(1_500)]))
    marking = CopyMarking(NAMES, 5, decoys=0, collusion=2, false_accusation=1e-4, marks="rows")
    with pytest.raises(StudyError, match="one record per person"):
        release(study(data, person="id"), ReleaseRequest(None, (), marking, method=Ola(0.5)), dry_run=True)
    with pytest.raises(OptionError, match=r"row marks \(records that differ"):
        release(
            study(people().drop_columns(["cost"]).slice(0, 300).append_column("cost", pa.array(["1"] * 300))),
            ReleaseRequest(None, (), marking, method=Ola(0.5)),
            dry_run=True,
        )
