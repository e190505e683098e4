"""Results for a person to read.

Whatever comes from data, paths and studies goes through `literal`, and tables are folded, never cut off.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilmark.cli.spelling import spelled
from veilmark.privacy.measures import AttributeMeasures, Measures, Risks
from veilmark.privacy.require import Requirement
from veilmark.score.ahp import AhpResult, HierarchyResult, PanelResult
from veilmark.score.breach import Breach
from veilmark.score.datamodel import DataModel
from veilmark.score.ranking import Ranking
from veilmark.score.scores import Contribution, ScoreResult
from veilmark.study.study import Study

if TYPE_CHECKING:
    from veilmark.guess import Guess

BAR = 24
FOLDED = 8
"""The least width of a column of texts; a terminal that has no room for it wraps the lines itself."""
GAP = 2
NAMED = 4
"""How many quasi-identifiers a sentence names."""
CARRIED = ("records", "tkl", "share")
UNSEEN = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, lone surrogates and line separators."""


def literal(text: object, style: str = "") -> Text:
    """A text as it is: nothing in it is markup, and control characters are shown, not obeyed."""
    return Text("".join(repr(c)[1:-1] if unicodedata.category(c) in UNSEEN else c for c in spelled(text)), style)


def guesses(found: Sequence[Guess], console: Console | None = None) -> None:
    """What `veilmark init` prints."""
    from veilmark.workbench.init import hints_on

    console = console or Console()
    table = new_table("Detected roles of the columns", "column", "role", "reason")
    for guess in found:
        lines = [guess.reason, *(f"Check: {warning}" for warning in guess.warnings)]
        table.add_row(literal(guess.column), guess.role, Text("\n").join(map(literal, lines)))
    print_table(table, console)
    for hint in hints_on(found):
        console.print(literal(hint, "bold"))


def measures(result: Measures, study: Study, data: str | None = None, console: Console | None = None) -> None:
    """What `veilmark measure` prints."""
    console = console or Console()
    who = "records" if result.persons is None else "persons"
    people = "" if result.persons is None else f" of {result.persons:,} persons"
    counts = f": {result.records:,} records{people}, {result.classes:,} classes"
    console.print(Text.assemble("\n", literal(data or study.label, "bold"), counts))
    console.print(Text.assemble(literal(f"Quasi-identifiers: {', '.join(study.quasi) or 'none'}"), "\n"))
    console.print(f"[bold]k = {result.k:,}[/bold]  {_in_words(result, who, study.quasi)}\n")
    if result.attributes:
        print_table(_attributes(result.attributes), console)
    print_table(_risks(result.risk, who), console)
    for line in _remarks(result, study):
        console.print(literal(line, "dim"))


def _in_words(result: Measures, who: str, quasi: Sequence[str]) -> str:
    one = who[:-1]
    if not quasi:
        return f"The study names no quasi-identifier, so all {who} are one class. This k says nothing about their risk."
    if result.k == 1:
        unique = f"{result.uniques:,} {who} are" if result.uniques > 1 else f"1 {one} is"
        owner = "a person's" if who == "records" else "their"
        return f"{unique} unique. Knowing {owner} {_listed(quasi)} is enough to pick out the record."
    return f"Every {one} shares its quasi-identifiers with at least {result.k - 1:,} others."


def _listed(names: Sequence[str]) -> str:
    """The first few names."""
    shown = ", ".join(escape(str(literal(name))) for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} more"


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
    table = new_table("Sensitive attributes (worst class)", "attribute", numbers=numbers)
    for name, a in attributes.items():
        d = a.diversity
        c = f"({d.recursive_c:.3g}, {d.recursive_l})" if d.recursive_c is not None else "-"
        others = (a.t, a.alpha, a.beta_basic, a.beta_enhanced, a.delta)
        table.add_row(literal(name), str(d.distinct), f"{d.entropy:.2f}", c, *(f"{x:.3g}" for x in others))
    return table


def _risks(risk: Risks, who: str) -> Table:
    numbers = ("highest", "mean", f"{who} above {risk.prosecutor.threshold:g}")
    table = new_table("Re-identification risk (0 to 1; lower is better)", "attacker", numbers=numbers)
    named = {
        "prosecutor: knows that the person is in the table": risk.prosecutor,
        "journalist: has the population table": risk.journalist,
        "sample risk (Benedetti-Franconi)": risk.sample,
    }
    for name, r in named.items():
        if r is not None:
            table.add_row(name, f"{r.max:.4f}", f"{r.mean:.4f}", f"{r.over:.1%}")
    table.add_row("marketer: matches all persons", "", f"{risk.marketer:.4f}", "")
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
        lines.append(f"Missing values (each counts as a category of its own): {listed}.")
    uniques = result.risk.population_uniques
    if uniques is not None:
        shares = (("Zayatz", uniques.zayatz), ("Pitman", uniques.pitman), ("SNB", uniques.snb))
        listed = ", ".join(f"{name} {share:.3%}" if share is not None else f"{name} -" for name, share in shares)
        lines.append(
            f"Estimated share of unique persons in the population: {listed}. If these disagree widely, trust none of them."
        )
    if result.risk.unique_in_population is not None:
        lines.append(f"{result.risk.unique_in_population:.2%} of the population are unique.")
    if result.risk.unlinked_classes:
        lines.append(f"{result.risk.unlinked_classes:,} classes have fewer people in the population than in the table.")
    unseen = [name for name in result.unseen if name not in study.direct]
    if unseen:
        lines.append(f"Not measured, because the study does not name them: {', '.join(unseen)}. {_unnamed(study)}")
    lines.append("What each number means: docs/measure.md.")
    return lines


