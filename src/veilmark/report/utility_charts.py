"""Charts of what a release still tells: marginals and associations, before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmark.report.charts import GREY, INK, _altair, table, theme, titled
from veilmark.utility.view import UtilityView

if TYPE_CHECKING:
    import altair as alt

MOST_BARS = 15


def utility(view: UtilityView) -> alt.Chart:
    """All of a view: small bars for each column, and two maps of associations."""
    parts = [_marginals(view), *([_associations(view)] if view.associations else [])]
    return theme(_altair().vconcat(*parts, spacing=30), "The columns before and after, and how they go together.")


def marginals(view: UtilityView) -> alt.Chart:
    """A panel a column: bars are the source, ticks the release. Of many values, the most frequent."""
    return theme(_marginals(view), "Each column's shares in the source and in the release.")


def associations(view: UtilityView) -> alt.Chart:
    """Cramér's V of every two columns, in the source and in the release; darker is stronger, and the number says it."""
    return theme(_associations(view), "How strongly each two columns go together, in the source and in the release.")


def _marginals(view: UtilityView) -> Any:
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
    panel = alt.layer(bars, ticks, data=table(rows)).properties(width=200)
    panels = panel.facet(facet=alt.Facet("column:N", title=None, sort=list(view.marginals)), columns=3)
    cut = any(len(of.shares) > MOST_BARS for of in view.marginals.values())
    return titled(
        panels.resolve_scale(y="independent", x="independent"),
        "Marginals",
        "Bars: source. Ticks: release, labels spread over the values they cover.",
        f"Of a column's values the {MOST_BARS} most frequent are shown." if cut else "",
    )


def _shown(shares: Any) -> list[tuple[str, Any]]:
    """The most frequent values, in their order."""
    most = sorted(shares, key=lambda name: -max(shares[name].before, shares[name].after))[:MOST_BARS]
    return [(name, change) for name, change in shares.items() if name in set(most)]


def _associations(view: UtilityView) -> Any:
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
    panel = alt.layer(squares, numbers, data=table(rows)).properties(width=alt.Step(34), height=alt.Step(24))
    panels = panel.facet(column=alt.Column("table:N", sort=["source", "release"], title=None))
    return titled(panels, "Associations", "Cramér's V, bias-corrected: 0 unrelated, 1 one tells the other.")
