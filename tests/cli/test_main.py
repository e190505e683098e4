"""What holds for every verb: help, notes, errors, texts from the data, the width of tables, and the demo."""

from __future__ import annotations

import html
import json
import re
import shlex
import signal
import threading
import warnings

import pytest
from rich.console import Console

from strength import PATIENCE
from veilmark import progress
from veilmark.cli import bars, main, show, story
from veilmark.errors import VeilmarkWarning, WeightsError
from veilmark.workbench import init as init_verb

HOSTILE = ("[/b]", "[red]x", ":smile:", "a\\")
COMPARE = ["--compare", "a.csv", "b.csv", "--draws", "20"]


def run(capsys, *arguments, code=0):
    assert main.main(list(map(str, arguments))) == code
    return capsys.readouterr()


def study_file(folder, header, quasi, sensitive):
    attributes = {name: {"role": "quasi"} for name in quasi}
    attributes |= {name: {"role": "sensitive", "weights": {"default": 0.1}} for name in sensitive}
    content = {"version": 1, "source": "d.csv", "attributes": attributes}
    (folder / "study.yaml").write_text(json.dumps(content))
    for name in ("d.csv", "a.csv", "b.csv"):
        (folder / name).write_text(header)


# --- help, notes, errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("weights",)])
def test_no_verb_shows_help_and_no_error(capsys, arguments):
    out, err = run(capsys, *arguments)
    assert "Usage" in out
    assert err == ""


def noted(result):
    def work(*_, **__):
        for _ in range(2):
            warnings.warn("mind the gap", VeilmarkWarning, stacklevel=1)
        if isinstance(result, BaseException):
            raise result
        return result

    return work


@pytest.mark.filterwarnings("default::veilmark.errors.VeilmarkWarning")
def test_notes_are_shown_once_all_went_well(capsys, monkeypatch):
    monkeypatch.setattr(init_verb, "make_sample", noted(7))
    out, err = run(capsys, "sample", "hospital", "-o", "x.csv", "--json")
    assert json.loads(out)["records"] == 7
    assert err == "Note: mind the gap\n"
    assert run(capsys, "sample", "hospital", "-o", "x.csv").err == "Note: mind the gap\n"


@pytest.mark.filterwarnings("default::veilmark.errors.VeilmarkWarning")
@pytest.mark.parametrize(("error", "code"), [(WeightsError("They are odd."), 2), (RuntimeError("a\n\nb"), 1)])
def test_an_error_stands_alone(capsys, monkeypatch, error, code):
    monkeypatch.setattr(init_verb, "make_sample", noted(error))
    out, err = run(capsys, "sample", "hospital", "-o", "x.csv", code=code)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: ")


@pytest.mark.parametrize("error", [RuntimeError("a\n\nb"), KeyboardInterrupt()])
def test_nothing_is_said_of_outputs_that_is_not_known(capsys, monkeypatch, error):
    monkeypatch.setattr(init_verb, "make_sample", noted(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        err = run(capsys, "sample", "hospital", "-o", "x.csv", code=1).err
    assert "No unfinished output was left." in err
    assert "Nothing was written" not in err


def test_a_second_signal_does_not_disturb_the_first():
    before = {name: signal.getsignal(getattr(signal, name)) for name in main.ENDINGS}
    try:
        with pytest.raises(KeyboardInterrupt):
            main._stop(signal.SIGTERM, None)
        assert all(signal.getsignal(getattr(signal, name)) is signal.SIG_IGN for name in before)
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


# --- texts that come from data, paths and studies ----------------------------------------------------------


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Column names, values and a file name that Rich would take for markup."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rows = "".join(f"{q},{s}\n" for q in HOSTILE for s in HOSTILE)
    study_file(tmp_path, f"[/q],[b]s\n{rows}", ["[/q]"], ["[b]s"])
    (tmp_path / "[").mkdir()
    (tmp_path / "[/b].csv").write_text((tmp_path / "d.csv").read_text())
    (tmp_path / "ahp.csv").write_text(",[/b],[b]\n[/b],1,4\n[b],1/4,1\n")
    values = dict.fromkeys(HOSTILE, 0.5)
    (tmp_path / "model.yaml").write_text(json.dumps({"tree": {"[/d]": {"sensitivity": 0.5, "values": values}}}))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("measure", "study.yaml", "--data", "[/b].csv"), ("[/b].csv", "[/q]", "[b]s")),
        (("score", "study.yaml", "--published", "[/b].csv"), ("[/b].csv:", "[/q]", "[b]s = ", *HOSTILE)),
        (("score", "study.yaml", "--compare", "[/b].csv", "a.csv", "--draws", "5"), ("[/b].csv",)),
        (("breach", "study.yaml", "--records", "[/b].csv"), ("[/b].csv:", "[/q]", *HOSTILE)),
        (("weights", "ahp", "ahp.csv"), ("[/b]", "[b]")),
        (("weights", "model", "model.yaml"), ("[/d]", *HOSTILE)),
        (("init", "[/b].csv", "-o", "new.yaml"), ("[/q]", "[b]s")),
    ],
)
def test_texts_are_shown_as_they_are(hostile, capsys, arguments, texts):
    out, err = run(capsys, *arguments)
    assert err == ""
    assert [text for text in texts if text not in out] == []


def test_control_characters_are_shown_and_not_obeyed():
    assert show.literal("a\x1b[2J\r\nb\udcff\u2028").plain == "a\\x1b[2J\\r\\nb\\udcff\\u2028"
    assert show.literal("Zoë 日本 \u200d").plain == "Zoë 日本 \u200d"


