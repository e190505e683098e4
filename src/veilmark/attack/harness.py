"""How an attack is scored: its success over many targets, beside a control who only knows the release's marginals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

Seed = Sequence[int]
"""What a random generator starts from."""

Z = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


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

    def to_dict(self) -> dict[str, Any]:
        content = asdict(self) | {"interval": list(self.interval)}
        return content | dict(content.pop("details"))


def result(success: np.ndarray, control: np.ndarray, **details: Any) -> AttackResult:
    """Out of each target's success and control, between 0 and 1."""
    if not len(success):
        return AttackResult(0.0, 0.0, (0.0, 1.0), 0, details)
    mean = min(max(float(np.mean(success)), 0.0), 1.0)
    return AttackResult(mean, float(np.mean(control)), wilson(mean, len(success)), len(success), details)


def wilson(share: float, count: int, z: float = Z) -> tuple[float, float]:
    """Wilson's score interval of a share of `count` independent trials; for amounts between 0 and 1 it is too wide."""
    if not count:
        return 0.0, 1.0
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))
