"""Charts of scores: how they are spread over the records, and candidates beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmark.report.charts import (
    BLUE,
    INK,
    MOST_BARS,
    WIDTH,
    _altair,
    left_out,
    logarithmic,
    no_data,
    number,
    table,
    theme,
    titled,
    waterfall_part,
)
from veilmark.score.ranking import Ranking
from veilmark.score.scores import ScoreResult

if TYPE_CHECKING:
    import altair as alt


def scores(result: ScoreResult) -> alt.Chart:
    """How the records score and, below, why the worst one does."""
    parts = [
        distribution_part(result),
        *(waterfall_part(worst, "Why the worst record scores as it does") for worst in result.worst[:1]),
    ]
    return theme(
        _altair().vconcat(*parts, spacing=30),
        f"The tkl-Scores of {result.records:,} records, and the worst one's parts.",
    )


def distribution(result: ScoreResult) -> alt.Chart:
    """How many records have which tkl-Score."""
    return theme(distribution_part(result), f"How the tkl-Scores of {result.records:,} records are spread.")


def distribution_part(result: ScoreResult) -> Any:
    alt = _altair()
    title = "Scores of the records"
    if not result.records:
        return no_data(title)
    top = result.scores["tkl_max"].value
    step = (top or 1.0) / len(result.distribution)
    rows = [
        {"low": i * step, "high": (i + 1) * step, "records": records, "none": 0}
        for i, records in enumerate(result.distribution)
        if records
    ]
    shown = [
        alt.Tooltip("low:Q", title="from"),
        alt.Tooltip("high:Q", title="to"),
        alt.Tooltip("records:Q", format=","),
    ]
    bars = (
        alt.Chart(table(rows))
        .mark_bar(color=BLUE, stroke="white")
        .encode(
            x=alt.X("low:Q", title="tkl-Score of the record", scale=alt.Scale(domain=[0, top or 1.0], nice=False)),
            x2="high:Q",
            y=alt.Y("records:Q", **logarithmic([row["records"] for row in rows], "records")),
            y2="none:Q",
            tooltip=shown,
        )
    )
    values = ", ".join(
        f"{name} {number(result.scores[key].value)}"
        for key, name in (("tkl", "tkl-Score"), ("l_severity", "L-Severity"), ("m", "M-Score"))
    )
    return titled(
        bars.properties(width=WIDTH, height=180),
        title,
        f"{result.records:,} records; the worst scores {top:.4g}.",
        f"The table: {values}.",
    )


def ranking(found: Ranking) -> alt.Chart:
    """The candidates by tkl-Score, least misuseable first, with the ranks they take when weights move."""
    alt = _altair()
    stable = found.stability["tkl"]
    rows = [
        {"candidate": name, "tkl": result.scores["tkl"].value, "text": _ranks(result, stable.rank_range[name])}
        for name, result in list(found.candidates.items())[:MOST_BARS]
    ]
    base = alt.Chart(table(rows)).encode(
        y=alt.Y("candidate:N", sort=None, title=None), x=alt.X("tkl:Q", title="tkl-Score, the less the better")
    )
    labels = base.mark_text(align="left", dx=4, color=INK).encode(text="text:N")
    chart = titled(
        (base.mark_bar(color=BLUE, size=14) + labels).properties(width=WIDTH, height=alt.Step(24)),
        "Candidates, least misuseable first",
        f"Ranks are those in 90 % of {found.draws:,} draws with every weight moved by up to {100 * found.spread:.3g} %.",
        f"In {100 * stable.same_order:.3g} % of them the whole order stays.",
        left_out(len(rows), len(found.candidates), "candidates"),
    )
    return theme(chart, f"{len(found.candidates):,} candidates by their tkl-Score, least misuseable first.")


def _ranks(result: ScoreResult, span: tuple[int, int]) -> str:
    low, high = span
    return f"{number(result.scores['tkl'].value)}, rank {low if low == high else f'{low} to {high}'}"