def _unnamed(study: Study) -> str:
    """What becomes of columns that the study does not name."""
    if study.spec.unnamed == "other":
        return "They are published unchanged, because the study has `unnamed: other`."
    return "They are not published."


def scores(result: ScoreResult, study: Study, published: str | None = None, console: Console | None = None) -> None:
    """What `veilmark score` prints."""
    console = console or Console()
    part = f": {result.records:,} of the source's {result.source_records:,} records\n"
    console.print(Text.assemble("\n", literal(published or study.label, "bold"), part))
    of = {"source": "the whole source", "record": "its worst record", "theory": "the largest possible score"}
    table = new_table(
        "Scores (higher is worse)", "score", numbers=("value", f"share of {of[result.options.normalize]}")
    )
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
            _contributions("Values with the largest share of tkl", "value", result.top_values),
            console,
        )
    for record in result.worst[:1]:
        console.print(literal(f"Worst record: {_values(record.record)}. Its {record}."))
    if result.records == result.source_records and result.options.normalize == "source":
        hint = "Comparing the source with itself always gives 100%. Use --published to score a part, or --normalize theory."
        console.print(hint, style="dim")
    if result.unknown_records:
        console.print(f"{result.unknown_records:,} records are not in the source. They were left out.", style="dim")


def _top_classes(parts: Sequence[Contribution], console: Console) -> Table:
    """A column for each quasi-identifier, where there is room for them side by side; else one for all."""
    title, names = "Classes with the largest share of tkl", tuple(parts[0].what)
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
    table = new_table("Candidates, lowest tkl-Score first", "table", numbers=headings)
    for name, candidate in result.candidates.items():
        s = candidate.scores
        low, high = result.stability["tkl"].rank_range[name]
        share = "-" if s["tkl"].normalized is None else f"{s['tkl'].normalized:.2%}"
        numbers = (f"{s['tkl'].value:,.4g}", share, f"{s['l_severity'].value:,.4g}", f"{s['m'].value:,.4g}")
        table.add_row(literal(name), f"{candidate.records:,}", *numbers, str(low) if low == high else f"{low}-{high}")
    print_table(table, console)
    same = result.stability["tkl"].same_order
    console.print(
        f"The last column is the rank if weights vary by up to ±{result.spread:.0%}. The order by tkl stays the same in "
        f"{same:.1%} of {result.draws:,} random variations."
    )


def breach(result: Breach, study: Study, leaked: str) -> None:
    """What `veilmark breach` prints."""
    console = Console()
    scores(result.score, study, leaked, console)
    breach_in_words(result, console)


def breach_in_words(result: Breach, console: Console) -> None:
    """The severity of a leak, in a sentence or two."""
    severity = "-" if result.severity is None else f"{result.severity:.2%}"
    console.print(
        f"\n[bold]{severity}[/bold] of the source's tkl-Score leaked, with {result.share_of_records:.2%} of its "
        f"records. {result.identifiable:,} leaked records are unique. For {result.certain:,}, a sensitive value follows "
        "from the other columns."
    )


def ahp(result: AhpResult | PanelResult | HierarchyResult, console: Console | None = None) -> None:
    """What `veilmark weights ahp` prints."""
    console = console or Console()
    if isinstance(result, HierarchyResult):
        for name, values in result.items():
            print_table(_weights(name, values), console)
        console.print(f"Overall consistency ratio: {result.consistency_ratio:.4f} (0.10 or less is good).")
        return
    found = result.result if isinstance(result, PanelResult) else result
    print_table(_weights("Weights", found.by_name), console)
    verdict = "consistent" if found.consistency_ratio <= 0.1 else "the judgements contradict each other"
    console.print(f"Consistency ratio {found.consistency_ratio:.4f} ({verdict}; 0.10 or less is good).")
    if found.revisit is not None:
        console.print(literal(f"Review this judgement first: {found.revisit}"))
    if isinstance(result, PanelResult) and result.concordance is not None:
        console.print(f"Agreement of the experts: {result.concordance:.2f} (Kendall's W, 0 to 1; higher is better).")


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
