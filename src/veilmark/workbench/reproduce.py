"""The verb reproduce: a paper's printed tables beside what veilmark makes of the same data."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from veilmark.errors import OptionError, did_you_mean
from veilmark.output import refuse_address
from veilmark.reproduce.comparison import Reproduced, Row

File = str | os.PathLike[str]
PAPERS = ("tkl", "fslip", "anontokens")


def reproduce(
    paper: str,
    page: File | None = None,
    samples: int = 50,
    seed: int = 1,
    data: File | None = None,
    experiment: bool = False,
) -> Reproduced:
    """Reproduce a paper, and write the result to an HTML page where one is named.

    `samples` is for anontokens. `experiment` adds to the worked example of fslip its experiment, which takes minutes. `data`
    is what they are made from: anontokens' folder with the files of ZIP areas, fslip's table.
    """
    if paper not in PAPERS:
        raise OptionError(
            f"'{paper}' is not a paper that can be reproduced.{did_you_mean(paper, PAPERS)} Use one of: "
            f"{', '.join(PAPERS)}."
        )
    if page is not None:
        from veilmark.report.charts import check_path
        from veilmark.reproduce.page import check_page

        check_page(Path(page))
        check_path(Path(page))
    source = Path(data) if data is not None else None
    found = _fslip(seed, source, experiment) if paper == "fslip" else _run(paper, samples, seed, source)
    if page is not None:
        from veilmark.reproduce.page import write_page

        write_page(found, Path(page))
    return found


def _run(paper: str, samples: int, seed: int, folder: Path | None) -> Reproduced:
    if paper == "tkl":
        from veilmark.reproduce import tkl

        return tkl.run()
    from veilmark.reproduce import anontokens

    return anontokens.run(samples, seed, folder)


def _fslip(seed: int, table: Path | None, experiment: bool) -> Reproduced:
    from veilmark.reproduce import fslip

    rows = [Row(row.table, "", row.printed, row.ours, row.verdict) for row in fslip.worked_example()]
    found = Reproduced("fslip", "f-slip: many records per person (Jayapradha and Prakash)", rows)
    if not experiment:
        return found
    from veilmark.reproduce.fslip_experiment import Scope
    from veilmark.reproduce.fslip_experiment import experiment as run

    more = run(Scope(seed=seed), table)
    return replace(found, rows=[*rows, *more.rows], notes=more.notes, details=more.details, charts=more.charts)


def write_populations(folder: File, seed: int = 1, data: File | None = None) -> list[Path]:
    """Write the voters of anontokens' three states, a row a person, as Parquet files to a new or empty folder."""
    from veilmark.reproduce.population import DATA, STATES, population, write_population

    files = Path(data) if data is not None else DATA if DATA.is_dir() else None
    target = Path(folder)
    refuse_address(target)
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise OptionError(f"'{folder}' cannot be created: {error.strerror}. Name another folder.") from None
    paths = []
    for state in STATES:
        paths.append(target / f"{state.name.lower().replace(' ', '_')}.parquet")
        write_population(population(state, seed, files), paths[-1])
    return paths
