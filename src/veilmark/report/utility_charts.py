"""Charts of what a release still tells: marginals and associations, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmark.report.charts import GREY, _altair
from veilmark.utility.view import UtilityView

if TYPE_CHECKING:
    import altair as alt

MOST_BARS = 15
INK = "#111111"


def utility(view: UtilityView) -> alt.Chart:
    """All of a view: small bars for each column, and two maps of associations."""
    parts = [marginals(view), *([associations(view)] if view.associations else [])]
    return _altair().vconcat(*parts)


def marginals(view: UtilityView) -> alt.Chart:
    """A panel a column: bars are the source, ticks the release. Of many values, the most frequent."""
    alt = _altair()
    rows = [
        {"column": name, "value": value, "source": change.before, "release": change.after, "place": place}
        for name, of in view.marginals.items()
        for place, (value, change) in enumerate(_shown(of.shares))
    ]
    down = alt.Y("value:N", sort=alt.SortField("place"), title=None, axis=alt.Axis(labelLimit=140))
    share = alt.Axis(format="%", tickCount=4)
    base = alt.Chart()
    bars = base.mark_bar(color=GREY, opacity=0.55).encode(y=down, x=alt.X("source:Q", title="share", axis=share))
    ticks = base.mark_tick(color=INK, thickness=3).encode(y=down, x=alt.X("release:Q", title="share", axis=share))
    panel = alt.layer(bars, ticks, data=alt.Data(values=rows)).properties(width=200)
    panels = panel.facet(facet=alt.Facet("column:N", title=None, sort=list(view.marginals)), columns=3)
    title = alt.Title("Marginals", subtitle="Bars: source. Ticks: release, labels spread over the values they cover.")
    return panels.resolve_scale(y="independent", x="independent").properties(title=title)


def _shown(shares: Any) -> list[tuple[str, Any]]:
    """The most frequent values, in their order."""
    most = sorted(shares, key=lambda name: -max(shares[name].before, shares[name].after))[:MOST_BARS]
    return [(name, change) for name, change in shares.items() if name in set(most)]


def associations(view: UtilityView) -> alt.Chart:
    """Cramér's V of every two columns, in the source and in the release; darker is stronger, and the number says it."""
    alt = _altair()
    names = [name for name in view.marginals if any(name in a.columns for a in view.associations)]
    rows = [
        {"one": one, "other": other, "table": table, "v": v}
        for a in view.associations
        for one, other in (a.columns, a.columns[::-1])
        for table, v in (("source", a.v.before), ("release", a.v.after))
    ]
    across = alt.X("one:N", sort=names, title=None, axis=alt.Axis(labelAngle=-45))
    down = alt.Y("other:N", sort=names, title=None)
    base = alt.Chart().encode(x=across, y=down)
    scale = alt.Scale(domain=[0, 1], scheme="greys")
    squares = base.mark_rect().encode(color=alt.Color("v:Q", scale=scale, legend=None))
    ink = alt.condition("datum.v > 0.5", alt.value("white"), alt.value(INK))
    numbers = base.mark_text(fontSize=9).encode(text=alt.Text("v:Q", format=".2f"), color=ink)
    panel = alt.layer(squares, numbers, data=alt.Data(values=rows)).properties(width=alt.Step(34), height=alt.Step(24))
    panels = panel.facet(column=alt.Column("table:N", sort=["source", "release"], title=None))
    return panels.properties(title="Associations (Cramér's V, bias-corrected)")
