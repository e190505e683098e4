"""Charts of a table's classes: how large they are, and the risk that this means for their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmark.report.charts import BLUE, INK, ORANGE, WIDTH, _altair, no_data, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

    from veilmark.privacy.measures import Measures

POINTS, MOST_POINTS = 200, 40
"""A profile is drawn at no more risks than that, and each has a dot where they are few."""
MOST_LABELS = 12
"""Over so many bars there is room for numbers."""
HERE, OTHERS = "with the smallest class", "other classes"


def measures(found: Measures) -> alt.Chart:
    """Class sizes and, below, the risk profile."""
    unit = "records" if found.persons is None else "persons"
    parts = (
        class_sizes_part(found.class_sizes, unit),
        risk_profile(found.class_sizes, unit, found.risk.prosecutor.threshold),
    )
    return theme(
        _altair().vconcat(*parts, spacing=30), f"Class sizes of {found.records:,} records, and the risk that they mean."
    )


def class_sizes(sizes: Mapping[int, int], unit: str = "records") -> alt.Chart:
    """How many records (or persons) are in classes of each size, the bar with k marked; `sizes` counts classes by size."""
    return theme(class_sizes_part(sizes, unit), f"How many {unit} are in classes of each size.")


def class_sizes_part(sizes: Mapping[int, int], unit: str) -> Any:
    alt = _altair()
    if not sizes:
        return no_data("Sizes of the classes")
    rows = _bins(sizes)
    order, most = [row["size"] for row in rows], max(row["members"] for row in rows)
    base = alt.Chart(table(rows)).encode(
        x=alt.X(
            "size:N", sort=order, title=f"{unit} in the class", axis=alt.Axis(labelAngle=0 if len(rows) < 8 else -40)
        ),
        y=alt.Y("members:Q", title=unit, axis=alt.Axis(format=",d" if most < 100_000 else "~s", tickMinStep=1)),
    )
    kinds = alt.Scale(domain=[HERE, OTHERS], range=[ORANGE, BLUE])
    colour = alt.Color("kind:N", scale=kinds, legend=None)
    shown = [alt.Tooltip(f"{name}:N", title=words) for name, words in (("size", "class size"), ("members", unit))]
    shown.append(alt.Tooltip("classes:Q", format=","))
    bars = base.mark_bar(size=min(40, 0.8 * WIDTH / len(rows))).encode(color=colour, tooltip=shown)
    labels = base.mark_text(dy=-7, fontSize=10).encode(text="text:N" if len(rows) <= MOST_LABELS else alt.value(""))
    k, classes, members = min(sizes), sum(sizes.values()), sum(size * count for size, count in sizes.items())
    mark = base.mark_text(dy=-21, fontWeight="bold", color=INK).encode(text=alt.value(f"k = {k:,}"))
    return titled(
        (bars + labels + mark.transform_filter(f"datum.kind == '{HERE}'")).properties(width=WIDTH, height=200),
        "Sizes of the classes",
        f"{members:,} {unit} in {classes:,} classes (those alike in all quasi-identifiers).",
        f"The smallest has k = {k:,}.",
    )


def _bins(sizes: Mapping[int, int]) -> list[dict[str, Any]]:
    """Classes by size in steps 1, 2, 5, 10, 20, 50 and so on, from the first to the last that has any."""
    size = np.fromiter(sizes, np.int64, len(sizes))
    classes = np.fromiter(sizes.values(), np.int64, len(sizes))
    edges = np.array([step * 10**power for power in range(len(str(size.max())) + 1) for step in (1, 2, 5)])
    edges = np.insert(edges, 2, 3)  # 1, 2, 3-4, 5-9: a class of two is not like one of four
    bin_of = np.searchsorted(edges, size, side="right") - 1
    first, last = int(bin_of.min()), int(bin_of.max())
    members = np.bincount(bin_of, weights=size * classes)
    counts = np.bincount(bin_of, weights=classes)
    return [
        {
            "size": _span(int(edges[i]), int(edges[i + 1]) - 1),
            "members": int(members[i]),
            "classes": int(counts[i]),
            "kind": HERE if i == first else OTHERS,
            "text": brief(int(members[i])) if members[i] else "",
        }
        for i in range(first, last + 1)
    ]


def _span(low: int, high: int) -> str:
    if high < 10_000:
        return f"{low:,}" if low == high else f"{low:,}–{high:,}"
    return f"{brief(low)} to under {brief(high + 1)}"


def brief(count: int) -> str:
    """9,876 as it is, above that 12.3k or 3.4M: what fits over a bar."""
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.3g}k" if count < 999_500 else f"{count / 1e6:,.3g}M"


def risk_profile(sizes: Mapping[int, int], unit: str = "records", threshold: float = 0.2) -> Any:
    """The share of records whose risk of re-identification, 1 divided by the size of their class, is at most so large."""
    alt = _altair()
    title = "Risk of being re-identified"
    if not sizes:
        return no_data(title)
    rows, over = _profile(sizes, threshold)
    least = min(rows[0]["risk"], threshold, 0.01)
    scale = alt.Scale(type="log", domain=[least, 1], nice=False)
    between = (0.02, 0.05, 0.2, 0.5) if least > 0.001 else ()
    ticks = sorted([*(10.0**-i for i in range(12) if 10.0**-i >= least), *between])
    words = f"risk: 1 divided by the {unit} in the class"
    across = alt.X("risk:Q", title=words, scale=scale, axis=alt.Axis(format="~%", values=ticks))
    up = alt.Y("share:Q", title=f"{unit} at or below it", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    shown = [alt.Tooltip("risk:Q", format=".3%"), alt.Tooltip("share:Q", format=".1%")]
    base = alt.Chart(table(rows)).encode(x=across, y=up)
    steps = base.mark_line(interpolate="step-after", color=BLUE, strokeWidth=2)
    points = base.mark_point(color=BLUE, filled=True, size=22, opacity=float(len(rows) <= MOST_POINTS)).encode(
        tooltip=shown
    )
    line = alt.Chart(table([{"at": threshold, "text": f"threshold {threshold:g}"}]))
    line = line.encode(x=alt.X("at:Q", scale=scale, title=words))
    rule = line.mark_rule(strokeDash=[5, 4], color=INK)
    name = line.mark_text(y=-6, color=INK).encode(text="text:N")
    return titled(
        (steps + points + rule + name).properties(width=WIDTH, height=200),
        title,
        f"For somebody known to be in the table. {100 * over:.1f} % of the {unit} are above {threshold:g};",
        f"the highest risk is {rows[-1]['risk']:.3g}.",
    )


def _profile(sizes: Mapping[int, int], threshold: float) -> tuple[list[dict[str, float]], float]:
    """Points of the profile, lowest risk first, and the share over the threshold."""
    size = np.array(sorted(sizes, reverse=True))
    members = size * np.array([sizes[int(s)] for s in size])
    share = np.cumsum(members) / members.sum()
    over = float(members[1 / size > threshold].sum() / members.sum())
    # Both ends, and between them what is evenly spread over the shares.
    even = np.searchsorted(share, np.linspace(0, 1, POINTS - 2))
    at = np.unique(np.concatenate([[0, len(size) - 1], np.minimum(even, len(size) - 1)]))
    at = np.arange(len(size)) if len(size) <= POINTS else at
    return [{"risk": 1 / float(size[i]), "share": float(share[i])} for i in at], over
