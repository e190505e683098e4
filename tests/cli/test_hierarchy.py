from __future__ import annotations

import json

from veilmark.cli.main import main

STUDY = "version: 1\nsource: d.csv\nattributes: {age: {role: quasi, hierarchy: {intervals: [10]}}}\n"


def test_a_hierarchy_is_shown_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("age\n31\n38\n42\n")
    (tmp_path / "study.yaml").write_text(STUDY)
    assert main(["hierarchy", "study.yaml", "age"]) == 0
    assert "30-39" in capsys.readouterr().out
    assert main(["hierarchy", "study.yaml", "age", "-o", "age.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == [3, 2, 1]
    assert (tmp_path / "age.csv").read_text() == "31;30-39;*\n38;30-39;*\n42;40-49;*\n"
    assert main(["hierarchy", "study.yaml", "agee"]) == 2
    assert "Did you mean 'age'" in capsys.readouterr().err
