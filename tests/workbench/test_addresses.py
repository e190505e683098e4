"""URLs in place of output files and folders are refused as such, before any work, and nothing is made of them."""

from __future__ import annotations

import pytest

from veilmark.cli.main import main

STUDY = """
version: 1
source: t.csv
person: id
attributes:
  age: {role: quasi}
  sex: {role: quasi}
  ill: {role: sensitive}
  pay: {role: sensitive}
"""
BOOK = ["--ledger", "ledger.db", "--key", "ledger.key"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "t.csv", "-o", "s3a://b/s.yaml"],
        ["anonymize", "s.yaml", "--k", "2", "-o", "s3a://b/x.csv"],
        ["anonymize", "s.yaml", "--k", "2", "-o", "x.csv", "--recoding", "s3a://b/r.yaml"],
        ["anonymize", "s.yaml", "--method", "fslip", "--k", "2", "-o", "s3a://b/folder"],
        ["attack", "s.yaml", "t.csv", "--chart", "s3a://b/c.svg"],
        ["report", "s.yaml", "-o", "s3a://b/r.html"],
        ["release", "s.yaml", "--decoys", "0", "--recipients", "a,b", "--k", "2", *BOOK, "-o", "s3a://b/folder"],
        ["release", "s.yaml", "--decoys", "0", "--recipients", "a,b", "--k", "2", *BOOK[:3], "s3a://b/k", "-o", "d"],
        ["trace", "--file", "t.csv", *BOOK, "-o", "s3a://b/r.html"],
        ["trace", "--file", "t.csv", *BOOK, "--bits", "s3a://b/m.csv"],
        ["demo", "s3a://b/folder"],
        ["reproduce", "tkl", "-o", "s3a://b/r.html"],
        ["sample", "hospital", "-o", "s3a://b/h.csv"],
    ],
    ids=" ".join,
)
def test_an_output_is_no_url(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(STUDY)
    (tmp_path / "t.csv").write_text(
        "id,age,sex,ill,pay\n" + "".join(f"{i},{i % 3},m,{i % 4},{i % 5}\n" for i in range(60))
    )
    before = sorted(tmp_path.iterdir())
    assert main(arguments) == 2
    told = capsys.readouterr().err
    url = next(text for text in arguments if text.startswith("s3a:"))
    assert f"'{url}' is a URL, not a file path." in told
    assert sorted(tmp_path.iterdir()) == before
