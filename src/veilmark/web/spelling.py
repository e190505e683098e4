"""How the web app writes what messages name: fields by their labels, and pages in place of commands."""

from __future__ import annotations

from veilmark.messages import SHARES, Value, labelled, percent

LABELS = {
    "attacks": "Try the attacks",
    "auditor": "Auditor’s variant: name the decoys",
    "claims": "Claims",
    "collusion": "How many may act together",
    "copies": "Compare the recipients’ copies with it",
    "covers": "Covers for each recipient",
    "decoys": "Decoy classes for each recipient",
    "false_accusation": "Probability of naming an innocent recipient",
    "file": "A leaked file",
    "groups": "Which sensitive columns go together",
    "identity": "Who somebody is",
    "k": "k",
    "k_map": "k-map",
    "ledger": "Release in the ledger",
    "most_lost": "Most that a group may lose, %",
    "population": "Population",
    "presence": "δ-presence",
    "recipients": "Recipients",
    "release": "Release",
    "require": "Limits that a release file must keep",
    "risk": "Risk of decoys",
    "skip_unknown": "Leave out records that the source does not have",
    "suppress": "May be left out, in %",
}
"""Fields by their parameter, as the forms call them."""

BY_LINES = ("recipients",)
"""Fields with several lines, of which a message gives no example."""

PAGES = {
    "init": "Make a study of it on the page Studies.",
    "ledger list": "See the page Ledger.",
    "ledger verify": "Check the ledger on its page.",
    "measure": "Open it on the page Studies.",
    "release": "Make one on the page Release.",
}
"""Where to do what a command does. Of other commands nothing is said: whoever runs the server has them."""


class _Fields:
    def param(self, name: str, value: Value | None) -> str:
        if name not in LABELS:
            return f"{labelled(name.replace('_', ' '), value)} (on the command line)"
        if name in SHARES and value is not None:
            value = percent(value)
        return labelled(LABELS[name], None if name in BY_LINES else value)

    def command(self, name: str, sentence: str) -> str:
        return PAGES.get(name, "")


FIELDS = _Fields()
