"""What Python users hold: studies of frames, results as frames, a ledger with its key, markings without recipients."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import veilmark as vm

RNG = np.random.default_rng(7)
TOWN, VILLAGES = 6_000, 3_000
ZIPS = [*RNG.integers(13_000, 13_010, TOWN), *RNG.integers(14_000, 14_030, VILLAGES)]
VOTERS = pa.table(
    {
        "voter": [f"V{i}" for i in range(TOWN + VILLAGES)],
        "zip": [str(z) for z in ZIPS],
        "age": RNG.integers(20, 80, TOWN + VILLAGES),
    }
)
PATIENTS = (
    VOTERS.slice(0, TOWN).take(np.arange(0, TOWN, 4)).append_column("dx", [["flu", "cold", "HIV"] * (TOWN // 12)])
)
HIERARCHIES = {"zip": vm.Mask(5), "age": vm.Intervals(10, 20)}
WEIGHTS = {"dx": {"HIV": 0.9, "default": 0.1}}

FRAMES = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
    "duckdb": lambda table: duckdb.from_arrow(table),
}


def study_of(data=PATIENTS, **more):
    roles = {"direct": ["voter"], "quasi": ["zip", "age"], "sensitive": ["dx"]}
    return vm.Study.of(data, **{**roles, "hierarchies": HIERARCHIES, "weights": WEIGHTS, **more})


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A ledger and the copies that it tells of."""
    folder = tmp_path_factory.mktemp("released")
    ledger = vm.Ledger(folder / "l.db", key=folder / "l.key")
    marking = vm.Marking(decoys=3, collusion=1, false_accusation=1e-2)
    given = {"marking": marking, "population": VOTERS, "identity": ["voter"], "ledger": ledger}
    return ledger, study_of().release(["ada", "bob"], vm.Ola(k=5), folder=folder / "copies", **given)


# Studies


def test_roles_can_be_listed_or_written_as_in_the_study_file():
    attributes = {
        "voter": "direct",
        "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "dx": {"role": "sensitive", "weights": WEIGHTS["dx"]},
    }
    assert study_of().spec == vm.Study.of(PATIENTS, attributes).spec


def test_a_study_by_roles_is_saved_and_opened(tmp_path):
    study = study_of(unnamed="other", person=None)
    study.save(tmp_path / "s.yaml")
    assert vm.Study.open(tmp_path / "s.yaml", data=PATIENTS).spec == study.spec


def test_hierarchies_by_file_and_by_mapping(tmp_path):
    (tmp_path / "dx.csv").write_text("flu;ill;*\ncold;ill;*\nHIV;ill;*\n")
    hierarchies = {"dx": tmp_path / "dx.csv", "zip": {"mask": 5}}
    study = vm.Study.of(PATIENTS, quasi=["zip", "dx"], hierarchies=hierarchies)
    assert study.anonymize(vm.Ola(k=2, levels={"dx": 1})).to_pandas().dx.unique().tolist() == ["ill"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sensitive": ["dx", "age"]}, "'age' is named as quasi and as sensitive"),
        ({"quasi": "zip"}, r"quasi='zip' is a text. List the columns: quasi=\['zip'\]"),
        ({"hierarchies": {"zap": vm.Mask(5)}}, "'zap' has no role, but its hierarchy is given. Did you mean 'zip'"),
        ({"weights": {"HIV": {"a": 1}}}, "'HIV' has no role, but its weights is given"),
        ({"weights": {"zip": {"a": 1}}}, "weights"),
        ({"hierarchies": {"zip": {"maks": 5}}}, "'maks' is not a kind of hierarchy"),
    ],
)
def test_roles_that_cannot_be_are_refused(given, words):
    with pytest.raises(vm.StudyError, match=words):
        study_of(**given)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: vm.Mask(0), "Mask does not accept 0"),
        (lambda: vm.Intervals(5, 7), "7 is not a multiple of 5"),
        (lambda: vm.Intervals(), "empty"),
        (lambda: vm.Dates("mont"), "Did you mean 'month'"),
    ],
)
def test_hierarchies_that_cannot_be_are_refused_at_once(make, words):
    with pytest.raises(vm.HierarchyError, match=words):
        make()


