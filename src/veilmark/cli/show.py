"""Results for a person to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from veilmark.privacy.measures import AttributeMeasures, Measures, Risks
from veilmark.score.ahp import AhpResult, HierarchyResult, PanelResult
from veilmark.score.breach import Breach
from veilmark.score.datamodel import DataModel
from veilmark.score.ranking import Ranking
from veilmark.score.scores import Contribution, ScoreResult
from veilmark.study import Study


def measures(result: Measures, study: Study, data: Path | None = None, console: Console | None = None) -> None:
    """What `veilmark measure` prints."""
    console = console or Console()
    who = "records" if result.persons is None else "persons"
    people = "" if result.persons is None else f" of {result.persons:,} persons"
    console.print(
        f"\n[bold]{data or study.label}[/bold]: {result.records:,} records{people}, {result.classes:,} classes"
    )
    console.print(f"by {', '.join(study.quasi) or 'no quasi-identifier'}\n")
    console.print(f"[bold]k = {result.k:,}[/bold]  {_in_words(result, who)}\n")
    if result.attributes:
        console.print(_attributes(result.attributes))
    console.print(_risks(result.risk, who))
    for line in _remarks(result, study):
        console.print(line, style="dim")


def _in_words(result: Measures, who: str) -> str:
    one = who[:-1]
    if result.k == 1:
        alone = f"{result.uniques:,} {who} stand" if result.uniques > 1 else f"1 {one} stands"
        return f"{alone} alone in a class: who knows the quasi-identifiers finds them."
    return f"every {one} shares its quasi-identifiers with at least {result.k - 1:,} others."


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _attributes(attributes: dict[str, AttributeMeasures]) -> Table:
    table = _table("Sensitive attributes, each number of the worst class")
    table.add_column("attribute", overflow="fold", min_width=9)
    for name in ("values (l)", "entropy l", "(c,l)", "t", "α", "β", "β+", "δ"):
        table.add_column(name, justify="right")
    for name, a in attributes.items():
        d = a.diversity
        c = f"({d.recursive_c:.3g}, {d.recursive_l})" if d.recursive_c is not None else "-"
        numbers = (a.t, a.alpha, a.beta_basic, a.beta_enhanced, a.delta)
        table.add_row(name, str(d.distinct), f"{d.entropy:.2f}", c, *(f"{x:.3g}" for x in numbers))
    return table


def _risks(risk: Risks, who: str) -> Table:
    table = _table("Risk of re-identification")
    table.add_column("intruder")
    for name in ("highest", "mean", f"{who} over {risk.prosecutor.threshold:g}"):
        table.add_column(name, justify="right")
    named = {
        "prosecutor: knows that the target is in the table": risk.prosecutor,
        "journalist: has the population table": risk.journalist,
        "sample risk (Benedetti-Franconi)": risk.sample,
    }
    for name, r in named.items():
        if r is not None:
            table.add_row(name, f"{r.max:.4f}", f"{r.mean:.4f}", f"{r.over:.1%}")
    table.add_row("marketer: matches everybody", "", f"{risk.marketer:.4f}", "")
    return table


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
        lines.append(f"Unique in the population, estimated: {listed}.")
    if result.risk.unlinked_classes:
        lines.append(f"{result.risk.unlinked_classes:,} classes have fewer people in the population than in the table.")
    return lines


def scores(result: ScoreResult, study: Study, published: Path | None = None, console: Console | None = None) -> None:
    """What `veilmark score` prints."""
    console = console or Console()
    part = f"{result.records:,} of the source's {result.source_records:,} records"
    console.print(f"\n[bold]{published or study.label}[/bold]: {part}\n")
    of = {"source": "the whole source", "record": "its worst record", "theory": "the largest there can be"}
    table = _table("Misuseability")
    for name, justify in (("score", "left"), ("value", "right"), (f"of {of[result.options.normalize]}", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    names = {
        "m": f"M-Score (x={result.options.x:g})",
        "l_severity": "L-Severity",
        "tkl": "tkl-Score",
        "tkl_max": "tkl-Score max",
    }
    for key, name in names.items():
        s = result.scores[key]
        table.add_row(name, f"{s.value:,.5g}", "-" if s.normalized is None else f"{s.normalized:.2%}")
    console.print(table)
    for title, parts in (("Classes that carry most of tkl", result.top_classes), ("Values", result.top_values)):
        if parts:
            console.print(_contributions(title, parts))
    if result.worst:
        console.print(f"The worst record: {result.worst[0]}.")
    if result.unknown_records:
        console.print(f"{result.unknown_records:,} records are not in the source and were left out.", style="dim")


def _contributions(title: str, parts: Sequence[Contribution]) -> Table:
    table = _table(title)
    for name in (*parts[0].what,) if len({tuple(p.what) for p in parts}) == 1 else ("value",):
        table.add_column(name)
    for name in ("records", "tkl", "share"):
        table.add_column(name, justify="right")
    for part in parts:
        texts = ["(missing)" if v is None else v for v in part.what.values()]
        if len(texts) == 1 and table.columns[0].header == "value":
            texts = [f"{next(iter(part.what))} = {texts[0]}"]
        table.add_row(*texts, f"{part.records:,}", f"{part.tkl:,.4g}", f"{part.share:.1%}")
    return table


def ranking(result: Ranking, console: Console | None = None) -> None:
    """What `veilmark score --compare` prints."""
    console = console or Console()
    table = _table("Candidates, least misuseable first")
    table.add_column("table", overflow="fold")
    for name in (
        "records",
        "tkl",
        "of the source",
        "L-Severity",
        "M-Score",
        f"rank if weights move ±{result.spread:.0%}",
    ):
        table.add_column(name, justify="right")
    for name, candidate in result.candidates.items():
        s = candidate.scores
        low, high = result.stability["tkl"].rank_range[name]
        share = "-" if s["tkl"].normalized is None else f"{s['tkl'].normalized:.2%}"
        numbers = (f"{s['tkl'].value:,.4g}", share, f"{s['l_severity'].value:,.4g}", f"{s['m'].value:,.4g}")
        table.add_row(name, f"{candidate.records:,}", *numbers, str(low) if low == high else f"{low}-{high}")
    console.print(table)
    same = result.stability["tkl"].same_order
    console.print(f"In {same:.1%} of {result.draws:,} draws of other weights the order by tkl stays as it is.")


def breach(result: Breach, study: Study, leaked: Path) -> None:
    """What `veilmark breach` prints."""
    console = Console()
    scores(result.score, study, leaked, console)
    severity = "-" if result.severity is None else f"{result.severity:.2%}"
    console.print(
        f"\n[bold]{severity}[/bold] of the source's tkl-Score leaked, with {result.share_of_records:.2%} of its "
        f"records. {result.identifiable:,} leaked records stand alone in their class; of {result.certain:,} a "
        "sensitive value follows from the rest."
    )


def ahp(result: AhpResult | PanelResult | HierarchyResult) -> None:
    """What `veilmark weights ahp` prints."""
    console = Console()
    if isinstance(result, HierarchyResult):
        for name, values in result.items():
            console.print(_weights(name, values))
        console.print(f"Consistency ratio {result.consistency_ratio:.4f} over all.")
        return
    found = result.result if isinstance(result, PanelResult) else result
    console.print(_weights("Weights", found.by_name))
    verdict = "judgements agree" if found.consistency_ratio <= 0.1 else "judgements contradict each other: over 0.10"
    console.print(f"Consistency ratio {found.consistency_ratio:.4f} ({verdict}).")
    if found.revisit is not None:
        console.print(f"To revisit first: {found.revisit}")
    if isinstance(result, PanelResult) and result.concordance is not None:
        console.print(f"The experts' rankings agree to {result.concordance:.2f} (Kendall's W, 0 to 1).")


def data_model(model: DataModel) -> None:
    """What `veilmark weights model` prints."""
    console = Console()
    for name, values in model.weights().items():
        console.print(_weights(name, values))


def _weights(title: str, values: Mapping[str, float]) -> Table:
    table = _table(title)
    table.add_column("value")
    table.add_column("weight", justify="right")
    table.add_column("")
    largest = max(values.values(), default=0.0) or 1.0
    for value, weight in sorted(values.items(), key=lambda pair: -pair[1]):
        table.add_row(value, f"{weight:.5f}", "█" * round(24 * weight / largest))
    return table
