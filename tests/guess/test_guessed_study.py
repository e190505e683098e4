"""`Study.guess`: a frame or a file, with the roles that `veilmark init` guesses and the reasons."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from veilmark import Study
from veilmark.cli.main import main
from veilmark.errors import NoHeaderError, VeilmarkWarning
from veilmark.sample import hospital

TABLE = hospital(60, 1)


@pytest.mark.parametrize("frame", [pa.Table.to_pandas, pl.from_arrow, lambda t: t, duckdb.from_arrow])
def test_frames(frame, tmp_path):
    study = Study.guess(frame(TABLE))
    assert study.person == "patient_id"
    assert study.direct == ["name"]
    assert {"age", "sex", "zip"} <= set(study.quasi)
    assert {"diagnosis", "income", "poverty"} == set(study.sensitive)
    assert set(study.reasons) == set(TABLE.column_names)
    assert study.reasons["age"].startswith("named like an age: ")
    assert study.measure().persons == 60
    study.save(tmp_path / "guessed.yaml")
    again = Study.open(tmp_path / "guessed.yaml", data=TABLE)
    assert again.spec == study.spec


def test_a_file_gives_what_init_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(TABLE, "visits.csv")
    (tmp_path / "visits_hierarchy_sex.csv").write_text("Male;*\nFemale;*\n")
    assert main(["init", "visits.csv", "-o", "study.yaml"]) == 0
    study = Study.guess("visits.csv")
    assert study.spec == Study.open("study.yaml").spec
    assert study.spec.attributes["sex"].hierarchy.file == "visits_hierarchy_sex.csv"
    assert study.measure().records == len(TABLE)


@pytest.mark.filterwarnings("ignore::veilmark.errors.VeilmarkWarning")
def test_a_file_without_names(tmp_path):
    (tmp_path / "t.csv").write_text("".join(f"{30 + i},{'MF'[i % 2]}\n" for i in range(9)))
    with pytest.raises(NoHeaderError):
        Study.guess(tmp_path / "t.csv")
    assert Study.guess(tmp_path / "t.csv", header=True).measure().records == 8


def test_what_was_not_recognized_is_on_the_screen(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("sex\n" + "m\nf\n" * 20)
    assert main(["init", str(tmp_path / "t.csv"), "-o", str(tmp_path / "s.yaml")]) == 0
    assert "No sensitive column was recognized." in capsys.readouterr().out
    assert "# No sensitive column was recognized." in (tmp_path / "s.yaml").read_text()


def test_what_was_not_recognized_is_told_in_python_too():
    frame = pa.table({"sex": ["m", "f"] * 40, "q": [i * 0.37 for i in range(80)]})
    with pytest.warns(VeilmarkWarning) as told:
        study = Study.guess(frame)
    notes = [str(note.message) for note in told]
    assert any(note.startswith("No sensitive column was recognized.") for note in notes)
    assert any("role other, so they are published unchanged: q." in note for note in notes)
    assert "unique" in study.reasons["q"]