def test_a_study_shows_its_columns():
    text = str(vm.Study.guess(PATIENTS))
    assert "postal code" in text
    assert "quasi" in text
    assert "<table>" in study_of()._repr_html_()


# Frames wherever files are


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_every_kind_stand_for_files(kind, tmp_path):
    frame = FRAMES[kind]
    study = study_of(frame(PATIENTS))
    extract = PATIENTS.slice(0, 90)
    pyarrow.csv.write_csv(extract, tmp_path / "e.csv")
    assert study.score(frame(extract)).to_dict() == study.score(tmp_path / "e.csv").to_dict()
    assert study.breach(frame(extract)).to_dict() == study.breach(tmp_path / "e.csv").to_dict()
    assert len(study.rank([frame(extract), frame(PATIENTS)], draws=5).candidates) == 2
    assert study.measure(population=frame(VOTERS)).to_dict() == study_of().measure(population=VOTERS).to_dict()
    release = study.anonymize(vm.Ola(k=5), seed=1)
    same = frame(release.to_arrow())
    assert study.attack(same).to_dict() == study.attack(release).to_dict()
    assert study.utility(same).to_dict() == study.utility(release).to_dict()
    assert study.apply(release.recoding, frame(PATIENTS), seed=1).to_arrow().equals(release.to_arrow())


@pytest.mark.parametrize("kind", FRAMES)
def test_leaks_and_claims_may_be_frames(kind, released):
    ledger, copies = released
    leak = pa.csv.read_csv(copies.copies[1].file)
    verdict = ledger.trace(FRAMES[kind](leak), false_accusation=1e-2)
    assert verdict.accused == ("bob",)
    claims = pa.table({"voter": [d["voter"] for d in ledger.decoys(copies.release)["ada"]]})
    claimed = ledger.trace(claims=FRAMES[kind](claims), false_accusation=0.5)
    assert claimed.recipients[0].name == "ada"
    assert all(one["sha256"] for one in entry_of(ledger, verdict)["evidence"])


def entry_of(ledger, verdict):
    """What the ledger wrote down of a trace."""
    from veilmark.ledger import Ledger

    (entry,) = [e for e in Ledger.open(ledger.place).entries() if e.number == verdict.record["entry"]]
    return entry.public


@pytest.mark.parametrize("kind", FRAMES)
def test_a_population_may_be_a_frame(kind, tmp_path):
    marking = vm.Marking(decoys=2, covers=2)
    given = {"marking": marking, "population": FRAMES[kind](VOTERS), "identity": ["voter"], "dry_run": True}
    made = study_of().release(["ada", "bob"], vm.Ola(k=5), **given)
    assert [copy.decoy_classes for copy in made.copies] == [2, 2]


# Results as frames


def test_a_release_becomes_any_frame():
    release = study_of().anonymize(vm.Mondrian(k=5))
    assert isinstance(release.to_pandas(), pd.DataFrame)
    assert isinstance(release.to_polars(), pl.DataFrame)
    assert release.to_polars().rows() == [tuple(row.values()) for row in release.to_arrow().to_pylist()]
    assert pl.DataFrame(release).equals(release.to_polars())
    assert pa.table(release).equals(release.to_arrow())
    assert not any(pa.types.is_dictionary(field.type) for field in release.to_arrow().schema)


