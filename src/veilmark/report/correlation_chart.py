"""A heat map of how strongly the sensitive attributes go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from veilmark.report.charts import INK, _altair, table, theme, titled
from veilmark.veil.correlation import Correlation, Correlations

if TYPE_CHECKING:
    import altair as alt

NAMES = {"v": "V", "eta": "η", "r": "r"}


def heat_map(found: Correlations) -> alt.Chart:
    """Darker is stronger; each square says the corrected measure, and under it the plain one (and F, where there is one)."""
    alt = _altair()
    names = list(found.names)
    rows = [row for pair in found.pairs for row in _squares(pair)]
    across = alt.X("first:N", sort=names, title=None, axis=alt.Axis(labelAngle=-45))
    base = alt.Chart(table(rows)).encode(x=across, y=alt.Y("second:N", sort=names, title=None))
    scale = alt.Scale(domain=[0, 1], scheme="greys")
    squares = base.mark_rect().encode(color=alt.Color("strength:Q", scale=scale, title="strength"))
    ink = alt.condition("datum.strength > 0.5", alt.value("white"), alt.value(INK))
    large = base.mark_text(dy=-6, fontSize=12).encode(text="corrected:N", color=ink)
    small = base.mark_text(dy=9, fontSize=9).encode(text="plain:N", color=ink)
    chart = titled(
        (squares + large + small).properties(width=alt.Step(96), height=alt.Step(48)),
        "Correlation of sensitive attributes",
        "V: two categories, η: number and category, r: two numbers; below, without bias correction.",
    )
    return theme(chart, f"How strongly each two of {len(names)} sensitive attributes go together.")


def correlations_of(facts: Mapping[str, Any]) -> Correlations:
    """Correlations out of what a release keeps of them."""
    pairs = [
        Correlation(p["first"], p["second"], p["measure"], p[p["measure"]], p[f"{p['measure']}_corrected"], p.get("f"))
        for p in facts["pairs"]
    ]
    return Correlations(tuple(facts["attributes"]), tuple(pairs))


def _squares(pair: Correlation) -> list[dict[str, Any]]:
    name = NAMES[pair.measure]
    plain = f"{pair.plain:.3f}" if pair.f is None else f"{pair.plain:.3f}, F {pair.f:,.4g}"
    figures = {"strength": pair.strength, "corrected": f"{name} {pair.strength:.3f}", "plain": plain}
    both = ((pair.first, pair.second), (pair.second, pair.first))
    return [{"first": first, "second": second, **figures} for first, second in both]
