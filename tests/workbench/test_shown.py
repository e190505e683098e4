"""Covers that were shown: the next release has new ones, and who saw the old ones can frame nobody with them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

from marked_release import QUASI, read
from veilmark.errors import OutputError
from veilmark.ledger import Key, Ledger
from veilmark.mark.marking import CopyMarking
from veilmark.mark.request import ReleaseRequest
from veilmark.output import write_table
from veilmark.study.opening import open_study
from veilmark.trace.evidence import Marked
from veilmark.trace.shown import RENEWED
from veilmark.veil.ola import Ola
from veilmark.workbench import custody, trace_report
from veilmark.workbench.release import release as run_release
from veilmark.workbench.trace import trace as run_trace

NAMES = ("ada", "bob", "cyd", "dan", "eve")
STUDY = """version: 1
source: patients.csv
attributes:
  zip: {role: quasi, hierarchy: {mask: 5}}
  gender: {role: quasi}
  yob: {role: quasi, hierarchy: {intervals: [2, 4, 8]}}
  cost: {role: other}
"""


class Study:
    """A study that is released several times under a fresh key."""

    def __init__(self, folder, seed=0):
        self.folder, self.made = folder, 0
        self.ledger, self.key = folder / "ledger.db", folder / "key"
        rng = np.random.default_rng(seed)
        count = 4_000
        table = pa.table(
            {
                "zip": [f"3{i:02d}00" for i in rng.integers(0, 30, count)],
                "gender": rng.choice(["f", "m"], count),
                "yob": 1950 + 2 * rng.integers(0, 8, count),
                "cost": rng.integers(1, 400, count),
            }
        )
        write_table(table, folder / "patients.csv")
        (folder / "study.yaml").write_text(STUDY)

    def release(self, seed=None, names=NAMES, **marking):
        self.made += 1
        plan = CopyMarking(names, 5, decoys=0, **({"collusion": 2} | marking))
        job = ReleaseRequest(None, (), plan, method=Ola(0.1), seed=seed)
        study = open_study(self.folder / "study.yaml")
        return run_release(study, job, self.ledger, self.key, self.folder / f"copies{self.made}")

    def copy(self, turn, name):
        return self.folder / f"copies{turn}" / f"{name}.csv"

    def marked(self, release):
        return Marked.of(release, Ledger.open(self.ledger).secrets(release, Key.open(self.key)))

    def open_commitment(self, release):
        custody.open_commitment(self.ledger, self.key, release, self.folder / f"opened-{release}.json")

    def show_marks(self, release):
        found = run_trace(self.ledger, self.key, file=self.copy(1, "ada"), release=release)
        trace_report.note_marks_shown(found, self.ledger, self.key)

    def trace(self, file):
        return run_trace(self.ledger, self.key, file=file)


def frame(study, shown, turn, framer, victim):
    """A file made of a copy of a later release so that it looks like the victim's, by the covers that were shown."""
    covers = [tuple(row) for row in shown.texts(shown.class_codes[:, shown.covers])]
    held = shown.holds[shown.names.index(victim)]
    lacks = {c for c, holds in zip(covers, held, strict=True) if not holds}
    rows = [row for row in read(study.copy(turn, framer)) if tuple(row[c] for c in QUASI) not in lacks]
    there = {tuple(row[c] for c in QUASI) for row in rows}
    made_up = [c for c, holds in zip(covers, held, strict=True) if holds and c not in there]
    rows += [{**rows[0], **dict(zip(QUASI, c, strict=True))} for c in made_up for _ in range(9)]
    write_csv(pa.Table.from_pylist(rows), study.folder / "leak.csv")
    return study.folder / "leak.csv"


@pytest.mark.parametrize("way", ["open_commitment", "show_marks"])
def test_what_was_shown_of_one_release_frames_nobody_in_the_next(tmp_path, way):
    """Over several fresh keys."""
    for turn in range(3):
        folder = tmp_path / str(turn)
        folder.mkdir()
        study = Study(folder, turn)
        first = study.release().release
        getattr(study, way)(first)
        later = study.release()
        assert RENEWED in later.notes
        found = study.trace(frame(study, study.marked(first), 2, "eve", "bob"))
        chances = {s.name: s.p_value for s in found.suspects if s.release == later.release}
        assert chances["bob"] > 1e-3
        assert any(f"The covers of release {first} were disclosed" in note for note in found.notes) == bool(
            found.accused
        )


def test_covers_stay_until_they_are_shown(tmp_path):
    study = Study(tmp_path)
    first, second = study.release(seed=1), study.release(seed=2)
    assert study.marked(first.release).cover_key == study.marked(second.release).cover_key
    study.open_commitment(first.release)
    third, fourth = study.release(seed=3), study.release(seed=4)
    assert study.marked(third.release).cover_key == study.marked(fourth.release).cover_key
    assert study.marked(third.release).cover_key != study.marked(first.release).cover_key
    assert [RENEWED in made.notes for made in (first, second, third, fourth)] == [False, False, True, False]
    study.open_commitment(second.release)  # of covers that are in use no more
    assert RENEWED not in study.release(seed=5).notes


def test_the_same_release_again_is_the_same(tmp_path):
    study = Study(tmp_path)
    study.open_commitment(study.release(seed=1).release)
    study.release(seed=1)
    assert study.copy(1, "bob").read_bytes() == study.copy(2, "bob").read_bytes()


def test_a_verdict_does_not_say_which_of_several_copies_it_was(tmp_path):
    study = Study(tmp_path)
    first, second = study.release(seed=1).release, study.release(seed=2).release
    found = study.trace(study.copy(1, "bob"))
    assert found.accused == ("bob",)
    assert f"The copies of bob in releases {first} and {second} have the same covers." in " ".join(found.notes)
    only = run_trace(study.ledger, study.key, file=study.copy(1, "bob"), release=first)
    assert f"releases {first} and {second} have the same covers" in " ".join(only.notes)


def test_nothing_is_shown_that_cannot_be_noted(tmp_path, monkeypatch):
    study = Study(tmp_path)
    release = study.release().release

    def refused(_):
        raise OutputError("It can only be read.")

    monkeypatch.setattr(Ledger, "check_writable", refused)
    with pytest.raises(OutputError, match="only be read"):
        study.open_commitment(release)
    assert not list(tmp_path.glob("opened-*"))
