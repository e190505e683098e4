"""Messages: what each front end makes of them, and that nothing below the command line speaks of its options."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
import warnings
from pathlib import Path

import pytest
import typer

import veilmark
from veilmark.cli.main import app
from veilmark.cli.spelling import OPTIONS, spelled
from veilmark.errors import OptionError, VeilmarkError, VeilmarkWarning
from veilmark.messages import END, PLAIN, START, Message, command, param, spell, spell_all, template_of
from veilmark.web.app import page_modules
from veilmark.web.spelling import FIELDS, LABELS, PAGES

PACKAGE = Path(veilmark.__file__).parent
BELOW = [file for file in sorted(PACKAGE.rglob("*.py")) if "cli" not in file.relative_to(PACKAGE).parts]
TEMPLATES = [file for suffix in ("*.html", "*.j2") for file in sorted(PACKAGE.rglob(suffix))]

OPTION = re.compile(r"(?<![\w!-])(?<!var\()--(?:[a-z]|$)|(?<![\w-])-[a-z](?![\w-])")
"""An option of a command, also one whose name is filled in."""
NOT_OURS = {
    "engines/spark_session.py": (
        "--add-modules=jdk.incubator.vector",
        "python -c 'import pyspark",
    ),  # Java's, Python's.
    "report/trace_page.py": (":root { color-scheme: light dark; --line: ",),  # A style sheet.
    "messages.py": ("`--covers 8`", "--"),  # What the module is about.
}


def texts(file, docstrings=True):
    """All text constants of a module with their lines, parts of f-strings among them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out = set() if docstrings else {n.value for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    constants = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in left_out]
    return [(n.lineno, n.value) for n in constants if isinstance(n.value, str)]


def calls(name):
    """The first arguments of all calls of a function below the command line, where they are written out."""
    found = set()
    for file in BELOW:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name and node.args:
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) else set()
    return found


def commands(group=None, path=()):
    """Each command with its options."""
    group = group or typer.main.get_command(app)
    found = {" ".join(path): {option for one in group.params for option in one.opts}}
    for name, inner in getattr(group, "commands", {}).items():
        found |= commands(inner, (*path, name))
    return found


# --- the rule ------------------------------------------------------------------------------------------------


def test_no_option_below_the_command_line():
    """Write {param('name')} in place of --name."""
    wrong = []
    for file in BELOW:
        name = file.relative_to(PACKAGE).as_posix()
        found = [(line, text) for line, text in texts(file) if OPTION.search(text)]
        wrong += [(name, *one) for one in found if not any(words in one[1] for words in NOT_OURS.get(name, ()))]
    assert wrong == []
    templates = {file.name: OPTION.findall(file.read_text(encoding="utf-8")) for file in TEMPLATES}
    assert {name: options for name, options in templates.items() if options} == {}


@pytest.mark.parametrize("text", ["Give --key.", "--key", "Name one with -o.", "(--k-map)", "`--k`", f"{'--'}"])
def test_an_option_is_seen(text):
    assert OPTION.search(text)


def test_no_command_below_the_command_line():
    """Write {command('ledger verify')} in place of veilmark ledger verify. The head of a study file may name some."""
    verbs = {name.split()[0] for name in commands() if name}
    named = re.compile(rf"\bveilmark ({'|'.join(verbs)})\b(?! \d)")
    wrong = {
        file.relative_to(PACKAGE).as_posix()
        for file in BELOW
        for _, text in texts(file, docstrings=False)
        if named.search(text)
    }
    assert wrong == {"guess/text.py"}


def test_parameters_and_commands_are_there():
    known = commands()
    options = set().union(*known.values())
    assert {name for name in calls("param") if spelled(param(name)) not in options} == set()
    assert calls("command") <= set(known)
    assert len(calls("param")) > 30


def test_labels_and_pages_are_there():
    shown = "".join(file.read_text(encoding="utf-8") for file in TEMPLATES if file.suffix == ".html")
    assert [label for label in LABELS.values() if label not in shown] == []
    titles = {module.NAV.title for module in page_modules() if hasattr(module, "NAV")}
    assert set(re.findall(r"page (\w+)", " ".join(PAGES.values()))) <= titles
    assert set(PAGES) <= set(commands())


