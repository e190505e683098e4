"""Charts of what decoys a release can have: the AnonTokens paper's Figures 2 and 3, for any data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from veilmark.mark.reports import Detectability, Reports
from veilmark.report.charts import BLUE, GREY, INK, ORANGE, _altair, no_data, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

Curve = tuple[str, int, float, Detectability]
"""A panel's name, k, the limit of suppression, and what was found."""


def reports(found: Sequence[Reports], title: str = "Decoys for the release") -> alt.Chart:
    """Both figures for one's own settings."""
    curves = [("candidates", of.k, of.suppression, of.detectability) for of in found]
    bars = [(f"k = {of.k}, {percent(of.suppression)} suppressed", of.detectability) for of in found]
    chart = _altair().vconcat(_risk_curves(curves), _size_bars(bars))
    return theme(titled(chart, title), f"{title}: their risks, and how many classes of the release are of their size.")


def risk_curves(found: Sequence[Curve]) -> alt.Chart:
    """The candidates' risks in ascending order, a line a setting; both axes are logarithmic."""
    return theme(_risk_curves(found), "Risks of candidate decoy classes, in multiples of the release's highest.")


def size_bars(found: Sequence[tuple[str, Detectability]]) -> alt.Chart:
    """How many classes of the release there are of each size, a panel a release: a decoy class hides among its like."""
    return theme(_size_bars(found), "How many classes of the release there are of each size.")


def _risk_curves(found: Sequence[Curve]) -> Any:
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
    if not rows:
        return no_data("Risk multiplication: there is no candidate class")
    limits = [percent(s) for s in sorted({s for _, _, s, of in found if of.curve})]
    colours = alt.Scale(domain=limits, range=[(BLUE, ORANGE, GREY, INK)[i % 4] for i in range(len(limits))])
    legend = alt.Legend(title="lines: suppressed at most", orient="bottom")
    lines = (
        alt.Chart()
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("classes:Q", scale=log, title="candidate classes, least risky first"),
            y=alt.Y("multiple:Q", scale=log, title="times the release's highest risk"),
            color=alt.Color("suppression:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("suppression:N", scale=alt.Scale(domain=limits), legend=legend),
        )
        .properties(width=220, height=160)
    )
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    layered = alt.layer(lines, data=table(rows))
    chart = layered.facet(facet=alt.Facet("panel:N", sort=panels, title=None), columns=3)
    return titled(
        chart, "Risk multiplication", "How many times the release's highest risk each candidate class would bring."
    )


def _size_bars(found: Sequence[tuple[str, Detectability]]) -> Any:
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
    panel = alt.layer(bars, labels, data=table(rows)).properties(width=240, height=160)
    names = list(dict.fromkeys(name for name, _ in found))
    chart = panel.facet(facet=alt.Facet("panel:N", sort=names, title=None), columns=3)
    return titled(chart.resolve_scale(x="independent", y="independent"), "Sizes of the release's classes")


def percent(share: float) -> str:
    return f"{100 * share:.4g} %"
