"""How far a release is: prepared after it was started, then published or aborted, once."""

from __future__ import annotations

FOLLOWS: dict[str, tuple[str | None, ...]] = {
    "started": (None,),
    "prepared": ("started",),
    "published": ("prepared",),
    "aborted": ("started", "prepared"),
}
"""The kinds of entries that say how far a release is, and what each may follow."""


class States:
    """How far each release is, entry by entry."""

    def __init__(self) -> None:
        self._of: dict[str | None, str] = {}

    def wrong(self, kind: str, release: str | None) -> str | None:
        """Take note of an entry; says what is wrong with its place in the life of its release."""
        if kind not in FOLLOWS:
            return None
        before = self._of.get(release)
        if before not in FOLLOWS[kind]:
            return f"release '{release}' was {before or 'never started'} and cannot become {kind}"
        self._of[release] = kind
        return None
