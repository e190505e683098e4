"""The pool of a release: sealed before the draw, never shared with other releases without saying so."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from mark.test_plan import wide
from register import QUASI, Register, town
from strength import PATIENCE
from veilmark.engines.duckdb import DuckDB
from veilmark.ledger import Key, Ledger
from veilmark.mark.linking import Ground
from veilmark.mark.request import ReleaseRequest
from veilmark.mark.sealing import open_pool, sealed_entry
from veilmark.privacy.models import KAnonymity
from veilmark.trace.evidence import Marked
from veilmark.trace.sealed import SealedPool
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.workbench import release as releasing
from veilmark.workbench.release import release as run_release

NAMES = ("ada", "bob")


def job(data, names=NAMES, seed=None, decoys=2, method=None):
    marking = wide(names, k=3, decoys=decoys, false_accusation=1e-3)
    return ReleaseRequest(data.population, ("voter",), marking, method=method or Ola(0.2, "dm_star"), seed=seed)


def release(data, folder, number, **given):
    return run_release(data.study(), job(data, **given), folder / "ledger.db", folder / "key", folder / f"c{number}")


def sealed_releases(folder):
    book, key = Ledger.open(folder / "ledger.db"), Key.open(folder / "key")
    return [Marked.of(r.id, book.secrets(r.id, key)) for r in book.releases() if r.is_out]


def decoy_classes(marked):
    return {tuple(row) for row in marked.texts(marked.pool_codes[:, marked.drawn.any(axis=0)])}


@pytest.mark.parametrize("method", [Ola(0.2, "dm_star"), Mondrian()], ids=["ola", "mondrian"])
def test_every_person_of_a_class_meets_it_by_name_and_by_values(method):
    data = town()
    with DuckDB(threads=1) as engine:
        study, marking = data.study(), wide(NAMES, k=3)
        ground = Ground.prepare(engine, study, data.population, ("voter",), marking, [KAnonymity(3)], method)
        pool = open_pool(ground, marking, [])
        content = sealed_entry(ground, marking, pool, bytes(32))
    linked = ground.linked
    codes = linked.codes[:, pool.classes]
    secret = {"columns": linked.columns, "identity": ("voter",), "above": ground.above(), "sealed": content}
    sealed = SealedPool.read(secret, codes)
    place = {int(c): j for j, c in enumerate(pool.classes)}
    homes = dict(
        zip(zip(*(ground.people.texts(c) for c in QUASI), strict=True), linked.of_people.tolist(), strict=True)
    )
    owner = [place.get(homes[tuple(p[c] for c in QUASI)], -1) for p in data.people]
    assert sealed.persons.tolist() == np.bincount([o for o in owner if o >= 0], minlength=len(pool.classes)).tolist()
    for columns in (["voter"], list(QUASI)):
        for i in range(0, len(data.people), 97):
            row = {c: data.people[i][c] for c in columns}
            if None in row.values():
                continue
            met = sealed.meet(pa.table({c: [v] for c, v in row.items()}))
            assert np.flatnonzero(met.by_any).tolist() == ([owner[i]] if owner[i] >= 0 else [])


def test_another_release_avoids_the_classes_of_the_first(tmp_path):
    for number in range(3):
        release(town(), tmp_path, number, seed=number)
    first, second, third = sealed_releases(tmp_path)
    assert third.sealed.earlier == (first.release, second.release)
    shared = [decoy_classes(a) & decoy_classes(b) for a, b in ((first, second), (first, third), (second, third))]
    assert shared == [set()] * 3
    assert set(map(tuple, second.texts(second.sealed.spared))) == decoy_classes(first)


def test_the_same_seed_gives_the_same_decoys_of_the_same_data_only(tmp_path):
    data = town()
    made = [release(data, tmp_path, 0, seed=5), release(data, tmp_path, 1, seed=4), release(data, tmp_path, 2, seed=5)]
    fewer = Register(data.people, data.members[:-15])
    made.append(release(fewer, tmp_path, 3, seed=5))
    relabelled = Register(data.people, [{**m, "diagnosis": "u"} for m in data.members])
    made.append(release(relabelled, tmp_path, 4, seed=5))
    first, other, same, others_data, other_values = sealed_releases(tmp_path)
    assert decoy_classes(first) == decoy_classes(same)
    assert (tmp_path / "c0" / "ada.csv").read_bytes() == (tmp_path / "c2" / "ada.csv").read_bytes()
    assert not decoy_classes(others_data) & (decoy_classes(first) | decoy_classes(other))
    assert decoy_classes(other_values) == decoy_classes(first)
    said = [[note for note in of.notes if "has the same decoy classes" in note] for of in made]
    assert [len(notes) for notes in said] == [0, 0, 0, 0, 1]
    assert first.release in said[4][0]


def test_where_too_few_are_left_it_is_said(tmp_path):
    names = tuple(f"r{i}" for i in range(6))
    notes = [release(town(), tmp_path, n, names=names, decoys=4, seed=n).notes for n in range(4)]
    assert any("used again" in note for note in notes[-1])
    assert not any("used again" in note for note in notes[0])


def test_two_releases_at_the_same_time_share_no_decoy_class(tmp_path, monkeypatch):
    """Both draw before either is published; the one that comes second draws anew."""
    release(town(), tmp_path, 0, seed=0)
    drawn, real = threading.Barrier(2), releasing.sealed_entry
    met = threading.local()

    def wait_for_the_other(*given):
        if not getattr(met, "once", False):
            met.once = True
            drawn.wait(PATIENCE)
        return real(*given)

    monkeypatch.setattr(releasing, "sealed_entry", wait_for_the_other)
    errors = []

    def run(number):
        try:
            release(town(), tmp_path, number, seed=number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    _, second, third = sealed_releases(tmp_path)
    assert not decoy_classes(second) & decoy_classes(third)
    assert {len(second.sealed.earlier), len(third.sealed.earlier)} == {1, 2}
    states = sorted(r.status for r in Ledger.open(tmp_path / "ledger.db").releases())
    assert states == ["aborted", "published", "published", "published"]


def test_what_claims_can_show_is_said_at_release_time(tmp_path):
    data = town()
    few = run_release(data.study(), job(data, decoys=1), dry_run=True)
    pool = few.cost["pool"]
    claims = few.to_dict()["claims"]
    assert claims["smallest_probability"] == pytest.approx(2 / (pool - 1))
    assert (claims["enough"], claims["pool"], claims["recipients"]) == (False, pool, 2)
    needed = claims["decoys_needed"]
    assert any(f"Ask for decoys={needed}." in note for note in few.notes)
    enough = run_release(data.study(), job(data, decoys=needed), dry_run=True)
    assert enough.claims.enough
    assert not any("Claims of re-identification" in note for note in enough.notes)
    less = run_release(data.study(), job(data, decoys=needed - 1), dry_run=True)
    assert not less.claims.enough
    tight = replace(job(data), marking=replace(job(data).marking, false_accusation=1e-300))
    told = run_release(data.study(), tight, dry_run=True)
    assert told.claims.decoys_needed is None
    assert any("No number of decoys from this pool is enough" in note for note in told.notes)
    bare = replace(job(data), marking=replace(job(data).marking, decoys=0, covers=5))
    assert run_release(data.study(), bare, dry_run=True).to_dict()["claims"] is None
    made = release(data, tmp_path, 0, decoys=1)
    entry = Ledger.open(tmp_path / "ledger.db").release(made.release)
    assert entry.public["parameters"]["claims_probability"] == made.claims.smallest_probability
