"""A custodian who commits to marks of its own choice is found out when the commitment is opened."""

from __future__ import annotations

import pytest

from marked_release import make_release
from veilmark.errors import DataError
from veilmark.mark.record import secret_entry
from veilmark.workbench import custody
from veilmark.workbench import release as releasing

CODED = {"collusion": 2, "covers": 0, "false_accusation": 1e-2, "budget": 0.9}


def opened(folder, seed=3, **marking):
    """A release whose commitment was opened, and the verdict that a third party computes for ada's copy."""
    folder.mkdir()
    case = make_release(folder, seed=seed, **marking)
    published = custody.commitment(case.ledger, case.release).commitment
    custody.open_commitment(case.ledger, case.key, case.release, folder / "opened.json")
    return custody.verify_commitment(folder / "opened.json", published, leak=case.copy("ada"), false_accusation=1e-2)


@pytest.mark.parametrize(
    "marking",
    [
        {},
        {"strategy": "size"},
        {"strategy": "random"},
        {"strategy": "risk"},
        CODED,
        CODED | {"marks": "both"},
        CODED | {"marks": "rows", "decoys": 0},
        CODED | {"decoys": 0, "strategy": "risk"},
    ],
    ids=lambda given: " ".join(map(str, given.values())) or "alone",
)
def test_what_was_drawn_is_drawn_again(tmp_path, marking):
    found = opened(tmp_path / "honest", **marking)
    assert found.accused == ("ada",)
    assert any("which records were marked" in note for note in found.notes) == ("marks" in marking)
    assert any("This check used release" in note and "its 5 recipients," in note for note in found.notes)


def skewed(secret):
    """What ada and bob have in common is made to look rare."""
    ada, bob = secret["holds"]["ada"], secret["holds"]["bob"]
    secret["code"]["p"] = [(0.02 if a == "1" else 0.98) if a == b else 0.5 for a, b in zip(ada, bob, strict=True)]


def exchanged(secret):
    secret["holds"]["ada"], secret["holds"]["bob"] = secret["holds"]["bob"], secret["holds"]["ada"]


def chosen(secret):
    """Covers on which ada and bob agree stay, the others are left out."""
    ada, bob = secret["holds"]["ada"], secret["holds"]["bob"]
    stay = [a == b for a, b in zip(ada, bob, strict=True)]
    secret["covers"] = [c for c, keep in zip(secret["covers"], stay, strict=True) if keep]
    secret["code"]["p"] = [p for p, keep in zip(secret["code"]["p"], stay, strict=True) if keep]
    for name, held in secret["holds"].items():
        secret["holds"][name] = "".join(h for h, keep in zip(held, stay, strict=True) if keep)


def other_decoys(secret):
    secret["drawn"]["ada"], secret["drawn"]["bob"] = secret["drawn"]["bob"], secret["drawn"]["ada"]


def other_rows(secret):
    secret["rows"]["holds"]["bob"] = secret["rows"]["holds"]["ada"]


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize(
    ("lie", "marking", "what"),
    [
        (skewed, CODED, "covers"),
        (exchanged, CODED, "covers"),
        (exchanged, {}, "covers"),
        (chosen, CODED, "covers"),
        (other_decoys, CODED, "decoys"),
        (other_rows, CODED | {"marks": "both"}, "row marks"),
    ],
)
def test_marks_that_were_chosen_accuse_nobody(tmp_path, monkeypatch, lie, marking, what, seed):
    def lying(*given):
        secret = secret_entry(*given)
        lie(secret)
        return secret

    monkeypatch.setattr(releasing, "secret_entry", lying)
    with pytest.raises(DataError, match=f"The {what} of the commitment do not follow"):
        opened(tmp_path / "lying", seed, **marking)
