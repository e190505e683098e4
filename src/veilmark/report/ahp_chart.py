"""Charts of weights by pairwise judgements: the weights, and how far the judgements contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veilmark.report.charts import (
    BLUE,
    INK,
    MOST_BARS,
    ORANGE,
    WIDTH,
    _altair,
    left_out,
    table,
    theme,
    titled,
    weight_panels,
)
from veilmark.score.ahp import ACCEPTABLE, AhpResult, HierarchyResult, PanelResult

if TYPE_CHECKING:
    import altair as alt

FINE, AGAINST = "fits together", "contradicts itself"


def judged(found: AhpResult) -> alt.Chart:
    """The weights of one matrix and its consistency."""
    advice = "" if found.revisit is None else f"Revisit first: {found.revisit}."
    return _both({"Weights": found.by_name}, [("judgements", found.consistency_ratio)], advice)


def panel(found: PanelResult) -> alt.Chart:
    """The weights of a panel, and the consistency of all together and of each expert."""
    experts = [(f"expert {i}", e.consistency_ratio) for i, e in enumerate(found.experts, 1) if e is not None]
    agree = (
        "" if found.concordance is None else f"The experts' rankings agree by {found.concordance:.2f} (Kendall's W)."
    )
    return _both({"Weights": found.result.by_name}, [("all together", found.result.consistency_ratio), *experts], agree)


def hierarchy(found: HierarchyResult) -> alt.Chart:
    """The weights of values by attribute, and the consistency of the whole and of each matrix."""
    within = [(f"values of {name}", result.consistency_ratio) for name, result in found.within.items()]
    ratios = [("whole", found.consistency_ratio), ("attributes", found.attributes.consistency_ratio), *within]
    return _both(found.weights, ratios)


def _both(weights: Mapping[str, Mapping[str, float]], ratios: Sequence[tuple[str, float]], note: str = "") -> alt.Chart:
    chart = _altair().vconcat(*weight_panels(weights), consistency_part(ratios, note), spacing=24)
    return theme(chart, f"Weights from pairwise judgements; their consistency ratio is {ratios[0][1]:.3f}.")


def consistency_part(ratios: Sequence[tuple[str, float]], note: str = "") -> Any:
    """A bar a matrix against the limit of 0.1."""
    alt = _altair()
    rows = [
        {"of": name, "ratio": ratio, "kind": FINE if ratio <= ACCEPTABLE else AGAINST}
        for name, ratio in ratios[:MOST_BARS]
    ]
    rows = [{**row, "text": f"{row['ratio']:.3f}, {row['kind']}"} for row in rows]
    end = max(2 * ACCEPTABLE, *(1.05 * ratio for _, ratio in ratios))
    scale = alt.Scale(domain=[0, end], nice=False)
    base = alt.Chart(table(rows)).encode(y=alt.Y("of:N", sort=None, title=None))
    colours = alt.Scale(domain=[FINE, AGAINST], range=[BLUE, ORANGE])
    across = alt.X("ratio:Q", title="consistency ratio", scale=scale, axis=alt.Axis(tickCount=5))
    bars = base.mark_bar(size=14).encode(x=across, color=alt.Color("kind:N", scale=colours, legend=None))
    labels = base.mark_text(align="left", dx=6, color=INK).encode(x=alt.value(WIDTH), text="text:N")
    limit = alt.Chart(table([{"at": ACCEPTABLE, "text": f"limit {ACCEPTABLE:g}"}]))
    limit = limit.encode(x=alt.X("at:Q", scale=scale, title="consistency ratio"))
    rule = limit.mark_rule(strokeDash=[5, 4], color=INK)
    name = limit.mark_text(y=-6, color=INK).encode(text="text:N")
    return titled(
        (bars + labels + rule + name).properties(width=WIDTH, height=alt.Step(24)),
        "How far the judgements contradict each other",
        f"0: not at all, 1: like chance; above {ACCEPTABLE:g} they should be revised.",
        note,
        left_out(len(rows), len(ratios), "matrices"),
    )