def test_tables_of_persons_become_frames(tmp_path):
    visits = pa.table({"id": np.repeat(np.arange(60), 2), "age": np.repeat(RNG.integers(20, 80, 60), 2)})
    visits = visits.append_column("dx", [RNG.choice(["ab", "ac", "b"], 120)])
    study = vm.Study.of(visits, quasi=["age"], sensitive=["dx"], person="id", hierarchies={"dx": vm.Mask(2)})
    made = study.anonymize(vm.FSlip(k=3))
    assert list(made.to_arrow()) == list(made.to_pandas()) == list(made.to_polars()) == ["qi", "sensitive_1"]
    assert len(made.to_pandas()["qi"]) == 60
    assert study.report(tmp_path / "r.html", release=made).shared.slices.persons == 60


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_write_gives_the_file_that_output_gives(name, tmp_path):
    study = study_of()
    release = study.anonymize(vm.Ola(k=5), tmp_path / name, seed=1)
    study.anonymize(vm.Ola(k=5), seed=1).write(tmp_path / f"again-{name}")
    assert pa.table(release).equals(pa.table(study.anonymize(vm.Ola(k=5), tmp_path / name, seed=1)))
    if name.endswith("csv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()
    else:
        assert pq.read_table(tmp_path / name).to_pylist() == pq.read_table(tmp_path / f"again-{name}").to_pylist()


def test_write_names_the_forms_that_there_are(tmp_path):
    with pytest.raises(vm.OptionError, match=r"\.csv|\.parquet"):
        study_of().anonymize(vm.Ola(k=5)).write(tmp_path / "out.docx")


def test_a_recoding_is_saved_and_applied(tmp_path):
    study = study_of()
    release = study.anonymize(vm.Ola(k=5), seed=2)
    release.recoding.save(tmp_path / "r.yaml")
    assert study.apply(tmp_path / "r.yaml", seed=2).to_arrow().equals(release.to_arrow())
    study.apply(release.recoding, PATIENTS, tmp_path / "new.csv")
    assert (tmp_path / "new.csv").exists()


def test_options_that_a_method_does_not_use_are_refused():
    with pytest.raises(vm.OptionError, match="Ola does not use 'form'"):
        study_of().anonymize(vm.Ola(k=5), form="csv")
    with pytest.raises(vm.OptionError, match="FSlip does not use 'order'"):
        study_of(person="voter", direct=[]).anonymize(vm.FSlip(k=5), order="keep")


# Old names


def test_compare_still_ranks_and_says_its_new_name():
    study, extracts = study_of(), [PATIENTS.slice(0, 50), PATIENTS]
    with pytest.warns(DeprecationWarning, match=r"Study\.rank"):
        old = study.compare(extracts, draws=5)
    assert old.to_dict() == study.rank(extracts, draws=5).to_dict()


# Ledgers


def test_a_ledger_and_its_key_are_made_where_there_are_none(tmp_path):
    with vm.Ledger(tmp_path / "l.db", key=tmp_path / "l.key") as ledger:
        assert ledger.releases() == []
        assert ledger.verify().ok
    assert (tmp_path / "l.key").stat().st_mode & 0o777 == 0o600
    assert str(vm.Ledger(tmp_path / "l.db", key=tmp_path / "l.key")).startswith("The ledger")


def test_a_ledger_that_has_a_key_gets_no_other(released, tmp_path):
    ledger, _ = released
    with pytest.raises(vm.OptionError, match="There is no key file"):
        vm.Ledger(ledger.place, key=tmp_path / "mistyped.key")
    assert not (tmp_path / "mistyped.key").exists()


def test_without_a_key_a_ledger_is_read_but_not_made_nor_traced_with(released, tmp_path):
    ledger, copies = released
    reader = vm.Ledger(ledger.place)
    assert reader.release(copies.release).recipients == ["ada", "bob"]
    assert reader.verify().ok
    with pytest.raises(vm.OptionError, match="key"):
        reader.trace(PATIENTS)
    with pytest.raises(vm.OptionError, match="key"):
        reader.decoys(copies.release)
    with pytest.raises(vm.OptionError, match="There is no ledger"):
        vm.Ledger(tmp_path / "none.db")


def test_a_backup_of_a_ledger(released, tmp_path):
    ledger, _ = released
    assert ledger.export(tmp_path / "backup.jsonl").ok
    assert (tmp_path / "backup.jsonl").exists()


@pytest.mark.parametrize("given", [{}, {"claims": VOTERS, "leak": VOTERS}])
def test_a_trace_needs_one_kind_of_evidence(given, released):
    with pytest.raises(vm.OptionError):
        released[0].trace(**given)


# Releases


def test_k_is_the_methods_and_is_asked_for_once(released):
    ledger, copies = released
    parameters = ledger.release(copies.release).public["parameters"]
    assert parameters["k"] == 5
    assert parameters["models"] == [{"model": "k", "k": 5}]


@pytest.mark.parametrize(
    ("method", "k"),
    [(vm.Ola(models=[vm.KAnonymity(7)]), 7), (vm.Mondrian(k=5, models=[vm.KAnonymity(3), vm.DistinctL("dx", 2)]), 5)],
)
def test_k_may_be_among_the_models(method, k):
    made = study_of().release(["ada", "bob"], method, marking=vm.Marking(decoys=0, covers=2), dry_run=True)
    assert made.release is None
    assert len(made.copies) == 2


def test_a_release_says_what_it_lacks(tmp_path):
    study, marking = study_of(), vm.Marking(decoys=0, covers=2)
    with pytest.raises(vm.OptionError, match=r"Ola\(k=5\)"):
        study.release(["ada"], vm.Ola(), marking=marking, dry_run=True)
    with pytest.raises(vm.OptionError, match="a ledger with its key, and a folder"):
        study.release(["ada", "bob"], vm.Ola(k=5), marking=marking)
    with pytest.raises(vm.OptionError, match="not by FSlip"):
        study.release(["ada", "bob"], vm.FSlip(k=5), marking=marking, dry_run=True)
    with pytest.raises(vm.OptionError, match="A coalition has 1 to 2 members"):
        study.release(["ada", "bob"], vm.Ola(k=5), marking=vm.Marking(decoys=0, collusion=3), dry_run=True)


@pytest.mark.parametrize(
    "given", [{"decoys": -1}, {"decoys": 0, "covers": 0}, {"collusion": 0}, {"covers": 2, "collusion": 2}, {"near": 2}]
)
def test_markings_that_cannot_be_are_refused_at_once(given):
    with pytest.raises(vm.OptionError):
        vm.Marking(**given)


def test_terms_are_noted(tmp_path):
    ledger = vm.Ledger(tmp_path / "l.db", key=tmp_path / "l.key")
    terms = {"ada": vm.Terms(agreement="A-17")}
    given = {"marking": vm.Marking(decoys=0, covers=2), "terms": terms, "form": "parquet", "ledger": ledger}
    made = study_of().release(["ada", "bob"], vm.Ola(k=5), folder=tmp_path / "copies", **given)
    assert ledger.release(made.release).public["recipients"][0]["agreement"] == "A-17"
    assert pq.read_table(made.copies[0].file).num_rows == made.copies[0].records


# Reports


def test_a_report_on_a_release_in_memory_shows_no_file(tmp_path):
    study = study_of()
    release = study.anonymize(vm.Ola(k=5))
    made = study.report(tmp_path / "r.html", release=release, attacks=["qicorr"], require=["k=5"])
    assert made.shared.files == ()
    assert made.shared.name == "the release"
    assert all(found.met for found in made.shared.required)
    page = (tmp_path / "r.html").read_text()
    assert "SHA-256" not in page
    assert "release.parquet" not in page


def test_a_report_on_a_written_release_shows_its_file(tmp_path):
    study = study_of()
    release = study.anonymize(vm.Ola(k=5), tmp_path / "out.csv")
    made = study.report(tmp_path / "r.html", release=release, attacks=[])
    assert [file.name for file in made.shared.files] == ["out.csv"]


def test_a_report_on_a_frame_and_on_copies(released, tmp_path):
    ledger, copies = released
    frame = pd.read_csv(copies.copies[0].file, dtype=str)
    made = study_of().report(tmp_path / "r.html", frame, ledger, copies=copies.folder, attacks=[])
    assert made.shared.k >= 5
    assert [copy.status for copy in made.book.copies] == ["as published"] * 2
