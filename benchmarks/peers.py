"""Python peers from PyPI on the same work, in an environment of their own: anjana's k-anonymity, anonypy's Mondrian.

Loss is the generalized certainty penalty of the release, by one definition for all: the mean over cells of the share of
the values that a label covers (0 for a value itself, 1 for a suppressed record).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data import ADULT, FOLDER, HIERARCHIES, QUASI, voters

ENVIRONMENT = Path("build/peers")
PEERS = ("anjana", "anonypy")


@dataclass(frozen=True)
class Peer:
    """A peer's time and ours on the same table and k, with the loss of both."""

    name: str
    theirs: float
    ours: float
    their_loss: float
    our_loss: float

    def __str__(self) -> str:
        return (
            f"{self.name:44} theirs {self.theirs:7.2f} s  ours {self.ours:6.2f} s  {self.theirs / self.ours:6.1f} x   "
            f"loss {self.their_loss:.4f} / {self.our_loss:.4f}"
        )


def run(rows: int) -> list[Peer]:
    _install()
    tables = {f"{rows // 100:,} voters": _voters(rows // 100)}
    if ADULT.exists():
        tables["Adult"] = _adult()
    found = []
    for name, (path, levels) in tables.items():
        found.append(_compare(f"anjana k-anonymity, {name}", "anjana", "ola", path, levels))
        found.append(_compare(f"anonypy Mondrian, {name}", "anonypy", "mondrian", path, levels))
    return found


def _install() -> None:
    if not (ENVIRONMENT / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    subprocess.run([str(ENVIRONMENT / "bin/pip"), "install", "-q", *PEERS], check=True, stderr=subprocess.DEVNULL)


def _voters(rows: int) -> tuple[Path, dict[str, list[list[str]]]]:
    return _as_csv(voters(rows), {n: HIERARCHIES.get(n) for n in QUASI})


def _adult() -> tuple[Path, dict[str, list[list[str]]]]:
    source = next(ADULT.glob("*.csv"))
    names = source.read_text(encoding="utf-8").splitlines()[0].split(";")[:8]
    return _as_csv(source, {n: {"file": str(next(ADULT.rglob(f"*hierarchy_{n}.csv")))} for n in names})


def _as_csv(source: Path, specs: Mapping[str, object]) -> tuple[Path, dict[str, list[list[str]]]]:
    """The quasi-identifiers as a plain CSV, and for each the labels of its values, level by level."""
    import duckdb

    from veilmark.engines.duckdb import DuckDB
    from veilmark.hierarchy import parse_spec, resolve

    target = FOLDER / f"{source.stem}-peers.csv"
    listed = ", ".join(f'"{n}"' for n in specs)
    duckdb.execute(f"COPY (SELECT {listed} FROM '{source}') TO '{target}' (HEADER, FORMAT csv)")
    levels = {}
    with DuckDB() as engine:
        table = engine.open(target)
        for name, spec in specs.items():
            of = resolve(parse_spec(spec) if spec else None, table.domain(name), name)
            levels[name] = [of.of_values(level).to_pylist() for level in range(of.height + 1)]
    return target, levels


def _compare(name: str, peer: str, method: str, path: Path, levels: Mapping[str, list[list[str]]]) -> Peer:
    with tempfile.TemporaryDirectory() as folder:
        hierarchies = Path(folder) / "levels.json"
        hierarchies.write_text(json.dumps(levels), encoding="utf-8")
        theirs = _run([str(ENVIRONMENT / "bin/python"), "benchmarks/peer_job.py", peer, str(path), str(hierarchies)])
        ours = _run([sys.executable, "benchmarks/peer_job.py", method, str(path), str(hierarchies)])
    return Peer(name, theirs["seconds"], ours["seconds"], theirs["loss"], ours["loss"])


def _run(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer
