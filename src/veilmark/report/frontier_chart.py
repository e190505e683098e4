"""The frontier of risk and loss: the picture to choose a method by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmark.report.charts import BLUE, GREY, INK, ORANGE, _altair, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

    from veilmark.workbench.compare import Compared, Tried

LINKED, UNLINKED = "linked: values go with quasi-identifiers", "not linked"
BELOW = "misses the k asked for"
ALL, AMONG = "frontier of all", "frontier of the linked"
LINE, LETTER = 0.045, 0.012
"""A label's height, and the width of one of its letters, as shares of the picture."""


def frontier(result: Compared) -> alt.Chart:
    """A labelled point a method, with the interval of its worst attack; lines are the frontiers.

    Shapes and dashes tell things apart, and colours only repeat them.
    """
    alt = _altair()
    points = [_point(name, tried) for name, tried in result.made.items()]
    _place(points)
    lines = [
        {"loss": result.methods[name].total_loss, "risk": result.methods[name].risk, "line": line}
        for line, names in ((ALL, result.frontier()), (AMONG, result.frontier(linked=True)))
        for name in names
    ]
    across = alt.X("loss:Q", title="loss: mean of quasi-identifiers and sensitive attributes", axis=_percent(alt))
    up = alt.Y("risk:Q", title="risk: largest gain of an attack over guessing", axis=_percent(alt))
    whole = alt.Legend(labelLimit=400, orient="bottom", direction="vertical")
    drawn = alt.Chart(table(lines)).mark_line(interpolate="step-after", color=GREY)
    dashes = alt.Scale(domain=[ALL, AMONG], range=[[1, 0], [5, 4]])
    drawn = drawn.encode(x=across, y=up, strokeDash=alt.StrokeDash("line:N", scale=dashes, title=None, legend=whole))
    base = alt.Chart(table(points))
    bars = base.mark_rule(color=INK).encode(x=across, y=alt.Y("low:Q"), y2="high:Q")
    kinds = [LINKED, UNLINKED, *([BELOW] if result.below_k else [])]
    shapes = alt.Scale(domain=kinds, range=["circle", "diamond", "cross"][: len(kinds)])
    colours = alt.Scale(domain=kinds, range=[BLUE, ORANGE, GREY][: len(kinds)])
    kind = {
        "shape": alt.Shape("kind:N", scale=shapes, title=None, legend=whole),
        "color": alt.Color("kind:N", scale=colours, title=None, legend=whole),
    }
    shown = [alt.Tooltip(f"{name}:N") for name in ("method", "loss", "risk", "attack", "seconds")]
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(x=across, y=up, tooltip=shown, **kind)
    beside = base.encode(x=across, y=alt.Y("place:Q"), text="text:N")
    labels = beside.mark_text(align="left", dx=9, stroke="white", strokeWidth=4) + beside.mark_text(align="left", dx=9)
    asked = f"k = {result.asked.k}" + ("" if result.asked.l is None else f", l = {result.asked.l:g}")
    title = f"Risk and loss of {len(points)} methods, {asked}"
    chart = titled(
        (drawn + bars + marks + labels).properties(width=540, height=360),
        title,
        "Left and low is better. Beside each method the attack that gains most, with its 95 % interval.",
    )
    missed = f" Below k: {', '.join(result.below_k)}." if result.below_k else ""
    return theme(chart, f"{title}. On the frontier: {', '.join(result.frontier()) or 'none'}.{missed}")


def _percent(alt: Any) -> Any:
    return alt.Axis(format="%")


def _point(name: str, tried: Tried) -> dict[str, Any]:
    found = tried.attacks[tried.worst] if tried.worst else None
    low, high = (0.0, 0.0) if found is None else (limit - found.control for limit in found.interval)
    kind = BELOW if not tried.meets_k else LINKED if tried.linked else UNLINKED
    named = f"{name} ({tried.worst})" if tried.meets_k else f"{name} (k = {tried.k})"
    numbers = {"loss": tried.total_loss, "risk": tried.risk, "low": low, "high": high, "seconds": tried.seconds}
    return {"method": name, "attack": tried.worst, "kind": kind, "text": named, **numbers}


def _place(points: list[dict[str, Any]]) -> None:
    """Where labels stand: right of their points, moved up from what they would cover."""
    right = max(p["loss"] for p in points) or 1.0
    top = max(p["high"] for p in points) or 1.0
    taken = [(p["loss"] / right, p["loss"] / right, p["risk"] / top) for p in points]
    for point in sorted(points, key=lambda p: float(p["risk"])):
        start, height = point["loss"] / right, point["risk"] / top
        end = start + LETTER * len(point["text"])
        while any(a <= end and b > start and abs(at - height) < 0.9 * LINE for a, b, at in taken):
            height += LINE / 3
        taken.append((start, end, height))
        point["place"] = height * top
