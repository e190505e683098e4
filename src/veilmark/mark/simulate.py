"""Mixing copies in simulation: how often leakers are named, and whether an innocent ever is."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from veilmark.attack.harness import wilson
from veilmark.errors import OptionError
from veilmark.mark.code import Code, bits, derive
from veilmark.trace.scores import ScoreKind, score

STRATEGIES = ("mix", "union", "intersection", "majority", "minority", "coin")


def strategy_table(strategy: str, coalition: int) -> np.ndarray:
    """The probability that a class goes into the leak when k = 0..c of the coalition hold it.

    mix: each class as a random member has it; union, intersection; majority and minority, ties by chance; coin: where
    copies differ, by chance. A class that nobody holds cannot be put in; one that all hold stays.
    """
    k = np.arange(coalition + 1)
    tie = np.where(2 * k == coalition, 0.5, 0.0)
    tables = {
        "mix": k / coalition,
        "union": np.ones(coalition + 1),
        "intersection": np.zeros(coalition + 1),
        "majority": (2 * k > coalition) + tie,
        "minority": (2 * k < coalition) + tie,
        "coin": np.full(coalition + 1, 0.5),
    }
    if strategy not in tables:
        raise OptionError(f"'{strategy}' is not a way to mix copies. Use one of: {', '.join(STRATEGIES)}.")
    table = tables[strategy].astype(float)
    table[0], table[-1] = 0.0, 1.0
    return table


@dataclass(frozen=True)
class Simulation:
    """Of `trials` mixes: in how many at least one leaker, all of them, an innocent one was named."""

    strategy: str
    coalition: int
    recipients: int
    length: int
    deletions: float
    false_accusation: float
    trials: int
    caught_any: int
    caught_all: int
    caught: float  # mean share of the coalition that is named
    innocent_accused: int

    @property
    def power(self) -> float:
        return self.caught_any / self.trials

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "power": self.power}


def simulate(
    code: Code,
    key: bytes,
    recipients: int,
    coalition: int,
    strategy: str = "mix",
    trials: int = 1000,
    false_accusation: float = 1e-6,
    seed: int = 0,
    deletions: float = 0.0,
    kept: int = 200,
    kind: ScoreKind = "likelihood",
    beside: bool = True,
) -> Simulation:
    """Give copies to recipients with a fresh key a trial, let a random coalition mix theirs, and trace the leak.

    `deletions`: the probability that a class is left out of the leak; `kept`: how many classes all recipients hold,
    from which the tracer sees that.
    """
    if not 1 <= coalition <= recipients:
        raise OptionError(
            f"A coalition of {coalition} is not possible with {recipients} recipients. Choose a coalition from 1 "
            "to the number of recipients."
        )
    table = strategy_table(strategy, coalition) * (1 - deletions)
    names = [str(i) for i in range(recipients)]
    random = np.random.default_rng(seed)
    named = np.zeros((trials, 2), dtype=int)  # leakers, innocents
    for trial in range(trials):
        held = bits(derive(key, f"trial {seed} {trial}"), names, code)
        leakers = random.choice(recipients, coalition, replace=False)
        present = random.random(code.length) < table[held[leakers].sum(axis=0)]
        stay = int(random.binomial(kept, 1 - deletions))
        accused = score(code, held, present, (stay, kept - stay), kind, beside).accused(false_accusation)
        named[trial] = accused[leakers].sum(), accused.sum() - accused[leakers].sum()
    return Simulation(
        strategy=strategy,
        coalition=coalition,
        recipients=recipients,
        length=code.length,
        deletions=deletions,
        false_accusation=false_accusation,
        trials=trials,
        caught_any=int((named[:, 0] > 0).sum()),
        caught_all=int((named[:, 0] == coalition).sum()),
        caught=float(named[:, 0].mean() / coalition),
        innocent_accused=int((named[:, 1] > 0).sum()),
    )


def interval(run: Simulation) -> tuple[float, float]:
    """Wilson's 95 % interval of a run's power."""
    return wilson(run.power, run.trials)
