"""What is taken where nothing is asked for: the same on the command line, in the web app and in Python."""

from __future__ import annotations

from typing import Final, Literal

Metric = Literal["dm_star", "precision", "dm", "gcp", "entropy", "lm"]
"""The losses that a search can minimize."""

Order = Literal["shuffle", "keep"]
"""Of the rows of a release: random, or the source's."""

K: Final = 5
SUPPRESSION: Final = 0.0
"""No record is left out, unless a share is asked for."""
LOSS: Final[Metric] = "gcp"
"""How wide labels are: it looks at what the columns still say, where discernibility only looks at class sizes."""
RECURSIVE_C: Final = 3.0
SECONDS: Final = 60.0
"""So long a lattice is searched that is too large to try all of it, unless a limit is asked for."""
ORDER: Final[Order] = "shuffle"
"""The source's order may tell who is who: rows of a patient, of a ward or of a day stand together there."""

DECOYS: Final = 3
"""At least so many decoy classes for each recipient, unless a number is asked for."""
COVERS: Final = 0
COLLUSION: Final = 2
"""Copies are marked so that one of two who collude is found, unless covers are asked for."""
FALSE_ACCUSATION: Final = 1e-6
RISK: Final[tuple[float, float] | None] = None
"""Decoys blend in; with a range, they attract: they have so many times the release's highest risk."""
BUDGET: Final = 0.5

THRESHOLD: Final = 0.2
"""The re-identification risk over which records are counted."""
TARGETS: Final = 100_000
KNOWN: Final = 1

SPREAD: Final = 0.2
"""How far weights are moved to see whether a ranking stays."""
DRAWS: Final = 1_000
