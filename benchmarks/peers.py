"""Python peers from PyPI on the same work, in an environment of their own: anjana's k-anonymity beside OLA, anonypy's
Mondrian beside Mondrian, pyCANON's measures beside `measure`.

Loss is the generalized certainty penalty of the release, by one definition for all: the mean over cells of the share of
the values that a label covers (0 for a value itself, 1 for a suppressed record).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import ADULT, FOLDER, HIERARCHIES, QUASI, voters

ENVIRONMENT = Path("build/peers")
PAIRS = {"anjana": "ola", "anonypy": "mondrian", "pycanon": "measure"}
LIMIT = 100
"""A job that has used so many seconds of the processor is ended."""

Levels = Mapping[str, list[list[str]]]


@dataclass(frozen=True)
class Peer:
    """A peer's job and ours on the same table: what each said of itself, None where it was ended."""

    name: str
    theirs: Mapping[str, Any] | None
    ours: Mapping[str, Any] | None

    def __str__(self) -> str:
        if self.theirs is None or self.ours is None:
            return f"{self.name:34} theirs {_spent(self.theirs)}   ours {_spent(self.ours)}"
        ratios = (
            f"{self.theirs['seconds'] / self.ours['seconds']:6.1f} x ({self.theirs['cpu'] / self.ours['cpu']:.1f} x)"
        )
        return f"{self.name:34} theirs {_spent(self.theirs)}   ours {_spent(self.ours)}   {ratios}   {self._outcome()}"

    def _outcome(self) -> str:
        assert self.theirs is not None
        assert self.ours is not None
        if "loss" in self.ours:
            return f"loss {self.theirs['loss']:.4f} / {self.ours['loss']:.4f}"
        same = self.theirs["numbers"] == self.ours["numbers"]
        return "same k, l, t" if same else f"{self.theirs['numbers']} / {self.ours['numbers']}"


def _spent(of: Mapping[str, Any] | None) -> str:
    return f"over {LIMIT} s of CPU " if of is None else f"{of['seconds']:6.2f} s ({of['cpu']:6.2f} s of CPU)"


def run(rows: int) -> Iterator[Peer]:
    """Adult, and samples of the voters' roll that grow tenfold."""
    _install()
    tables = {"Adult": _adult()} if ADULT.exists() else {}
    tables |= {f"{size:,} voters": _voters(size) for size in (rows // 10_000, rows // 1_000, rows // 100)}
    for name, (path, levels) in tables.items():
        for peer, own in PAIRS.items():
            yield _compare(f"{peer}, {name}", peer, own, path, levels)


def _install() -> None:
    if not (ENVIRONMENT / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    subprocess.run([str(ENVIRONMENT / "bin/pip"), "install", "-q", *PAIRS], check=True, stderr=subprocess.DEVNULL)


def _voters(rows: int) -> tuple[Path, Levels]:
    return _as_csv(voters(rows), {n: HIERARCHIES.get(n) for n in QUASI}, "condition")


def _adult() -> tuple[Path, Levels]:
    source = next(ADULT.glob("*.csv"))
    *names, sensitive = source.read_text(encoding="utf-8").splitlines()[0].split(";")
    return _as_csv(source, {n: {"file": str(next(ADULT.rglob(f"*hierarchy_{n}.csv")))} for n in names}, sensitive)


def _as_csv(source: Path, specs: Mapping[str, object], sensitive: str) -> tuple[Path, Levels]:
    """The table as a plain CSV, and for each quasi-identifier the labels of its values, level by level."""
    import duckdb

    from veilmark.engines.duckdb import DuckDB
    from veilmark.hierarchy import parse_spec, resolve

    target = FOLDER / f"{source.stem}-peers.csv"
    listed = ", ".join(f'"{n}"' for n in specs)
    chosen = f"SELECT {listed}, \"{sensitive}\" AS sensitive FROM '{source}'"
    duckdb.execute(f"COPY ({chosen}) TO '{target}' (HEADER, FORMAT csv)")
    levels = {}
    with DuckDB() as engine:
        table = engine.open(target)
        for name, spec in specs.items():
            of = resolve(parse_spec(spec) if spec else None, table.domain(name), name)
            levels[name] = [of.of_values(level).to_pylist() for level in range(of.height + 1)]
    return target, levels


def _compare(name: str, peer: str, own: str, path: Path, levels: Levels) -> Peer:
    with tempfile.TemporaryDirectory() as folder:
        hierarchies = Path(folder) / "levels.json"
        hierarchies.write_text(json.dumps(levels), encoding="utf-8")
        theirs = _run(str(ENVIRONMENT / "bin/python"), peer, str(path), str(hierarchies))
        return Peer(name, theirs, _run(sys.executable, own, str(path), str(hierarchies)))


def _run(python: str, *arguments: str) -> Mapping[str, Any] | None:
    """What the job printed, or None where it took too long."""
    command = [python, "benchmarks/peer_job.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limit)
    if done.returncode < 0:
        return None
    done.check_returncode()
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
