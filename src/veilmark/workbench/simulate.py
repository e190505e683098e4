"""The verb simulate: how often recipients who mix their copies are found, before anything is released."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmark.attack.harness import wilson
from veilmark.charted import Charted
from veilmark.errors import OptionError
from veilmark.mark import simulate as mixes
from veilmark.mark.code import Code, coalition_withstood, make_code, needed_length
from veilmark.mark.simulate import STRATEGIES, Simulation, interval, strategy_table
from veilmark.progress import step

EVERY = "all"


@dataclass(frozen=True, eq=False)
class Simulated(Charted):
    """What came of the mixes, strategy by strategy. `withstands`: the largest coalition for which the code is long enough,
    `needed`: how many cover classes the one asked for takes."""

    code: Code
    needed: int
    withstands: int
    seed: int
    runs: tuple[Simulation, ...]

    def chart(self) -> Any:
        """How often leakers are named, by how they mix."""
        from veilmark.report.power_chart import power

        return power(self)

    @property
    def power(self) -> float:
        """The share of mixes in which a leaker was named, by the strategy that hides them best."""
        return min(run.power for run in self.runs)

    @property
    def trials(self) -> int:
        return sum(run.trials for run in self.runs)

    @property
    def innocent_accused(self) -> int:
        """In how many of all mixes an innocent recipient was named."""
        return sum(run.innocent_accused for run in self.runs)

    def to_dict(self) -> dict[str, Any]:
        first = self.runs[0]
        innocent = wilson(self.innocent_accused / self.trials, self.trials)
        return {
            "recipients": first.recipients,
            "collusion": first.coalition,
            "false_accusation": first.false_accusation,
            "deletions": first.deletions,
            "seed": self.seed,
            "code": self.code.to_dict(),
            "needed": self.needed,
            "withstands": self.withstands,
            "trials": self.trials,
            "power": self.power,
            "innocent_accused": self.innocent_accused,
            "innocent_interval": list(innocent),
            "strategies": {run.strategy: {**run.to_dict(), "interval": list(interval(run))} for run in self.runs},
        }


def simulate(
    recipients: int,
    collusion: int,
    false_accusation: float = 1e-6,
    classes: int | None = None,
    strategy: str = EVERY,
    trials: int = 1000,
    seed: int = 1,
    deletions: float = 0.0,
    chart: str | os.PathLike[str] | None = None,
) -> Simulated:
    """Let random coalitions mix their copies, `trials` times for each strategy, and trace every mix.

    `classes` is the number of cover classes, by default as many as a code for this coalition needs. `deletions`: the
    share of classes that the leakers leave out besides. `chart` is a file to draw the result to.
    """
    chosen = STRATEGIES if strategy == EVERY else (strategy,)
    for name in chosen:
        strategy_table(name, 1)
    if trials < 1 or (classes is not None and classes < 1):
        raise OptionError("A simulation needs at least one trial and one cover class.")
    if chart is not None:
        from veilmark.report.charts import check_path

        check_path(Path(chart))
    needed = needed_length(recipients, collusion, false_accusation, deletions=deletions)
    length = classes or needed.length
    key = hashlib.sha256(f"veilmark simulation {seed}".encode()).digest()
    code = make_code(key, needed.kind, collusion, length)
    runs = []
    for i, name in enumerate(chosen):
        with step(f"Simulating {name}", lambda done=i: done / len(chosen)):  # type: ignore[misc]
            # Tracing tests decoys and covers, each with half of what is allowed; here there are covers alone.
            run = mixes.simulate(code, key, recipients, collusion, name, trials, false_accusation / 2, seed, deletions)
            runs.append(replace(run, false_accusation=false_accusation))
    withstands = coalition_withstood(length, recipients, false_accusation, deletions=deletions)
    found = Simulated(code, needed.length, withstands, seed, tuple(runs))
    if chart is not None:
        from veilmark.report import power_chart
        from veilmark.report.charts import save

        save(power_chart.power(found), Path(chart))
    return found
