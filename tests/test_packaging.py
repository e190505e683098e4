"""The wheel and what comes with it: its files, the command, completion, the manual page, study files of other versions."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import veilmark
from veilmark import Study, StudyError
from veilmark.study import spec as studyfile

ROOT = Path(__file__).parents[1]
COMMAND = str(Path(sys.executable).with_name("veilmark"))
FILE = "version: {}\nsource: d.csv\nattributes: {{age: {{role: quasi}}}}\n"


def run(*command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Study files


def test_a_study_file_of_an_older_version_is_read(tmp_path, monkeypatch):
    def to_1(content):
        return {"version": 1, "source": content["table"], "attributes": {c: {"role": "quasi"} for c in content["keys"]}}

    file = tmp_path / "study.yaml"
    file.write_text("version: -1\nfile: d.csv\nkeys: [age]\n")
    monkeypatch.setitem(studyfile.UPGRADES, -1, lambda old: {"version": 0, "table": old["file"], "keys": old["keys"]})
    monkeypatch.setitem(studyfile.UPGRADES, 0, to_1)
    found = Study.open(file)
    assert (found.quasi, found.label) == (["age"], "d.csv")
    found.save(tmp_path / "new.yaml")
    assert (tmp_path / "new.yaml").read_text().startswith("version: 1\n")


@pytest.mark.parametrize("version", [2, 17])
def test_a_study_file_of_a_later_version_is_refused(tmp_path, version):
    file = tmp_path / "study.yaml"
    file.write_text("# a comment\n" + FILE.format(version))
    with pytest.raises(StudyError, match=f"line 2, version: .* version {version}, .* up to 1. Update veilmark"):
        Study.open(file)


def test_a_study_file_of_an_unknown_version_is_refused(tmp_path):
    file = tmp_path / "study.yaml"
    for version in (0, "new", "[1]"):
        file.write_text(FILE.format(version))
        with pytest.raises(StudyError, match="version"):
            Study.open(file)


def test_what_is_written_is_what_is_read():
    allowed = studyfile.StudySpec.model_fields["version"].annotation
    assert allowed.__args__ == (studyfile.VERSION,)
    assert all(old < studyfile.VERSION for old in studyfile.UPGRADES)


# The command


def test_importing_veilmark_loads_nothing_else():
    loaded = "print(*{m.partition('.')[0] for m in sys.modules} - before - set(sys.stdlib_module_names))"
    code = f"import sys; before = {{m.partition('.')[0] for m in sys.modules}}; import veilmark; {loaded}"
    assert run(sys.executable, "-c", code).split() == ["veilmark"]


WORDS = {
    "bash": {"COMP_WORDS": "veilmark meas", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "veilmark meas"},
    "fish": {"_TYPER_COMPLETE_ARGS": "veilmark meas", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", WORDS)
def test_shells_complete_verbs(shell):
    assert "veilmark" in run(COMMAND, _VEILMARK_COMPLETE=f"source_{shell}")
    assert "measure" in run(COMMAND, _VEILMARK_COMPLETE=f"complete_{shell}", **WORDS[shell])


def test_the_manual_page_is_that_of_the_command_line(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import man

    assert man.PAGE.read_text() == man.page(), "Run `make man`."
    assert "veilmark anonymize [OPTIONS]" in man.PAGE.read_text()


# The wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source archive, the wheel made from it, and the wheel made from the tree."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(folder))
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "tree"))
    (archive,), (wheel,), (other,) = folder.glob("*.tar.gz"), folder.glob("*.whl"), folder.glob("tree/*.whl")
    return archive, wheel, other


@pytest.mark.heavy
def test_the_wheel_holds_all_of_the_package(built):
    archive, wheel, other = built
    package = ROOT / "src" / "veilmark"
    files = [p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    with zipfile.ZipFile(wheel) as zipped, zipfile.ZipFile(other) as again:
        names = set(zipped.namelist())
        assert {f"veilmark/{p.relative_to(package).as_posix()}" for p in files} <= names
        assert any(name.endswith("share/man/man1/veilmark.1") for name in names)
        assert {n: zipped.read(n) for n in names} == {n: again.read(n) for n in again.namelist()}
    assert {".css", ".js", ".html", ".j2"} <= {p.suffix for p in files}
    assert package / "py.typed" in files
    with tarfile.open(archive) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "Containerfile", "tests/oracle.py", "docs/veilmark.1"} <= inside


@pytest.mark.heavy
def test_extras_go_together(built):
    with zipfile.ZipFile(built[1]) as zipped:
        (name,) = (n for n in zipped.namelist() if n.endswith("METADATA"))
        told = Parser().parsestr(zipped.read(name).decode())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(told.get_all("Provides-Extra")) == set(extras)
    # All are installed here, so that nothing need be fetched to see that they do.
    run(sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", f"{built[1]}[{','.join(extras)}]")


@pytest.mark.heavy
def test_the_wheel_works_by_itself(built, tmp_path):
    venv.create(tmp_path / "bare", with_pip=True)
    bin_ = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    run(str(bin_ / "pip"), "install", "--quiet", str(built[1]))
    assert run(str(bin_ / "veilmark"), "--version") == f"veilmark {veilmark.__version__}\n"
    table, written = str(tmp_path / "voters.csv"), str(tmp_path / "study.yaml")
    run(str(bin_ / "veilmark"), "sample", "voters", "--size", "500", "-o", table)
    run(str(bin_ / "veilmark"), "init", table, "-o", written)
    assert '"k"' in run(str(bin_ / "veilmark"), "measure", written, "--json")
