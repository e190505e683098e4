"""Figures 7 to 9 of the f-slip paper, redrawn, and the attacks beside them. Shapes tell the methods apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veilmark.report.charts import BLUE, GREY, INK, ORANGE, _altair, table, theme, titled

if TYPE_CHECKING:
    import altair as alt

    from veilmark.reproduce.fslip_attacks import Fought
    from veilmark.reproduce.fslip_experiment import Experiment, Run

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
COLOURS = (BLUE, INK, ORANGE, GREY, "#6b8e23")


def against_size(found: Experiment) -> alt.Chart:
    """Figure 7: loss of quasi-identifiers and of sensitive attributes against the number of persons."""
    runs = [run for run in found.runs if run.figure == "7, 9"]
    chart = _altair().hconcat(
        _lines(_points(runs, "persons", "ncp"), "persons", "QI-NCP", "a. Quasi-identifiers"),
        _lines(_points(runs, "persons", "sa_ncp"), "persons", "SA-NCP", "b. Sensitive attributes"),
    )
    return theme(chart, "Loss against the number of persons.")


def against_k_and_f(found: Experiment) -> alt.Chart:
    """Figure 8: loss of quasi-identifiers against k, of sensitive attributes against f; values that unions add beside."""
    by_k = [run for run in found.runs if run.figure == "8a"]
    by_f = [run for run in found.runs if run.figure == "8b"]
    chart = _altair().hconcat(
        _lines(_points(by_k, "k", "ncp"), "k", "QI-NCP", "a. Quasi-identifiers, by k"),
        _lines(_points(by_f, "f", "sa_ncp"), "f", "SA-NCP", "b. Sensitive attributes, by f"),
        _lines(_points(by_f, "f", "sa_added"), "f", "share of values added", "c. What unions add, by f"),
    )
    return theme(chart, "Loss against k and f.")


def time(found: Experiment, printed: Mapping[str, float]) -> alt.Chart:
    """Figure 9: seconds against the number of persons; the paper's means are lines across."""
    alt = _altair()
    runs = [run for run in found.runs if run.figure == "7, 9"]
    points = [{"x": run.persons, "y": run.seconds, "method": run.method} for run in runs]
    drawn = _lines(points, "persons", "seconds", "Ours: points; the paper's means: dashed", log=True)
    means = [{"y": seconds, "text": f"paper: {name}"} for name, seconds in printed.items()]
    base = alt.Chart(table(means)).encode(y=alt.Y("y:Q", scale=alt.Scale(type="log")))
    rules = base.mark_rule(strokeDash=[5, 4], color=GREY)
    # Two of the paper's means, 28 and 30 seconds, are one line here; their names stand above and below it.
    names = [
        base.transform_filter(f"datum.y {side}").mark_text(align="left", x=4, dy=dy).encode(text="text:N")
        for side, dy in (("< 29", 8), (">= 29", -6))
    ]
    return theme(drawn + rules + names[0] + names[1], "Seconds against the number of persons.")


def attacks(fought: Sequence[Fought]) -> alt.Chart:
    """How much each attack gains over guessing, a shape a release."""
    alt = _altair()
    rows = [
        {"source": of.source, "method": of.release, "attack": name, "gain": found.gain, **_interval(found)}
        for of in fought
        for name, found in of.attacks.items()
        if found.targets
    ]
    names = list(dict.fromkeys(of.release for of in fought))
    base = alt.Chart()
    across = alt.X("gain:Q", title="gain over guessing", axis=alt.Axis(format="%"))
    down = {"y": alt.Y("attack:N", sort=None, title=None), "yOffset": alt.YOffset("method:N", sort=names)}
    bars = base.mark_rule(color=INK).encode(x=alt.X("low:Q"), x2="high:Q", **down)
    marks = base.mark_point(filled=True, size=55, opacity=1).encode(x=across, **down, **_kinds(alt, names))
    panel = alt.layer(bars, marks, data=table(rows)).properties(width=330, height=alt.Step(9))
    chart = titled(
        panel.facet(column=alt.Column("source:N", sort=None, title=None)),
        "Attacks",
        "Points right of 0 beat guessing from the marginals; bars are 95 % intervals.",
    )
    return theme(chart, "How much each attack gains over guessing, by release.")


def _interval(found: Any) -> dict[str, float]:
    return {"low": found.interval[0] - found.control, "high": found.interval[1] - found.control}


def _points(runs: Sequence[Run], across: str, what: str) -> list[dict[str, Any]]:
    return [{"x": getattr(run, across), "y": run.loss[what], "method": run.method} for run in runs]


def _kinds(alt: Any, names: Sequence[str]) -> dict[str, Any]:
    """Shape and colour by method; more methods than shapes begin again."""
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(names))]
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=300)
    return {
        "shape": alt.Shape("method:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
        "color": alt.Color("method:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
    }


def _lines(points: list[dict[str, Any]], across: str, up: str, title: str, log: bool = False) -> Any:
    alt = _altair()
    names = list(dict.fromkeys(point["method"] for point in points))
    axis = alt.Axis() if log else alt.Axis(format="%")
    scale = alt.Scale(type="log") if log else alt.Scale(zero=True)
    base = alt.Chart(table(points)).encode(
        x=alt.X("x:Q", title=across, scale=alt.Scale(zero=False)),
        y=alt.Y("y:Q", title=up, axis=axis, scale=scale),
        color=_kinds(alt, names)["color"],
    )
    marks = base.mark_point(filled=True, size=55, opacity=1).encode(shape=_kinds(alt, names)["shape"])
    return (base.mark_line() + marks).properties(title=title, width=260, height=220)
