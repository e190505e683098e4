"""Results for a person to read.

Whatever comes from data, paths and studies goes through `literal`, and tables are folded, never cut off.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from veilmark.privacy.measures import AttributeMeasures, Measures, Risks
from veilmark.privacy.require import Requirement
from veilmark.score.ahp import AhpResult, HierarchyResult, PanelResult
from veilmark.score.breach import Breach
from veilmark.score.datamodel import DataModel
from veilmark.score.ranking import Ranking
from veilmark.score.scores import Contribution, ScoreResult
from veilmark.study import Study

if TYPE_CHECKING:
    from veilmark.guess import Guess

BAR = 24
FOLDED = 8
"""The least width of a column of texts; a terminal that has no room for it wraps the lines itself."""
GAP = 2
CARRIED = ("records", "tkl", "share")
UNSEEN = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, lone surrogates and line separators."""


def literal(text: object, style: str = "") -> Text:
    """A text as it is: nothing in it is markup, and control characters are shown, not obeyed."""
    return Text("".join(repr(c)[1:-1] if unicodedata.category(c) in UNSEEN else c for c in str(text)), style)


def guesses(found: Sequence[Guess], console: Console | None = None) -> None:
    """What `veilmark init` prints."""
    console = console or Console()
    table = new_table("What each column seems to be", "column", "role", "why")
    for guess in found:
        lines = [guess.reason, *(f"Check: {warning}" for warning in guess.warnings)]
        table.add_row(literal(guess.column), guess.role, Text("\n").join(map(literal, lines)))
    print_table(table, console)


def measures(result: Measures, study: Study, data: str | None = None, console: Console | None = None) -> None:
    """What `veilmark measure` prints."""
    console = console or Console()
    who = "records" if result.persons is None else "persons"
    people = "" if result.persons is None else f" of {result.persons:,} persons"
    counts = f": {result.records:,} records{people}, {result.classes:,} classes"
    console.print(Text.assemble("\n", literal(data or study.label, "bold"), counts))
    console.print(Text.assemble(literal(f"by {', '.join(study.quasi) or 'no quasi-identifier'}"), "\n"))
    console.print(f"[bold]k = {result.k:,}[/bold]  {_in_words(result, who, study.quasi)}\n")
    if result.attributes:
        print_table(_attributes(result.attributes), console)
    print_table(_risks(result.risk, who), console)
    for line in _remarks(result, study):
        console.print(literal(line, "dim"))


def _in_words(result: Measures, who: str, quasi: Sequence[str]) -> str:
    one = who[:-1]
    if not quasi:
        return (
            f"because the study names no quasi-identifier: all {who} are one class, which says nothing of their safety."
        )
    if result.k == 1:
        alone = f"{result.uniques:,} {who} stand" if result.uniques > 1 else f"1 {one} stands"
        return f"{alone} alone in a class: who knows the quasi-identifiers finds them."
    return f"every {one} shares its quasi-identifiers with at least {result.k - 1:,} others."


