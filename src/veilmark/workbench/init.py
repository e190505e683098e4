"""The verbs to start with: init, sample, hierarchy."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmark import sample
from veilmark.engines.duckdb import DuckDB, DuckTable
from veilmark.engines.files import find_files, first_rows, is_parquet
from veilmark.errors import OptionError, StudyError, VeilmarkWarning, did_you_mean, is_address
from veilmark.hierarchy import Levels, resolve, write_arx
from veilmark.messages import command, param
from veilmark.output import refuse_address, refuse_inputs, write_table, write_text
from veilmark.study.opening import engine_of, open_source
from veilmark.study.spec import VERSION, StudySpec
from veilmark.study.study import Settings, Study

if TYPE_CHECKING:
    from veilmark.guess import Guess

STUDY_SUFFIXES = (".yaml", ".yml")
HEADER_ROWS = 1_000
"""So many rows tell whether the first one holds column names."""

NO_ADDRESS = (
    "This is a URL (…://), but init needs a file. For a table in a database, export some of its rows to CSV and "
    "run init on that file. Then replace the source in the study by `source: {engine: postgres, url: "
    "env:DATABASE_URL, table: NAME}`. For Spark, use `source: {engine: spark, path: …}`."
)


def init(
    data: str | os.PathLike[str], output: str | os.PathLike[str], force: bool = False, header: bool = False
) -> list[Guess]:
    """Guess each column's role and hierarchy, and write the study file.

    With `header`, the first line of a CSV holds the column names even where it looks like data.
    """
    from veilmark.guess import study_text

    if is_address(data):
        raise OptionError(NO_ADDRESS)
    target = Path(output)
    refuse_address(target)
    refuse_inputs(target, find_files(os.fspath(data)))
    if target.exists() and not force:
        raise OptionError(
            f"'{target}' exists already. Choose another name with {param('output')}, or replace it with "
            f"{param('force', True)}."
        )
    folder = target.resolve().parent
    guesses = [_from(folder, guess) for guess in guess_roles(data, header)]
    write_text(target, study_text(os.path.relpath(data, folder), guesses))
    return guesses


def guess_roles(data: Any, header: bool = False, settings: Settings | None = None) -> list[Guess]:
    """What each column of a file or a frame probably is, and why."""
    from veilmark.guess import guess_columns

    settings = settings or Settings()
    with DuckDB(settings.threads, settings.memory) as engine:
        if not isinstance(data, str | os.PathLike):
            return guess_columns(engine.open(data))
        path = os.fspath(data)
        first = find_files(path)[0]
        _check_table(first, header)
        return guess_columns(engine.open(path), first)


def hints_on(guesses: Sequence[Guess]) -> list[str]:
    """What no column was recognized as, and what that means."""
    from veilmark.guess import hints

    return hints(guesses)


def _check_table(file: Path, header: bool) -> None:
    """A file begins with column names, and is not a study."""
    from veilmark.guess.header import check_header

    if file.suffix.lower() in STUDY_SUFFIXES:
        raise OptionError(f"This is a study, not a table. {command('measure', str(file))}")
    if not is_parquet(file) and not header:
        check_header(first_rows(file, HEADER_ROWS), str(file))


def _from(folder: Path, guess: Guess) -> Guess:
    """The guess with the path of a hierarchy file as seen from a folder."""
    hierarchy = guess.hierarchy or {}
    if "file" not in hierarchy:
        return guess
    return replace(guess, hierarchy={**hierarchy, "file": os.path.relpath(hierarchy["file"], folder)})


def guess_study(data: Any, header: bool = False, settings: Settings | None = None) -> Study:
    """A study of a file or a frame with the roles that `init` would guess, and the reasons."""
    from veilmark.guess import study_content

    guesses = guess_roles(data, header, settings)
    for note in [*hints_on(guesses), *_published_as_is(guesses)]:
        warnings.warn(note, VeilmarkWarning, stacklevel=3)
    content = study_content([_from(Path.cwd(), guess) for guess in guesses])
    path = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    spec = StudySpec.model_validate({"version": VERSION, "source": path, **content})
    reasons = {guess.column: guess.why for guess in guesses}
    return Study(spec, data=None if path else data, settings=settings or Settings(), reasons=reasons)


def _published_as_is(guesses: Sequence[Guess]) -> list[str]:
    """Which columns have the role other, so that nobody overlooks them."""
    names = [guess.column for guess in guesses if guess.role == "other" and guess.usable]
    if not names:
        return []
    return [
        f"These columns have the guessed role other, so they are published unchanged: {', '.join(names)}. The "
        "study gives the reasons. Change the role of a column if the guess is wrong."
    ]


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
        raise OptionError(f"{study.name} has no attribute '{column}'.{did_you_mean(column, study.spec.attributes)}")
    with engine_of(study) as engine:
        domain = open_source(engine, study).domain(column)
    levels = resolve(study.spec.attributes[column].hierarchy, domain, column, study.folder)
    if output is not None:
        write_arx(levels, output)
    return levels


def guess_again(study: Study) -> list[Guess]:
    """Guess what the columns of a study's source are; the study itself stays as it is."""
    from veilmark.guess import guess_columns

    with engine_of(study) as engine:
        table = open_source(engine, study)
        if not isinstance(table, DuckTable):
            raise StudyError(f"The columns of {study.label} cannot be read: only files can. Choose the roles yourself.")
        return guess_columns(table)
