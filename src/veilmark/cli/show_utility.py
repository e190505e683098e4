"""What `veilmark utility` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilmark.cli.show import literal, new_table, print_table
from veilmark.utility.classifier import Classified
from veilmark.utility.view import Association, Change, ReleaseLoss, UtilityView

MOST_PAIRS = 12


def utility(view: UtilityView, release: object, console: Console | None = None) -> None:
    """A release compared with its source."""
    console = console or Console()
    before, after = view.records
    counts = f": {after:,} records (the source has {before:,})\n"
    console.print(Text.assemble("\n", literal(release, "bold"), counts))
    print_table(_marginals(view), console)
    if view.associations:
        print_table(_associations(view.associations), console)
        mean = sum(abs(a.v.change) for a in view.associations) / len(view.associations)
        console.print(f"Mean change over {len(view.associations):,} pairs: {mean:.3f} (0 is best).\n")
    if view.loss:
        print_table(_loss(view.loss), console)
    if view.classifier:
        console.print(literal(_classifier(view.classifier)))
    for note in (*view.notes, "What each number means: docs/utility.md."):
        console.print(literal(note, "dim"))


def _marginals(view: UtilityView) -> Table:
    numbers = ("values", "labels", "total variation", "between labels", "mean", "in release", "sd", "in release")
    table = new_table(
        "Marginals: total variation from 0 (best) to 1; a label is spread evenly over its values",
        "column",
        numbers=numbers,
    )
    for name, of in view.marginals.items():
        variations = ("-" if v is None else f"{v:.3f}" for v in (of.total_variation, of.total_variation_labels))
        moments = (text for change in (of.mean, of.sd) for text in _pair(change))
        table.add_row(literal(name), f"{of.values[0]:,}", f"{of.values[1]:,}", *variations, *moments)
    return table


def _pair(change: Change | None) -> tuple[str, str]:
    return ("", "") if change is None else (f"{change.before:,.5g}", f"{change.after:,.5g}")


def _associations(pairs: tuple[Association, ...]) -> Table:
    title = "Associations that changed most (Cramér's V: 0 unrelated, 1 determined)"
    table = new_table(title, "column", "and", numbers=("source", "release", "change"))
    for pair in pairs[:MOST_PAIRS]:
        v = pair.v
        table.add_row(*map(literal, pair.columns), f"{v.before:.3f}", f"{v.after:.3f}", f"{v.change:+.3f}")
    return table


def _loss(loss: ReleaseLoss) -> Table:
    table = new_table(
        "Loss, measured in the file (0 is best)", "attribute", numbers=("precision", "gcp", "lm", "dm", "mean class")
    )
    for name, of in loss.by_attribute.items():
        table.add_row(literal(name), *(f"{of[metric]:.3f}" for metric in ("precision", "gcp", "lm")), "", "")
    for name, total in (("all, release", loss.after), ("all, source", loss.before)):
        shares = (f"{total[metric]:.3f}" for metric in ("precision", "gcp", "lm"))
        table.add_row(name, *shares, f"{total['dm']:,.4g}", f"{total['average_class']:,.1f}")
    return table


def _classifier(found: Classified) -> str:
    return (
        f"A classifier predicts {found.target} from the quasi-identifiers, on held-out records of the source "
        f"({found.folds} folds, {found.records:,} records). Accuracy: {found.original:.1%} if trained on the source, "
        f"{found.released:.1%} (± {found.released_sd:.1%}) if trained on the release, {found.baseline:.1%} for the most "
        "frequent value."
    )
