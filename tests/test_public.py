"""The public names, and what may not be needed to import them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import veilmark

ERRORS = (
    "DataError HierarchyError InputError OptionError OutputError StudyError VeilmarkError VeilmarkWarning WeightsError"
)
MODELS = "Alpha BasicBeta DeltaDisclosure DeltaPresence DistinctL EnhancedBeta EntropyL KAnonymity KMap RecursiveL "
MODELS += "TCloseness"
METHODS = "Anatomy FSlip Microaggregation Mondrian Ola OneMany Rmr Slicing"
GIVEN = (
    "Dates Intervals Ledger Marking Mask Monitor MonitorOptions Options PostgresTable Settings SparkFiles Study Terms"
)
RESULTS = "Anonymized Applied AttackResult Attacked Breach Compared Copy Measures Ranking Recoding RecordScore Release "
RESULTS += "Released Report ScoreResult Sliced Suspect Traced Tried UtilityView Verification"

STUDY = "anonymize apply attack breach compare compare_methods explain guess measure of open rank release report save score "
STUDY += (
    "utility data direct folder folding label missing name person pseudonyms quasi reasons sensitive settings source "
)
STUDY += "spec summary to_dict"
LEDGER = "decoys export release releases summary to_dict trace verify"


def public(kind):
    fields = getattr(kind, "__dataclass_fields__", {})
    return {name for name in (*dir(kind), *fields) if not name.startswith("_")}


def test_the_public_names_are_these():
    names = " ".join([ERRORS, MODELS, METHODS, GIVEN, RESULTS]).split()
    assert sorted(veilmark.__all__) == sorted(names)
    for name in veilmark.__all__:
        assert getattr(veilmark, name).__name__ == name


def test_dir_shows_the_public_names_and_nothing_else():
    assert dir(veilmark) == sorted([*veilmark.__all__, "__version__"])


def test_what_a_study_and_a_ledger_can_do():
    assert public(veilmark.Study) == set(STUDY.split())
    assert public(veilmark.Ledger) == set(LEDGER.split())


def callables():
    for name in veilmark.__all__:
        kind = getattr(veilmark, name)
        if not issubclass(kind, BaseException):
            yield name, kind
            for method in sorted(public(kind) & set(vars(kind))):
                if callable(getattr(kind, method)):
                    yield f"{name}.{method}", getattr(kind, method)


@pytest.mark.parametrize(("name", "called"), [*callables()], ids=lambda of: of if isinstance(of, str) else "")
def test_every_argument_has_a_name(name, called):
    kinds = [p.kind for p in inspect.signature(called).parameters.values()]
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize("kind", [veilmark.Study, veilmark.Ledger], ids=lambda of: of.__name__)
def test_every_verb_says_what_it_does_and_what_it_gives(kind):
    for name in sorted(public(kind) & set(vars(kind))):
        member = inspect.getattr_static(kind, name)
        if inspect.isfunction(member) and name != "summary":
            assert member.__doc__, name
            assert len(member.__doc__.splitlines()[0]) <= 120, name
            assert "return" in member.__annotations__, name


def test_every_result_prints_and_has_a_dict():
    for name in RESULTS.split():
        assert callable(getattr(veilmark, name).to_dict), name


def imported_by(statement, hidden=()):
    """The packages that a statement loads, in a process where some cannot be found."""
    code = f"""
import sys

class Hide:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {list(hidden)!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hide())
{statement}
print(*sorted(m.partition(".")[0] for m in sys.modules))
"""
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_core_imports_without_optional_parts():
    optional = [
        "altair",
        "vl_convert",
        "pandas",
        "polars",
        "pyspark",
        "psycopg",
        "fastapi",
        "jinja2",
        "pycanon",
        "sklearn",
    ]
    imported_by("import veilmark.workbench, veilmark.services.monitor, veilmark.guess, veilmark.cli.main", optional)


def test_help_loads_no_engine():
    loaded = imported_by("import veilmark.cli.main")
    assert not loaded & {"duckdb", "pyarrow", "numpy", "pydantic", "scipy"}