def test_a_bar_takes_any_label(monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE", 0)
    done = threading.Event()
    timer = threading.Timer(0.3, done.set)
    timer.start()
    bars._bar("Reading [/b].csv", lambda: 0.5, done)
    timer.join()


@pytest.mark.parametrize(("share", "shown"), [(0.5, "50% "), (None, "")])
def test_in_a_pipe_progress_is_a_plain_line_on_standard_error(monkeypatch, capsys, share, shown):
    monkeypatch.setattr(bars, "FIRST", 0.01)
    told = threading.Event()

    def poll():
        told.set()
        return share

    with bars.show_progress(), progress.step("Reading [/b].csv", poll):
        assert told.wait(PATIENCE)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"Reading \[/b\]\.csv: {shown}after \d+ s\n", err)


def test_short_work_says_nothing(capsys):
    with bars.show_progress(), progress.step("Reading"):
        pass
    assert capsys.readouterr() == ("", "")


# --- tables ------------------------------------------------------------------------------------------------


def test_the_worst_record_is_shown(tmp_path, capsys):
    study_file(tmp_path, "City,Gender,Diagnosis\nCalgary,F,Flu\nCalgary,F,Flu\n,M,HIV\n", ["City", "Gender"], [])
    content = json.loads((tmp_path / "study.yaml").read_text())
    content["attributes"]["Diagnosis"] = {"role": "sensitive", "weights": {"Flu": 0.1, "HIV": 0.9}}
    (tmp_path / "study.yaml").write_text(json.dumps(content))
    out = " ".join(run(capsys, "score", tmp_path / "study.yaml").out.split())
    assert "Worst record: City = (missing), Gender = M, Diagnosis = HIV. Its tkl" in out


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """Nine columns with names of 20 and values of 24 characters, no two of them alike."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"column_{i}_with_long_name"[:20] for i in range(9)]
    rows = [",".join(f"row{r}-column{i}-".ljust(24, "x") for i in range(9)) for r in range(3)]
    study_file(tmp_path, "\n".join([",".join(names), *rows, ""]), names[:7], names[7:])
    long = tmp_path / ("a-long-name-" * 6 + "end.csv")
    long.write_text((tmp_path / "d.csv").read_text())
    return names, long.name


@pytest.mark.parametrize("verb", ["measure", "score", "compare", "breach", "init"])
def test_tables_fit_80_columns_and_lose_nothing(wide, capsys, verb):
    names, file = wide
    arguments = {
        "measure": ("measure", "study.yaml"),
        "score": ("score", "study.yaml"),
        "compare": ("score", "study.yaml", *COMPARE, file),
        "breach": ("breach", "study.yaml", "--records", file),
        "init": ("init", "d.csv", "-o", "new.yaml"),
    }[verb]
    out = run(capsys, *arguments).out
    assert max(len(line) for line in out.splitlines() if not line.startswith("Wrote")) <= 80
    assert "…" not in out
    if verb == "compare":
        assert "a-long-name-" in out
        assert "end.csv" in "".join(out.split())
    else:
        assert [n for n in (names[7:] if verb == "measure" else names) if n not in out] == []
    if verb in ("score", "breach"):
        assert [i for i in range(9) if f"row0-column{i}-xxxxxxxxxxx" not in out] == []


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_that_is_too_wide_is_folded_and_not_cut(width):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    table = show.new_table("A title", "name", numbers=("of the whole source", "mean", *"abcdefgh"))
    table.add_row("y" * 60, *["1.14e+03"] * 10)
    show.print_table(table, console)
    text = console.export_text()
    assert text.count("y") == 60
    assert text.count("1.14e+03") == 10
    assert "…" not in text


# --- the demo ----------------------------------------------------------------------------------------------


def test_the_demo_runs_every_verb(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    got = json.loads(run(capsys, "demo", "d", "--json").out)
    told = html.unescape(re.sub("<.*?>", "", (tmp_path / "d" / "story.html").read_text()))
    for verb in (
        "init",
        "measure",
        "weights ahp",
        "score",
        "breach",
        "monitor",
        "anonymize",
        "utility",
        "attack",
        "compare",
        "release",
        "trace --file",
        "report",
    ):
        assert f"$ veilmark {verb} d/" in told
    for words in ("k = 1", "Consistency ratio", "tkl-Score", "lowest tkl-Score first", "leaked, with", "cyd: score"):
        assert words in told
    assert got["report"] == "d/report.html"
    page = (tmp_path / "d" / "report.html").read_text()
    assert page.count('src="data:image/svg+xml') >= 5  # classes, scores, marginals, associations, attacks
    assert "Better than guessing" in page
    assert "<svg" in (tmp_path / "d" / "frontier.svg").read_text()
    assert "anatomy" in got["methods"]["below_k"]
    assert got["attacks"]["qicorr"]["targets"] == 5_000
    assert got["weights"] == pytest.approx({"high": 0.655, "medium": 0.250, "low": 0.095}, abs=1e-3)
    assert 0 < got["breach"]["severity"] < 1
    assert got["release"]["k"] >= 5
    assert {alert["user"] for alert in got["monitor"]["alerts"]} == {"cyd"}
    assert got["trace"]["accused"] == ["bob"]


def test_the_demo_s_commands_can_be_run_even_in_a_folder_that_looks_like_markup(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(story, "PATIENTS", 800)
    out = run(capsys, "demo", "[/b]").out
    commands = [shlex.split(line)[2:] for line in out.splitlines() if line.startswith("$ veilmark ")]
    assert len(commands) == 14
    assert commands[0] == ["init", "[/b]/visits.csv", "-o", "[/b]/study.yaml"]
    for command in commands[1:]:
        again = ["[/b]/again" if word == "[/b]/copies" else word for word in command]
        assert "Error" not in run(capsys, *again).err
