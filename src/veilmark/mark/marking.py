"""What is asked of the marks of a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from veilmark.defaults import BUDGET, COLLUSION, COVERS, DECOYS, FALSE_ACCUSATION, RISK
from veilmark.errors import OptionError
from veilmark.mark.enough import enough_decoys
from veilmark.messages import param

Strategy = Literal["stratified", "size", "random", "risk"]
MarkKind = Literal["classes", "rows", "both"]


@dataclass(frozen=True)
class CopyMarking:
    """What is asked for.

    Each recipient gets `decoys` classes of its own. They blend in or, with `risk`, they attract: they have so many times
    the release's highest risk. Either `covers` real classes are kept for each recipient alone (the paper), or a code
    withholds classes so that `collusion` recipients together cannot hide (one of them is found). `strategy` says which
    classes are withheld: some of all sizes and labels, small ones, random ones or risky ones; at most the share `budget` of
    all classes. No recipient may lack more than the share `most_lost` of the records with any label; without it, such labels
    are pointed out. Where the release is a biased sample of the population, decoys come from the share `near` of their pool
    that is nearest to it. The code withholds whole `marks`: classes, or single rows of classes that have records to spare,
    or both.
    """

    recipients: tuple[str, ...]
    k: int
    decoys: int = DECOYS
    covers: int = COVERS
    collusion: int | None = None
    false_accusation: float = FALSE_ACCUSATION
    risk: tuple[float, float] | None = RISK
    strategy: Strategy = "stratified"
    budget: float = BUDGET
    near: float = 1.0
    most_lost: float | None = None
    marks: MarkKind = "classes"
    collusion_asked: bool = True
    """Whether that many who collude were asked for; if not, fewer will do where the release cannot carry the code."""
    decoys_asked: bool = True
    """Whether that many decoys were asked for; if not, fewer will do where they would cost too much."""

    def __post_init__(self) -> None:
        names = self.recipients
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if not names or any(not name.strip() for name in names):
            raise OptionError(f"Name at least one recipient: {param('recipients', ['ada', 'bob'])}.")
        if twice:
            raise OptionError(f"The recipient '{twice[0]}' is named twice. Give each recipient a different name.")
        if self.decoys < 0 or self.covers < 0:
            raise OptionError("The numbers of decoy and cover classes must be 0 or more.")
        if not (self.decoys or self.covers or self.collusion):
            raise OptionError(
                f"The copies would be identical, so leaks could not be traced. Ask for {param('decoys')}, "
                f"{param('covers')} or {param('collusion')}."
            )
        if self.covers and self.collusion:
            raise OptionError(
                f"Give {param('covers')} or {param('collusion')}, not both: they are two ways to hide decoys."
            )
        if self.collusion is not None and not 1 <= self.collusion <= len(names):
            raise OptionError(
                f"The coalition size is {self.collusion}, but it must be from 1 to {len(names)}, the number "
                "of recipients."
            )
        self._check_marks()
        if not 0 < self.false_accusation < 1:
            raise OptionError(
                f"The probability of a false accusation must lie between 0 and 1, not {self.false_accusation:g}. Try 1e-6."
            )
        if self.risk is not None and not 0 < self.risk[0] <= self.risk[1]:
            raise OptionError(
                "The risk range must be two increasing numbers above 0, such as 1.1:1.5, not "
                f"{self.risk[0]}:{self.risk[1]}."
            )
        if not 0 < self.budget <= 1:
            raise OptionError(
                "The budget is the share of classes that may be withheld. It must be above 0 and at most 1, "
                f"not {self.budget:g}."
            )
        if not 0 < self.near <= 1:
            raise OptionError(
                f"{param('near')} is a share of the candidates. It must be above 0 and at most 1, not {self.near:g}."
            )
        if self.most_lost is not None and not 0 < self.most_lost <= 1:
            raise OptionError(
                f"{param('most_lost')} is the share of a group's records that a copy may lack. It must be above 0 "
                f"and at most 1, not {self.most_lost:g}. Try 0.25."
            )

    def _check_marks(self) -> None:
        if self.marks == "classes":
            return
        if self.collusion is None:
            raise OptionError(
                f"Row marks ({param('marks', self.marks)}) are part of a code. Add {param('collusion', 1)} or more."
            )
        if self.marks == "rows" and self.decoys:
            raise OptionError(
                "With row marks alone, any class in only one copy must be a decoy, so decoys are not hidden. Use "
                f"{param('marks', 'both')}, or {param('decoys', 0)}."
            )


@dataclass(frozen=True, kw_only=True)
class Marking:
    """How recipients' copies are told apart: `Marking(decoys=3, collusion=2)`, or `Marking()` for what is best.

    `decoys` are classes for each recipient alone with persons who are not in the data: as many as claims of
    re-identification need to name a recipient, unless a number is given; 0 needs no population. They blend in or, with
    `risk=(1.1, 1.5)`, they attract: they have so many times the release's highest risk. A code withholds real classes so
    that of `collusion` recipients who act together one is found (2, unless a number is given); or `covers` real classes are
    kept for each recipient alone. `strategy` says which classes are withheld, at most the share `budget` of all. No
    recipient may lack more than the share `most_lost` of the records with any label. Where the release is a biased sample
    of the population, decoys come from the share `near` of their pool that is nearest to it. The code withholds whole
    `marks`: classes, or single rows of classes that have records to spare, or both.
    """

    decoys: int | None = None
    covers: int | None = None
    collusion: int | None = None
    false_accusation: float = FALSE_ACCUSATION
    risk: tuple[float, float] | None = RISK
    strategy: Strategy = "stratified"
    budget: float = BUDGET
    near: float = 1.0
    most_lost: float | None = None
    marks: MarkKind = "classes"

    def __post_init__(self) -> None:
        """What is wrong for any recipients is refused at once."""
        if self.collusion is not None and self.collusion < 1:
            raise OptionError(f"A coalition has at least 1 member, not {self.collusion}.")
        names = tuple(str(i) for i in range(max(COLLUSION, self.collusion or 0)))
        given = {**vars(self), "decoys": DECOYS if self.decoys is None else self.decoys, "covers": self.covers or 0}
        if self.covers is None and self.collusion is None:
            given["collusion"] = COLLUSION
        CopyMarking(names, 2, **given)

    def of_copies(self, recipients: tuple[str, ...], k: int) -> CopyMarking:
        """The marking of some recipients' copies, every class of which has at least k persons."""
        collusion = self.collusion
        if self.covers is None and collusion is None:
            collusion = min(COLLUSION, max(len(recipients), 1))
        decoys = self.decoys
        if decoys is None:
            valid = len(recipients) and 0 < self.false_accusation < 1
            decoys = enough_decoys(len(recipients), self.false_accusation) if valid else DECOYS
        given = {**vars(self), "decoys": decoys, "covers": self.covers or 0, "collusion": collusion or None}
        return CopyMarking(
            recipients, k, **given, collusion_asked=self.collusion is not None, decoys_asked=self.decoys is not None
        )