# --- the spelling --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "python", "options", "fields", "plain"),
    [
        (param("population"), "population=", "--population", "“Population”", "“population”"),
        (param("covers", 8), "covers=8", "--covers 8", "“Covers for each recipient: 8”", "“covers: 8”"),
        (
            param("most_lost", 0.25),
            "most_lost=0.25",
            "--most-lost 25%",
            "“Most that a group may lose, %: 25”",
            "“most lost: 25 %”",
        ),
        (
            param("recipients", ["a", "b"]),
            "recipients=['a', 'b']",
            "--recipients a,b",
            "“Recipients”",
            "“recipients: a, b”",
        ),
        (param("skip_unknown", True), "skip_unknown=True", "--skip-unknown", f"“{LABELS['skip_unknown']}”", None),
        (param("suppress"), "suppression=", "--suppress", "“May be left out, in %”", "“suppress”"),
        (param("marks", "both"), "marks='both'", "--marks both", "“marks: both” (on the command line)", None),
        (param("k_map"), "KMap(…)", "--k-map", "“k-map”", "“k map”"),
        (param("output"), "output=", "-o", "“output” (on the command line)", "“output”"),
        (
            f"Changed. {command('ledger verify', lead='See')} Stop.",
            "Changed. See: veilmark ledger verify. Stop.",
            "Changed. See: veilmark ledger verify. Stop.",
            "Changed. Check the ledger on its page. Stop.",
            "Changed. See: veilmark ledger verify. Stop.",
        ),
        (f"Old. {command('ledger upgrade')}", "Old. Run: veilmark ledger upgrade.", None, "Old.", None),
        (
            command("users add", "NAME", role="custodian", workspace="my folder"),
            "Run: veilmark users add NAME --role custodian --workspace 'my folder'",
            None,
            "",
            None,
        ),
        ("No token, 100 % plain", "No token, 100 % plain", None, "No token, 100 % plain", None),
    ],
)
def test_each_front_end_spells_in_its_own_way(text, python, options, fields, plain):
    assert str(OptionError(text)) == str(Message(text)) == python
    assert spelled(OptionError(text)) == spelled(Message(text)) == spelled(text) == (options or python)
    assert spell(OptionError(text), FIELDS) == fields
    if plain is not None:
        assert spell(text, PLAIN) == plain


def test_a_message_goes_anywhere_and_keeps_its_tokens():
    message = Message(f"Ask for {param('covers', 8)}.")
    assert message == "Ask for covers=8."
    error = OptionError(message)
    assert repr(error) == "OptionError('Ask for covers=8.')"
    for same in (copy.deepcopy(message), pickle.loads(pickle.dumps(message)), pickle.loads(pickle.dumps(error))):
        assert spelled(same) == "Ask for --covers 8."
    assert json.loads(json.dumps({"notes": [message]})) == {"notes": ["Ask for covers=8."]}
    assert spell_all({"a": [message, 1], "b": (None, {"c": message})}, OPTIONS) == {
        "a": ["Ask for --covers 8.", 1],
        "b": [None, {"c": "Ask for --covers 8."}],
    }
    assert spelled(VeilmarkError(f"First. {template_of(error)}")) == "First. Ask for --covers 8."


def test_a_warning_reads_as_python_and_is_spelled_by_others():
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        warnings.warn(f"See {param('log_key')}.", VeilmarkWarning, stacklevel=1)
    assert str(noted[0].message) == "See key=."
    assert spelled(noted[0].message) == "See --log-key."


def test_errors_of_others_are_texts():
    assert spelled(OSError(2, "No such file", "x.csv")) == "[Errno 2] No such file: 'x.csv'"
    assert template_of(ValueError()) == ""


@pytest.mark.parametrize("inside", ["", "x", "[]", "[1, 2, 3]", '["param", 1, 2]', '["param", "k"]', '{"a": 1}', "\n"])
def test_the_markers_in_somebodys_data_do_no_harm(inside):
    text = f"Column '{START}{inside}{END}' is empty."
    for spelling in (OPTIONS, FIELDS, PLAIN):
        said = spell(text, spelling)
        assert said.startswith("Column '")
        assert said.endswith("' is empty.")
