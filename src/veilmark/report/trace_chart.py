"""A chart of a trace: who agrees with the evidence, and who so well that it is no chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from veilmark.readable import probability
from veilmark.report.charts import (
    GREY,
    INK,
    MOST_BARS,
    ORANGE,
    WIDTH,
    _altair,
    left_out,
    no_data,
    table,
    theme,
    titled,
)
from veilmark.trace.accuse import Suspect, Traced

if TYPE_CHECKING:
    import altair as alt

NAMED, OTHERS = "named", "not named"


def evidence(found: Traced) -> alt.Chart:
    """A bar a recipient, the most suspicious first; beyond the line they are named. Beside each, the probability."""
    alt = _altair()
    limit = -math.log10(found.false_accusation)
    several = len({s.release for s in found.suspects}) > 1
    rows = [
        {
            "recipient": f"{s.name} ({s.release})" if several else s.name,
            "score": s.score,
            "kind": NAMED if s.p_value <= found.false_accusation else OTHERS,
            "text": _words(s, found.false_accusation),
        }
        for s in found.suspects[:MOST_BARS]
    ]
    title = f"Named: {', '.join(found.accused)}" if found.accused else "Nobody is named"
    if not rows:
        return theme(no_data(title), "No recipient was tested.")
    scale = alt.Scale(domain=[0, 1.05 * max(limit, *(s.score for s in found.suspects))], nice=False)
    words = "evidence: with each step chance is ten times less likely"
    base = alt.Chart(table(rows)).encode(y=alt.Y("recipient:N", sort=None, title=None))
    colours = alt.Scale(domain=[NAMED, OTHERS], range=[ORANGE, GREY])
    across = alt.X("score:Q", title=words, scale=scale, axis=alt.Axis(tickMinStep=1, format="d"))
    bars = base.mark_bar(size=14).encode(x=across, color=alt.Color("kind:N", scale=colours, legend=None))
    labels = base.mark_text(align="left", dx=6, color=INK).encode(x=alt.value(WIDTH), text="text:N")
    line = alt.Chart(table([{"at": limit, "text": f"limit {probability(found.false_accusation)}"}]))
    line = line.encode(x=alt.X("at:Q", scale=scale, title=words))
    rule = line.mark_rule(strokeDash=[5, 4], color=INK)
    name = line.mark_text(y=-6, color=INK).encode(text="text:N")
    chart = titled(
        (bars + labels + rule + name).properties(width=WIDTH, height=alt.Step(24)),
        title,
        f"p: the probability that an innocent recipient, any of the {found.tested:,} tested, would look as guilty.",
        left_out(len(rows), len(found.suspects), "recipients"),
    )
    return theme(chart, f"{title}. {found.tested:,} recipients tested.")


def _words(suspect: Suspect, limit: float) -> str:
    least = "=" if suspect.tail == "exact" else "≤"
    return f"p {least} {probability(suspect.p_value)}" + (", named" if suspect.p_value <= limit else "")
