"""How an attack is scored: its success over many targets, beside a control who only knows the release's marginals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

Seed = Sequence[int]
"""What a random generator starts from."""

Z = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""

LITTLE, MUCH = 0.05, 0.2
"""Gains up to these are little, and some; beyond the second they are a lot. They are the risks in classes of 20 and of 5."""

RULE = (
    "An attack is better than guessing if the lower end of its 95 % interval is above the control. A gain of up to 5 "
    "percentage points is little; more than 20 is a lot."
)
"""How every verb and page judges an attack."""

Amount = Literal["none", "little", "some", "a lot"]


@dataclass(frozen=True)
class AttackResult:
    """`success` and `control` are means over `targets`, from 0 to 1; `interval` is Wilson's of the success, at 95 %.

    What lies between the two is what the release's structure gave away. `details` depend on the attack.
    """

    success: float
    control: float
    interval: tuple[float, float]
    targets: int
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        """How much better than the control."""
        return self.success - self.control

    @property
    def better(self) -> bool:
        """Whether it is better than guessing, by `RULE`."""
        return bool(self.targets) and self.interval[0] > self.control

    @property
    def amount(self) -> Amount:
        """How much the attacker gains, by `RULE`."""
        if not self.better:
            return "none"
        return "little" if self.gain <= LITTLE else "some" if self.gain <= MUCH else "a lot"

    def to_dict(self) -> dict[str, Any]:
        content = asdict(self) | {"interval": list(self.interval)}
        details = content.pop("details")
        return content | {"gain": self.gain, "better_than_guessing": self.better, "amount": self.amount} | details


def result(success: np.ndarray, control: np.ndarray, **details: Any) -> AttackResult:
    """Out of each target's success and control, between 0 and 1."""
    if not len(success):
        return AttackResult(0.0, 0.0, (0.0, 1.0), 0, details)
    mean = min(max(float(np.mean(success)), 0.0), 1.0)
    return AttackResult(mean, float(np.mean(control)), wilson(mean, len(success)), len(success), details)


def verdict(attacks: Mapping[str, AttackResult]) -> str:
    """The attacks that are better than guessing, the largest gain first, in a sentence."""
    better = sorted((name for name, of in attacks.items() if of.better), key=lambda name: -attacks[name].gain)
    if not better:
        return "No attack is better than guessing."
    listed = (f"{name} (+{100 * attacks[name].gain:.1f} points, {attacks[name].amount})" for name in better)
    return f"Better than guessing: {', '.join(listed)}."


def without_targets(attacks: Mapping[str, AttackResult]) -> list[str]:
    """Why attacks on further sensitive values have nobody to attack, in a sentence, where that is so."""
    idle = [name for name in ("bk", "msacorr") if name in attacks and not attacks[name].targets]
    if not idle:
        return []
    verb = "has no targets: it knows" if len(idle) == 1 else "have no targets: they know"
    want = "wants" if len(idle) == 1 else "want"
    return [
        f"{' and '.join(idle)} {verb} a sensitive value of a person and {want} another. In this study every "
        "person has only one."
    ]


def wilson(share: float, count: int, z: float = Z) -> tuple[float, float]:
    """Wilson's score interval of a share of `count` independent trials; for amounts between 0 and 1 it is too wide."""
    if not count:
        return 0.0, 1.0
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))
