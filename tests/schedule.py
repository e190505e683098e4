"""Which tests run in one process, and which start first, so that all processes end together.

A file is run by one process, since its tests share what they prepare. Pages of the docs share nothing. All of Spark is in
one process, which starts one Java.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

LONG = (
    "spark",
    "tests/browser/",
    "tests/test_docs.py",
    "tests/cli/",
    "tests/engines/",
    "tests/ledger/",
    "tests/trace/",
)
"""The longest first: what is left at the end is short."""

APART = ("tests/test_docs.py",)


class Groups(LoadScopeScheduling):
    """Gives groups of tests to processes, in the order of collection."""

    def __init__(self, config, log=None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """The tests of a group run in one process, in their order."""
    file = nodeid.partition("::")[0]
    if file.startswith("tests/engines/test_spark") or (
        file.startswith("tests/engines/contract/") and "[spark" in nodeid
    ):
        return "spark"
    return nodeid if file in APART else file


def rank(nodeid: str) -> int:
    group = group_of(nodeid)
    return next((place for place, start in enumerate(LONG) if group.startswith(start)), len(LONG))
