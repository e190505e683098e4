"""Words of the command line, said for somebody who looks at a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from veilmark.errors import VeilmarkError

SAID = {
    r"--recipients ada,bob": "one a line",
    r"--identity name,birthday": "tick them",
    r"--identity names": "The identity columns name",
    r"--collusion (\d+) without --covers": r"a code against \1 who collude, without covers",
    r"--collusion (\d+)": r"a code against \1 who collude",
    r"--collusion": "a code against those who collude",
    r"--decoys (\d+)": r"\1 decoy classes for each recipient",
    r"--decoys": "decoys",
    r"--covers (\d+)": r"\1 covers for each recipient",
    r"--covers": "covers",
    r"--risk": "the range of risk",
    r"--false-accusation": "the probability of a false accusation",
    r"--claims or --file": "claims or a leaked file",
    r"--suppress": "the share that may be left out",
    r"--near": "nearness",
    r"--([a-z]+)": r"\1",
    r"(; )?[Ss]ee:? veilmark ledger (list|verify)": "",
    r"veilmark release makes one": "the page Release makes one",
}


def in_words(text: str) -> str:
    """A message without options of the command line."""
    for option, words in SAID.items():
        text = re.sub(option, words, text)
    return text


@contextmanager
def plainly() -> Iterator[None]:
    """Errors within the block speak of fields, not of options."""
    try:
        yield
    except VeilmarkError as error:
        raise type(error)(in_words(str(error))) from None
