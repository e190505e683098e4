"""The public names, and what may not be needed to import them."""

from __future__ import annotations

import subprocess
import sys

import veilmark


def test_the_public_names_are_these():
    errors = "DataError HierarchyError InputError OptionError OutputError StudyError VeilmarkError "
    errors += "VeilmarkWarning WeightsError"
    models = "Alpha BasicBeta DeltaDisclosure DeltaPresence DistinctL EnhancedBeta EntropyL KAnonymity KMap RecursiveL "
    models += "TCloseness"
    others = "Anatomy FSlip Microaggregation Mondrian Monitor Ola OneMany Options Recoding Rmr Settings Slicing Study"
    assert set(veilmark.__all__) == {*errors.split(), *models.split(), *others.split()}
    for name in veilmark.__all__:
        assert getattr(veilmark, name).__name__ == name


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
    imported_by("import veilmark.workbench, veilmark.score.monitor, veilmark.guess, veilmark.cli.main", optional)


def test_help_loads_no_engine():
    loaded = imported_by("import veilmark.cli.main")
    assert not loaded & {"duckdb", "pyarrow", "numpy", "pydantic", "scipy"}
