"""A hierarchy as a tree, from the top on the left to the values on the right."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmark.report.charts import BLUE, GREY, INK, _altair, no_data, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

    from veilmark.hierarchy import Levels

MOST_LEAVES = 60
ROW, COLUMN, LABEL = 15, 130, 120
"""Height of a row, distance of two levels, and the longest label, in pixels."""


def tree(levels: Levels, title: str = "Hierarchy") -> alt.Chart:
    """Nodes and links; of many values some are drawn, and what is left out is counted at its place."""
    alt = _altair()
    values = len(levels.labels[0])
    if not values:
        return theme(no_data(title), "A hierarchy without values.")
    drawing = Drawing(levels)
    drawing.add(levels.height, 0, MOST_LEAVES)
    width, height = max(levels.height * COLUMN, COLUMN), max(drawing.rows * ROW, 3 * ROW)
    names = {depth: f"level {levels.height - depth}" for depth in range(levels.height + 1)}
    ticks = alt.Axis(
        orient="top", values=list(names), labelExpr=f"{list(names.values())}[datum.value]", grid=False, domain=False
    )
    # The axis keeps whole levels apart; a hierarchy of one level has a column of its own.
    across = alt.X("x:Q", title=None, axis=ticks, scale=alt.Scale(domain=[0, max(levels.height, 1)], nice=False))
    down = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[drawing.rows - 0.5, -0.5], nice=False))
    links = alt.Chart(table(drawing.links)).encode(x=across, y=down, x2="x2:Q", y2="y2:Q")
    base = alt.Chart(table(drawing.nodes)).encode(x=across, y=down)
    shown = [alt.Tooltip("full:N", title="label"), alt.Tooltip("values:Q", title="values under it", format=",")]
    ends, inner = base.transform_filter("datum.end"), base.transform_filter("!datum.end")
    chart = alt.layer(
        links.mark_rule(color=GREY, strokeWidth=1),
        base.transform_filter("datum.values").mark_circle(size=28, color=BLUE, opacity=1).encode(tooltip=shown),
        *_labels(ends, "left", 7),
        *_labels(inner, "right", -7),
    )
    counts = " → ".join(f"{len(labels):,}" for labels in levels.labels)
    chart = titled(
        chart.properties(width=width, height=height),
        title,
        f"Labels by level, from the values up: {counts}.",
        "Of the values some are shown; numbers say what is left out." if drawing.cut else "",
    )
    return theme(chart, f"{title}: a tree of {levels.height + 1} levels over {values:,} values.")


def _labels(base: Any, align: str, dx: int) -> list[Any]:
    """Text, and below it the same with a white rim, so that links do not strike it through."""
    look = {"align": align, "dx": dx, "limit": LABEL, "fontSize": 10}
    marks = (base.mark_text(**look, stroke="white", strokeWidth=4), base.mark_text(**look, color=INK))
    return [mark.encode(text="label:N") for mark in marks]


@dataclass
class Drawing:
    """Nodes and links as they are placed: x is the depth, y the row, that of an inner node amid its children."""

    levels: Levels
    nodes: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    cut: bool = False

    def __post_init__(self) -> None:
        height = self.levels.height
        self.leaves = [self.levels.leaves(level) for level in range(height + 1)]
        self.up = [self.levels.up(level, level + 1) for level in range(height)]

    def add(self, level: int, label: int, room: int) -> float:
        """Draw a label and what is under it in at most so many rows; its own y."""
        count = int(self.leaves[level][label])
        children = [] if level == 0 else np.flatnonzero(self.up[level - 1] == label).tolist()
        if not children or (room < 2 and count > 1):
            return self._end(level, label, count)
        shares = self._shares(level - 1, children, room)
        ys = [self.add(level - 1, child, share) for child, share in zip(children, shares, strict=False)]
        hidden = count - int(self.leaves[level - 1][children[: len(shares)]].sum())
        if hidden:
            ys.append(self._more(level - 1, hidden))
        y = (ys[0] + ys[-1]) / 2
        x = self.levels.height - level
        self.links += [{"x": x, "y": y, "x2": x + 1, "y2": below} for below in ys]
        self._node(level, label, y, count, self._text(level, label), False)
        return y

    def _shares(self, level: int, children: list[int], room: int) -> list[int]:
        """The rows of the children that are drawn, the first ones: each has enough to be followed down to a value."""
        size = self.leaves[level][children]
        need = np.minimum(size, level + 1)
        fit = len(children)
        if int(need.sum()) > room:
            fit = max(int(np.searchsorted(np.cumsum(need), room - 1, side="right")), 1)
            room -= 1
        shares = np.minimum(need[:fit], room)
        spare = room - int(shares.sum())
        # The small ones first: what they do not take, others may.
        for place, i in enumerate(np.argsort(size[:fit], kind="stable")):
            more = min(int(size[i] - shares[i]), spare // (fit - place))
            shares[i] += more
            spare -= more
        return [int(share) for share in shares]

    def _end(self, level: int, label: int, count: int) -> float:
        text = self._text(level, label)
        if count > 1 and level:
            self.cut = True
            text = f"{textwrap.shorten(text, 14, placeholder='…')} ({count:,} values)"
        y = self._row()
        self._node(level, label, y, count, text, True)
        return y

    def _more(self, level: int, hidden: int) -> float:
        self.cut = True
        y = self._row()
        x = self.levels.height - level
        self.nodes.append({"x": x, "y": y, "label": f"… {hidden:,} more", "end": True, "values": 0, "full": ""})
        return y

    def _row(self) -> float:
        self.rows += 1
        return float(self.rows - 1)

    def _text(self, level: int, label: int) -> str:
        text = self.levels.labels[level][label].as_py()
        return "(missing)" if text is None else str(text)

    def _node(self, level: int, label: int, y: float, count: int, text: str, end: bool) -> None:
        x = self.levels.height - level
        self.nodes.append(
            {"x": x, "y": y, "label": text, "end": end, "values": count, "full": self._text(level, label)}
        )
