"""What `veilmark utility` prints."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilmark.cli.show import literal, new_table, print_table
from veilmark.utility.classifier import Classified
from veilmark.utility.view import Association, Change, ReleaseLoss, UtilityView

MOST_PAIRS = 12


def utility(view: UtilityView, release: Path, console: Console | None = None) -> None:
    """A release beside its source."""
    console = console or Console()
    before, after = view.records
    counts = f": {after:,} records, where the source has {before:,}\n"
    console.print(Text.assemble("\n", literal(release, "bold"), counts))
    print_table(_marginals(view), console)
    if view.associations:
        print_table(_associations(view.associations), console)
        mean = sum(abs(a.v.change) for a in view.associations) / len(view.associations)
        console.print(f"On average over {len(view.associations):,} pairs it changed by {mean:.3f}.\n")
    if view.loss:
        print_table(_loss(view.loss), console)
    if view.classifier:
        console.print(literal(_classifier(view.classifier)))
    for note in (*view.notes, "What each number means: docs/utility.md."):
        console.print(literal(note, "dim"))


def _marginals(view: UtilityView) -> Table:
    numbers = ("values", "labels", "total variation", "at its labels", "mean", "of release", "sd", "of release")
    table = new_table("Marginals: each label spread evenly over the values it covers", "column", numbers=numbers)
    for name, of in view.marginals.items():
        variations = ("-" if v is None else f"{v:.3f}" for v in (of.total_variation, of.total_variation_labels))
        moments = (text for change in (of.mean, of.sd) for text in _pair(change))
        table.add_row(literal(name), f"{of.values[0]:,}", f"{of.values[1]:,}", *variations, *moments)
    return table


def _pair(change: Change | None) -> tuple[str, str]:
    return ("", "") if change is None else (f"{change.before:,.5g}", f"{change.after:,.5g}")


def _associations(pairs: tuple[Association, ...]) -> Table:
    title = "Associations that changed most: Cramér's V, 0 unrelated to 1"
    table = new_table(title, "column", "and", numbers=("source", "release", "change"))
    for pair in pairs[:MOST_PAIRS]:
        v = pair.v
        table.add_row(*map(literal, pair.columns), f"{v.before:.3f}", f"{v.after:.3f}", f"{v.change:+.3f}")
    return table


def _loss(loss: ReleaseLoss) -> Table:
    table = new_table("Loss, as the file shows it", "attribute", numbers=("precision", "gcp", "lm", "dm", "mean class"))
    for name, of in loss.by_attribute.items():
        table.add_row(literal(name), *(f"{of[metric]:.3f}" for metric in ("precision", "gcp", "lm")), "", "")
    for name, total in (("all, release", loss.after), ("all, source", loss.before)):
        shares = (f"{total[metric]:.3f}" for metric in ("precision", "gcp", "lm"))
        table.add_row(name, *shares, f"{total['dm']:,.4g}", f"{total['average_class']:,.1f}")
    return table


def _classifier(found: Classified) -> str:
    return (
        f"Predicting {found.target} from the quasi-identifiers, on held-out records of the source ({found.folds} folds, "
        f"{found.records:,} records): {found.original:.1%} right when trained on the source, {found.released:.1%} "
        f"(± {found.released_sd:.1%}) on the release, {found.baseline:.1%} by always saying the most frequent value."
    )
