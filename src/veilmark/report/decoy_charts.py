"""Charts of what decoys a release can have: the AnonTokens paper's Figures 2 and 3, for any data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from veilmark.mark.reports import Detectability, Reports
from veilmark.report.charts import BLUE, _altair

if TYPE_CHECKING:
    import altair as alt

Curve = tuple[str, int, float, Detectability]
"""A panel's name, k, the limit of suppression, and what was found."""


def reports(found: Sequence[Reports], title: str = "Decoys for the release") -> alt.Chart:
    """Both figures for one's own settings."""
    curves = [("candidates", of.k, of.suppression, of.detectability) for of in found]
    bars = [(f"k = {of.k}, {percent(of.suppression)} suppressed", of.detectability) for of in found]
    return _altair().vconcat(risk_curves(curves), size_bars(bars)).properties(title=title)


def risk_curves(found: Sequence[Curve]) -> alt.Chart:
    """The candidates' risks in ascending order, a line a setting; both axes are logarithmic."""
    alt = _altair()
    rows = [
        {
            "panel": f"{panel}, k = {k}",
            "suppression": percent(suppression),
            "classes": rank,
            "multiple": multiple,
        }
        for panel, k, suppression, of in found
        for rank, multiple in of.curve
    ]
    log = alt.Scale(type="log")
    limits = alt.Scale(domain=[percent(s) for s in sorted({s for _, _, s, of in found if of.curve})])
    lines = (
        alt.Chart()
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("classes:Q", scale=log, title="candidate classes, least risky first"),
            y=alt.Y("multiple:Q", scale=log, title="times the release's highest risk"),
            color=alt.Color("suppression:N", scale=limits, title="suppressed at most"),
            strokeDash=alt.StrokeDash("suppression:N", scale=limits, title="suppressed at most"),
        )
        .properties(width=220, height=160)
    )
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    layered = alt.layer(lines, data=alt.Data(values=rows))
    chart = layered.facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=3)
    return chart.properties(title=alt.Title("Risk multiplication", subtitle="minLink over the class's persons"))


def size_bars(found: Sequence[tuple[str, Detectability]]) -> alt.Chart:
    """How many classes of the release there are of each size, a panel a release: a decoy class hides among its like."""
    alt = _altair()
    rows = [
        {
            "panel": panel,
            "size": f"{of.low:,}-{of.high:,}" if of.high > of.low else f"{of.low:,}",
            "classes": of.classes,
        }
        for panel, seen in found
        for of in seen.sizes
    ]
    base = alt.Chart().encode(
        x=alt.X("size:N", sort=None, title="records in the class", axis=alt.Axis(labelAngle=-45)),
        y=alt.Y("classes:Q", title="classes"),
    )
    bars = base.mark_bar(color=BLUE)
    labels = base.mark_text(dy=-6, fontSize=9).encode(text=alt.Text("classes:Q", format=","))
    panel = alt.layer(bars, labels, data=alt.Data(values=rows)).properties(width=240, height=160)
    names = list(dict.fromkeys(name for name, _ in found))
    chart = panel.facet(facet=alt.Facet("panel:N", sort=names, title=None), columns=3)
    return chart.resolve_scale(x="independent", y="independent").properties(title="Sizes of the release's classes")


def percent(share: float) -> str:
    return f"{100 * share:.4g} %"
