"""A chart of how often those who mix their copies are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilmark.mark.simulate import interval
from veilmark.report.charts import BLUE, INK, WIDTH, _altair, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

    from veilmark.workbench.simulate import Simulated


def power(found: Simulated) -> alt.Chart:
    """A bar a way to mix, with its interval: the share of mixes in which a leaker was named. Ticks: in which all were."""
    alt = _altair()
    rows = [
        {
            "strategy": run.strategy,
            "power": run.power,
            "low": interval(run)[0],
            "high": interval(run)[1],
            "whole": run.caught_all / run.trials,
            "text": f"{run.power:.1%}, innocent named: {run.innocent_accused:,} of {run.trials:,}",
        }
        for run in found.runs
    ]
    first = found.runs[0]
    base = alt.Chart(table(rows)).encode(y=alt.Y("strategy:N", sort=None, title=None))
    scale = alt.Scale(domain=[0, 1])
    across = alt.X("power:Q", title="share of mixes", scale=scale, axis=alt.Axis(format="%"))
    bars = base.mark_bar(color=BLUE, opacity=0.75).encode(x=across)
    intervals = base.mark_rule(color=INK).encode(x=alt.X("low:Q", scale=scale, title="share of mixes"), x2="high:Q")
    whole = base.mark_tick(color=INK, thickness=3).encode(x=alt.X("whole:Q", scale=scale, title="share of mixes"))
    labels = base.mark_text(align="left", limit=420).encode(x=alt.value(WIDTH + 8), text="text:N")
    title = f"{first.coalition:,} of {first.recipients:,} recipients mix their copies"
    chart = titled(
        (bars + intervals + whole + labels).properties(width=WIDTH),
        title,
        "Bars: at least one of them is named, with 95 % intervals. Ticks: all are.",
        f"{found.code.length:,} cover classes; false accusation at most {first.false_accusation:g}.",
    )
    return theme(chart, f"{title}: the share of mixes in which they are named, by how they mix.")
