"""A release to 30 recipients against a population, beside one group-by of the population and plain writing of 30 copies.

Then a leaked copy, and a mix of three, are traced.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.data import FOLDER, HIERARCHIES, QUASI, voters
from benchmarks.harness import Comparison, alone, compare

RECIPIENTS = tuple(f"recipient {i}" for i in range(30))
COLLUSION = 3


def sample_of(population: Path) -> Path:
    """One in a hundred of the population, as a CSV."""
    import duckdb

    target = FOLDER / f"{population.stem}-members.csv"
    if not target.exists():
        columns = ", ".join(["voter_id", *QUASI, "condition"])
        rows = f"SELECT {columns} FROM '{population}' WHERE hash(voter_id) % 100 = 0"
        duckdb.execute(f"COPY ({rows}) TO '{target}' (FORMAT csv, HEADER)")
    return target


def group_and_write(population: str, members: str) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET enable_progress_bar=false")
    folder = Path(tempfile.mkdtemp())
    listed = ", ".join(QUASI)

    def run() -> None:
        connection.execute(
            f"SELECT count(*) FROM (SELECT {listed}, count(*) FROM '{population}' GROUP BY {listed})"
        ).fetchall()
        for i in range(len(RECIPIENTS)):
            connection.execute(
                f"COPY (SELECT {listed}, condition FROM '{members}') TO '{folder / f'{i}.csv'}'"
            ).fetchall()
        shutil.rmtree(folder)

    return run


def release(population: str, members: str) -> Callable[[], object]:
    folder = Path(tempfile.mkdtemp())
    return lambda: release_to(folder, population, members)


def release_to(folder: Path, population: str, members: str) -> object:
    from veilmark import Ola, Study
    from veilmark.mark.marking import CopyMarking
    from veilmark.mark.request import ReleaseRequest
    from veilmark.study.study import Settings
    from veilmark.workbench.release import release as run_release

    roles: dict[str, object] = {n: {"role": "quasi", "hierarchy": HIERARCHIES.get(n)} for n in QUASI}
    study = Study.of(members, {"voter_id": "direct", **roles, "condition": "sensitive"}, settings=Settings(threads=2))
    marking = CopyMarking(RECIPIENTS, 5, decoys=3, collusion=COLLUSION, risk=(1, 20))
    job = ReleaseRequest(population, ("voter_id",), marking, method=Ola(0.05), seed=1)
    return run_release(study, job, folder / "ledger.db", folder / "ledger.key", folder / "copies")


def trace(population: str, members: str) -> Callable[[], object]:
    from veilmark.workbench.trace import trace as run_trace

    folder = Path(tempfile.mkdtemp())
    release_to(folder, population, members)
    leak = next((folder / "copies").glob("recipient_7.csv"))

    def run() -> None:
        found = run_trace(folder / "ledger.db", folder / "ledger.key", file=leak)
        assert found.accused == ("recipient 7",)

    return run


def run(rows: int) -> list[Comparison | str]:
    population = voters(rows)
    members = sample_of(population)
    one = alone(trace, str(population), str(members))
    name = f"30 copies of {rows // 100:,} rows, population {rows:,}"
    compared = compare(name, group_and_write, release, str(population), str(members), limit=3, repeat=3)
    return [compared, f"tracing one leaked copy: {one.seconds:.2f} s"]
