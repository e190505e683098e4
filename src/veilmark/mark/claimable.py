"""What claims can ever show of a release: the smallest probability, and the decoys that would be enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from veilmark.mark.enough import enough_decoys
from veilmark.mark.plan import Marks
from veilmark.messages import Message, param
from veilmark.readable import probability
from veilmark.trace.tails import smallest_probability

MOST = 100
"""At most so many decoy classes for each recipient are tried."""


@dataclass(frozen=True)
class Claimable:
    """Claims about a release can reach `smallest_probability` at best: all `decoys` classes of a recipient are met, and no
    other of the `pool`. `enough`: that is within the probability of a false accusation. `decoys_needed`: the fewest decoy
    classes for each recipient that would be within it; None where the pool carries no such number."""

    recipients: int
    decoys: int
    pool: int
    smallest_probability: float
    false_accusation: float
    decoys_needed: int | None

    @classmethod
    def of(cls, marks: Marks) -> Claimable | None:
        """None for a release without decoys."""
        marking, pool = marks.marking, len(marks.pool)
        names, limit = len(marking.recipients), marking.false_accusation
        if not marking.decoys:
            return None
        tried = range(1, min(pool // names, MOST) + 1)
        needed = next((d for d in tried if smallest_probability(names, d, pool) <= limit), None)
        best = smallest_probability(names, marking.decoys, pool)
        if needed is None and marking.risk is None:  # A larger pool comes with more decoys.
            needed = max(enough_decoys(names, limit), marking.decoys + 1)
        return cls(names, marking.decoys, pool, best, limit, needed)

    @property
    def enough(self) -> bool:
        return self.smallest_probability <= self.false_accusation

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "enough": self.enough}

    @property
    def said(self) -> str:
        """What claims can show, in words."""
        return (
            f"Claims of re-identification can reach a probability of {probability(self.smallest_probability)} at best "
            f"({self.decoys:,} decoy classes for each of {self.recipients:,} recipients, from a pool of {self.pool:,})."
        )

    @property
    def warning(self) -> str:
        """That claims can name nobody, with what to do; nothing where they can."""
        if self.enough:
            return ""
        limit = f"That is above the {self.false_accusation:g} you chose, so claims can name nobody."
        if self.decoys_needed is None:
            return Message(
                f"{self.said} {limit} No number of decoys from this pool is enough. Widen {param('risk')}, use a larger "
                f"population, allow more suppression, or raise {param('false_accusation')}."
            )
        return Message(f"{self.said} {limit} Ask for {param('decoys', self.decoys_needed)}.")