def new_table(title: str, *texts: str, numbers: Sequence[str] = ()) -> Table:
    """A table with columns of texts and, to their right, of numbers."""
    style = {"box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}
    table = Table(title=literal(title, "bold"), title_justify="left", **style)  # type: ignore[arg-type]
    for name in texts:
        table.add_column(literal(name), overflow="fold")
    for name in numbers:
        table.add_column(name, overflow="fold", justify="right")
    return table


def print_table(table: Table, console: Console) -> None:
    """Print a table; where it is too wide, headings and texts are folded, and numbers stay whole."""
    if not _fits(table, console):
        for column in table.columns:
            if column.justify == "right":
                texts = map(str, (column.header, *column.cells))
                column.width = max(cell_len(word) for text in texts for word in text.split())
        least = sum((column.width or FOLDED) + GAP for column in table.columns) + GAP
        table.width = least if least > console.width else None
    console.print(table, crop=False)


def _fits(table: Table, console: Console) -> bool:
    return console.measure(table, options=console.options.update(width=1_000_000)).maximum <= console.width


def _values(what: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in what.items())


def _value(value: str | None) -> str:
    return "(missing)" if value is None else value


def _attributes(attributes: dict[str, AttributeMeasures]) -> Table:
    numbers = ("values (l)", "entropy l", "(c,l)", "t", "α", "β", "β+", "δ")
    table = new_table("Sensitive attributes, each number of the worst class", "attribute", numbers=numbers)
    for name, a in attributes.items():
        d = a.diversity
        c = f"({d.recursive_c:.3g}, {d.recursive_l})" if d.recursive_c is not None else "-"
        others = (a.t, a.alpha, a.beta_basic, a.beta_enhanced, a.delta)
        table.add_row(literal(name), str(d.distinct), f"{d.entropy:.2f}", c, *(f"{x:.3g}" for x in others))
    return table


def _risks(risk: Risks, who: str) -> Table:
    numbers = ("highest", "mean", f"{who} over {risk.prosecutor.threshold:g}")
    table = new_table("Risk of re-identification", "intruder", numbers=numbers)
    named = {
        "prosecutor: knows who is in the table": risk.prosecutor,
        "journalist: has the population table": risk.journalist,
        "sample risk (Benedetti-Franconi)": risk.sample,
    }
    for name, r in named.items():
        if r is not None:
            table.add_row(name, f"{r.max:.4f}", f"{r.mean:.4f}", f"{r.over:.1%}")
    table.add_row("marketer: matches everybody, against this table itself", "", f"{risk.marketer:.4f}", "")
    return table


def requirements(required: Sequence[Requirement]) -> None:
    """What `veilmark measure --require` adds."""
    for requirement in required:
        Console().print(literal(str(requirement), "bold" if requirement.met else "bold red"))


def _remarks(result: Measures, study: Study) -> list[str]:
    lines = []
    if not result.attributes:
        lines.append("The study names no sensitive attribute, so l, t, α, β and δ are not measured.")
    if not study.quasi:
        lines.append("The study names no quasi-identifier, so all records are one class.")
    if result.missing:
        listed = ", ".join(f"{name} {count:,}" for name, count in result.missing.items())
        lines.append(f"Missing values, each a category of its own: {listed}.")
    uniques = result.risk.population_uniques
    if uniques is not None:
        shares = (("Zayatz", uniques.zayatz), ("Pitman", uniques.pitman), ("SNB", uniques.snb))
        listed = ", ".join(f"{name} {share:.3%}" if share is not None else f"{name} -" for name, share in shares)
        lines.append(f"Unique in the population, estimated: {listed}. Where these disagree widely, trust none of them.")
    if result.risk.unique_in_population is not None:
        lines.append(f"Unique in the population: {result.risk.unique_in_population:.2%}.")
    if result.risk.unlinked_classes:
        lines.append(f"{result.risk.unlinked_classes:,} classes have fewer people in the population than in the table.")
    unseen = [name for name in result.unseen if name not in study.direct]
    if unseen:
        lines.append(f"Not looked at, because the study gives them no role: {', '.join(unseen)}.")
    lines.append("What each number means: docs/measure.md.")
    return lines


def scores(result: ScoreResult, study: Study, published: Path | None = None, console: Console | None = None) -> None:
    """What `veilmark score` prints."""
    console = console or Console()
    part = f": {result.records:,} of the source's {result.source_records:,} records\n"
    console.print(Text.assemble("\n", literal(published or study.label, "bold"), part))
    of = {"source": "the whole source", "record": "its worst record", "theory": "the largest there can be"}
    table = new_table("Misuseability", "score", numbers=("value", f"of {of[result.options.normalize]}"))
    names = {
        "m": f"M-Score (x={result.options.x:g})",
        "l_severity": "L-Severity",
        "tkl": "tkl-Score",
        "tkl_max": "tkl-Score max",
    }
    for key, name in names.items():
        s = result.scores[key]
        table.add_row(name, f"{s.value:,.5g}", "-" if s.normalized is None else f"{s.normalized:.2%}")
    print_table(table, console)
    if result.top_classes:
        print_table(_top_classes(result.top_classes, console), console)
    if result.top_values:
        print_table(
            _contributions("Records by value: the share of tkl that records with it carry", "value", result.top_values),
            console,
        )
    for record in result.worst[:1]:
        console.print(literal(f"The worst record: {_values(record.record)}. Its {record}."))
    if result.records == result.source_records and result.options.normalize == "source":
        hint = "A source is all of itself. Score the part to be shared with --published, or try --normalize theory."
        console.print(hint, style="dim")
    if result.unknown_records:
        console.print(f"{result.unknown_records:,} records are not in the source and were left out.", style="dim")


def _top_classes(parts: Sequence[Contribution], console: Console) -> Table:
    """A column for each quasi-identifier, where there is room for them side by side; else one for all."""
    title, names = "Classes that carry most of tkl", tuple(parts[0].what)
    table = new_table(title, *names, numbers=CARRIED)
    for part in parts:
        table.add_row(*(literal(_value(v)) for v in part.what.values()), *_carried(part))
    return table if _fits(table, console) else _contributions(title, "class", parts)


def _contributions(title: str, heading: str, parts: Sequence[Contribution]) -> Table:
    table = new_table(title, heading, numbers=CARRIED)
    for part in parts:
        table.add_row(literal(_values(part.what)), *_carried(part))
    return table


def _carried(part: Contribution) -> tuple[str, str, str]:
    return f"{part.records:,}", f"{part.tkl:,.4g}", f"{part.share:.1%}"


def ranking(result: Ranking, console: Console | None = None) -> None:
    """What `veilmark score --compare` prints."""
    console = console or Console()
    headings = ("records", "tkl", "of the source", "L-Severity", "M-Score", f"rank ±{result.spread:.0%}")
    table = new_table("Candidates, least misuseable first", "table", numbers=headings)
    for name, candidate in result.candidates.items():
        s = candidate.scores
        low, high = result.stability["tkl"].rank_range[name]
        share = "-" if s["tkl"].normalized is None else f"{s['tkl'].normalized:.2%}"
        numbers = (f"{s['tkl'].value:,.4g}", share, f"{s['l_severity'].value:,.4g}", f"{s['m'].value:,.4g}")
        table.add_row(literal(name), f"{candidate.records:,}", *numbers, str(low) if low == high else f"{low}-{high}")
    print_table(table, console)
    same = result.stability["tkl"].same_order
    console.print(
        f"The last column is the rank where weights move by up to ±{result.spread:.0%}. In {same:.1%} of "
        f"{result.draws:,} draws of such weights the order by tkl stays as it is."
    )


def breach(result: Breach, study: Study, leaked: Path) -> None:
    """What `veilmark breach` prints."""
    console = Console()
    scores(result.score, study, leaked, console)
    breach_in_words(result, console)


def breach_in_words(result: Breach, console: Console) -> None:
    """How bad it is, in a sentence or two."""
    severity = "-" if result.severity is None else f"{result.severity:.2%}"
    console.print(
        f"\n[bold]{severity}[/bold] of the source's tkl-Score leaked, with {result.share_of_records:.2%} of its "
        f"records. {result.identifiable:,} leaked records stand alone in their class; for {result.certain:,} a "
        "sensitive value can be told from the other columns."
    )


def ahp(result: AhpResult | PanelResult | HierarchyResult, console: Console | None = None) -> None:
    """What `veilmark weights ahp` prints."""
    console = console or Console()
    if isinstance(result, HierarchyResult):
        for name, values in result.items():
            print_table(_weights(name, values), console)
        console.print(f"Consistency ratio {result.consistency_ratio:.4f} over all.")
        return
    found = result.result if isinstance(result, PanelResult) else result
    print_table(_weights("Weights", found.by_name), console)
    verdict = "judgements agree" if found.consistency_ratio <= 0.1 else "judgements contradict each other: over 0.10"
    console.print(f"Consistency ratio {found.consistency_ratio:.4f} ({verdict}).")
    if found.revisit is not None:
        console.print(literal(f"To revisit first: {found.revisit}"))
    if isinstance(result, PanelResult) and result.concordance is not None:
        console.print(f"The experts' rankings agree to {result.concordance:.2f} (Kendall's W, 0 to 1).")


def data_model(model: DataModel) -> None:
    """What `veilmark weights model` prints."""
    console = Console()
    for name, values in model.weights().items():
        print_table(_weights(name, values), console)


def _weights(title: str, values: Mapping[str, float]) -> Table:
    table = new_table(title, "value", numbers=("weight",))
    table.add_column("")
    largest = max(values.values(), default=0.0) or 1.0
    for value, weight in sorted(values.items(), key=lambda pair: -pair[1]):
        table.add_row(literal(value), f"{weight:.5f}", "█" * round(BAR * weight / largest))
    return table
