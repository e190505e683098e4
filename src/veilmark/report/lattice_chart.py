"""The lattice of generalizations that OLA searched: a point a node, higher where more is generalized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmark.report.charts import GREY, INK, ORANGE, _altair, no_data, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

    from veilmark.veil.anonymize import Plan
    from veilmark.veil.ola import Evaluated

MOST_NODES = 3000
WIDTH, HEIGHT = 540, 360
PASSES, FAILS = "meets what was asked", "fails: too much would be suppressed"


def lattice(plan: Plan) -> alt.Chart:
    """The nodes that OLA tried: coloured by loss, hollow and pale where they fail; the chosen one has a ring.

    Each point's datum has `levels`, in the order of the quasi-identifiers, and the point selection is called `node`, so
    that a page can tell which one was clicked.
    """
    alt = _altair()
    names = list(plan.recoding.levels)
    nodes = list({found.node: found for found in plan.explored}.values())
    if not nodes:
        return theme(no_data("Generalizations that were tried"), "No generalization was tried.")
    chosen = tuple(plan.recoding.levels.values())
    rows = _rows(_sampled(nodes, chosen), names, chosen)
    widest = max(abs(row["place"]) for row in rows) + 0.5
    across = alt.X("place:Q", axis=None, scale=alt.Scale(domain=[-widest, widest]))
    low, high = min(row["height"] for row in rows), max(row["height"] for row in rows)
    up = alt.Y(
        "height:Q",
        title="levels in sum: upwards more is generalized",
        scale=alt.Scale(domain=[low - 0.5, high + 0.5], nice=False),
        axis=alt.Axis(values=list(range(low, high + 1, 1 + (high - low) // 20)), format="d"),
    )
    size = float(np.clip((WIDTH / (2 * widest)) ** 2 / 2, 12, 110))
    shown = [alt.Tooltip(f"{name}:N") for name in ("generalized", "suppressed", "loss", "result")]
    base = alt.Chart(table(rows)).encode(x=across, y=up, tooltip=shown)
    picked = alt.selection_point(name="node", fields=["node"])
    colour = alt.Color(
        "loss:Q",
        scale=alt.Scale(scheme="cividis"),
        title=["loss", *([f"({plan.metric})"] if plan.metric else [])],
        legend=alt.Legend(format="~s" if max((row["loss"] or 0) for row in rows) >= 1000 else "~g"),
    )
    failing = base.transform_filter("!datum.passes").mark_point(
        shape="square", size=size, stroke=GREY, strokeWidth=1, opacity=0.45
    )
    passing = base.transform_filter("datum.passes").mark_point(filled=True, size=size, opacity=1, stroke=INK)
    rim = alt.condition(picked, alt.value(2), alt.value(0), empty=False)
    passing = passing.encode(color=colour, strokeWidth=rim)
    ring = base.transform_filter("datum.chosen").mark_point(
        size=max(5 * size, 160), stroke=ORANGE, strokeWidth=3, opacity=1
    )
    chart = (failing + passing + ring).add_params(picked)
    title = titled(chart.properties(width=WIDTH, height=HEIGHT), *_title(plan, len(rows), len(nodes), names, chosen))
    return theme(title, f"{len(nodes):,} generalizations by height and loss. Chosen: {_levels(names, chosen)}.")


def _title(plan: Plan, shown: int, tried: int, names: Sequence[str], chosen: Sequence[int]) -> tuple[str, ...]:
    others = "; the others cannot be better" if tried < plan.lattice and not plan.gap else ""
    return (
        "Generalizations that were tried",
        f"{tried:,} of {plan.lattice:,}{others}.",
        f"The ring is the one chosen: {_levels(names, chosen)}.",
        "Darker circles lose less; hollow squares fail.",
        f"Shown are {shown:,}: the best of each height and an even sample of the others." if shown < tried else "",
    )


def _levels(names: Sequence[str], node: Sequence[int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(names, node, strict=True))


def _sampled(nodes: Sequence[Evaluated], chosen: Sequence[int]) -> list[Evaluated]:
    """All nodes or, of very many, the chosen one, the best of each height and an even sample of the others."""
    if len(nodes) <= MOST_NODES:
        return list(nodes)
    loss = np.array([np.inf if n.loss is None else n.loss for n in nodes])
    height = np.array([sum(n.node) for n in nodes])
    order = np.lexsort((loss, height))
    best = order[np.unique(height[order], return_index=True)[1]]
    one = next((i for i, n in enumerate(nodes) if n.node == tuple(chosen)), 0)
    kept = np.union1d(best, [one])
    others = np.setdiff1d(order, kept)
    others = order[np.isin(order, others)]  # even over heights and losses
    even = others[np.linspace(0, len(others) - 1, max(MOST_NODES - len(kept), 0)).astype(int)]
    return [nodes[i] for i in sorted({*kept.tolist(), *even.tolist()})]


def _rows(nodes: Sequence[Evaluated], names: Sequence[str], chosen: Sequence[int]) -> list[dict[str, Any]]:
    """A datum a node; those of one height stand side by side, in the order of their levels."""
    by_height: dict[int, list[Evaluated]] = {}
    for node in sorted(nodes, key=lambda n: n.node):
        by_height.setdefault(sum(node.node), []).append(node)
    return [
        {
            "node": ",".join(map(str, n.node)),
            "levels": list(n.node),
            "generalized": _levels(names, n.node),
            "height": height,
            "place": i - (len(row) - 1) / 2,
            "passes": n.passes,
            "chosen": n.node == tuple(chosen),
            "suppressed": n.suppressed,
            "loss": n.loss,
            "result": PASSES if n.passes else FAILS,
        }
        for height, row in sorted(by_height.items())
        for i, n in enumerate(row)
    ]
