"""What `release` advises about columns that it publishes unchanged."""

from __future__ import annotations

from veilmark.cli.main import main

STUDY = """
version: 1
source: t.csv
attributes:
  zip: {role: quasi}
  ill: {role: sensitive}
"""


def test_a_sensitive_column_is_not_advised_to_become_quasi(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "s.yaml").write_text(STUDY)
    (tmp_path / "t.csv").write_text("zip,ill\n" + "".join(f"{i % 200},{i % 7}\n" for i in range(2_000)))
    book = ["--ledger", "ledger.db", "--key", "ledger.key", "--recipients", "a,b", "--decoys", "0", "--covers", "20"]
    assert main(["release", "s.yaml", "--k", "5", *book, "-o", "copies"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "ill is sensitive." in told
    assert "give it the role quasi" not in told
