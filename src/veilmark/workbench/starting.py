"""The verbs to start with: init, sample, hierarchy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from veilmark import sample
from veilmark.engines.duckdb import DuckDB
from veilmark.engines.files import find_files
from veilmark.errors import OptionError, did_you_mean, is_address
from veilmark.hierarchy import Levels, resolve, write_arx
from veilmark.output import refuse_inputs, write_table, write_text
from veilmark.study import Study
from veilmark.workbench.sources import engine_of, open_source

if TYPE_CHECKING:
    from veilmark.guess import Guess

NO_ADDRESS = (
    "init takes a file, and was given an address (…://). To begin a study of a table in a database, export some of its rows "
    "to CSV, run init on that file, and write `source: {engine: postgres, url: env:DATABASE_URL, table: NAME}` in the study "
    "in place of the file's name; or write the whole study by hand. For Spark it is `source: {engine: spark, path: …}`."
)


def init(data: str | os.PathLike[str], output: str | os.PathLike[str], force: bool = False) -> list[Guess]:
    """Guess each column's role and hierarchy, and write the study file."""
    from veilmark.guess import guess_columns, study_text

    if is_address(data):
        raise OptionError(NO_ADDRESS)
    target = Path(output)
    refuse_inputs(target, find_files(os.fspath(data)))
    if target.exists() and not force:
        raise OptionError(f"'{target}' exists already. Choose another name with -o, or replace it with --force.")
    with DuckDB() as engine:
        guesses = guess_columns(engine.open(os.fspath(data)))
    source = os.path.relpath(data, target.resolve().parent)
    write_text(target, study_text(source, guesses))
    return guesses


def make_sample(kind: str, output: str | os.PathLike[str], size: int, seed: int = 1) -> int:
    """Write a made-up table, and say how many records it has."""
    target = Path(output)
    if kind == "voters" and target.suffix == ".parquet":
        sample.write_voters(target, size, seed)
        return size
    table = sample.hospital(size, seed) if kind == "hospital" else sample.voters(size, seed)
    write_table(table, target)
    return len(table)


def hierarchy(study: Study, column: str, output: str | os.PathLike[str] | None = None) -> Levels:
    """An attribute's hierarchy on the data's values; `output` is a file for it in ARX's form."""
    if column not in study.spec.attributes:
        raise OptionError(f"{study.name} names no attribute '{column}'.{did_you_mean(column, study.spec.attributes)}")
    with engine_of(study) as engine:
        domain = open_source(engine, study).domain(column)
    levels = resolve(study.spec.attributes[column].hierarchy, domain, column, study.folder)
    if output is not None:
        write_arx(levels, output)
    return levels
