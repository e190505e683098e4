"""A chart of attacks on a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from veilmark.attack import AttackResult
from veilmark.report.charts import BLUE, INK, ORANGE, WIDTH, _altair, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

BETTER, NOT_BETTER = "better than guessing", "not better than guessing"


def attacks(found: Mapping[str, AttackResult], title: str = "Attacks on the release") -> alt.Chart:
    """A bar an attack with its interval; the tick is what guessing from the marginals gets."""
    alt = _altair()
    rows = [
        {
            "attack": name,
            "success": result.success,
            "low": result.interval[0],
            "high": result.interval[1],
            "control": result.control,
            "kind": BETTER if result.better else NOT_BETTER,
            "text": f"{result.success:.1%}",
        }
        for name, result in found.items()
        if result.targets
    ]
    base = alt.Chart(table(rows))
    down = alt.Y("attack:N", sort=None, title=None)
    scale = alt.Scale(domain=[0, 1])
    words = "targets found out"
    across = alt.X("success:Q", title=words, scale=scale, axis=alt.Axis(format="%"))
    colours = alt.Scale(domain=[BETTER, NOT_BETTER], range=[ORANGE, BLUE])
    bars = base.mark_bar().encode(
        y=down, x=across, color=alt.Color("kind:N", scale=colours, legend=alt.Legend(title=None, orient="bottom"))
    )
    intervals = base.mark_rule(color=INK).encode(y=down, x=alt.X("low:Q", scale=scale, title=words), x2="high:Q")
    controls = base.mark_tick(color=INK, thickness=3).encode(y=down, x=alt.X("control:Q", scale=scale, title=words))
    labels = base.mark_text(align="left", dx=6).encode(y=down, x=alt.X("high:Q", scale=scale), text="text:N")
    chart = titled(
        (bars + intervals + controls + labels).properties(width=WIDTH),
        title,
        "Bars: share of targets, with 95 % intervals. Ticks: guessing from the release's marginals alone.",
    )
    return theme(chart, f"{title}: the share of targets that each finds out, beside guessing.")
