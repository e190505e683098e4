"""Charts, one function each; they work offline and tell things apart by more than colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmark.errors import OptionError, VeilmarkError
from veilmark.output import refuse_address, whole_file
from veilmark.score.scores import RecordScore

if TYPE_CHECKING:
    import altair as alt

BLUE, ORANGE, GREY, INK = "#3b6ea5", "#d17a22", "#8a8f98", "#111111"
"""Told apart with any colour vision and, by their lightness, in print."""
WIDTH = 460
MOST_BARS = 40
"""Of more values, recipients or candidates than that, the first are drawn, and the chart says so."""
LETTERS = 98
"""So long is a line of a subtitle."""
FORMATS = (".html", ".svg", ".png", ".json")
OPTIONS: Mapping[str, Mapping[str, Any]] = {".html": {"inline": True}, ".png": {"scale_factor": 2}}

LOOK: Mapping[str, Any] = {
    "background": "white",
    "font": "Arial, 'Liberation Sans', Helvetica, sans-serif",
    "title": {
        "anchor": "start",
        "frame": "group",
        "fontSize": 15,
        "subtitleFontSize": 11.5,
        "subtitleColor": "#444444",
        "subtitlePadding": 4,
        "offset": 12,
    },
    "axis": {
        "labelFontSize": 11,
        "labelLimit": 220,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titleLimit": 520,
        "gridColor": "#e4e4e4",
        "domainColor": GREY,
        "tickColor": GREY,
    },
    "legend": {"labelFontSize": 11, "labelLimit": 400, "titleFontSize": 12, "titleFontWeight": "normal"},
    "header": {"labelFontSize": 12, "labelLimit": 300, "labelAnchor": "start"},
    "text": {"fontSize": 11, "color": INK},
    "view": {"stroke": None},
}


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise VeilmarkError("Charts need the extra `report`: pip install 'veilmark[report]'.") from None
    return altair


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a chart's data. They are put in afterwards, for Altair would check each: seconds for thousands."""
    data = _altair().InlineData(values=[])
    data.values = list(rows)
    return data


def theme(chart: Any, description: str) -> Any:
    """The look that all charts have, and a sentence for those who cannot see them. Only a whole chart can have it."""
    return chart.configure(**LOOK).properties(description=description)


def titled(chart: Any, title: str, *sentences: str) -> Any:
    """The chart with a title, and below it sentences, broken into lines."""
    lines = textwrap.wrap(" ".join(filter(None, sentences)), LETTERS)
    shown = textwrap.shorten(title, LETTERS, placeholder=" …")
    return chart.properties(title=_altair().Title(shown, **({"subtitle": lines} if lines else {})))


def number(value: float) -> str:
    """Four digits or, of large numbers, all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def left_out(shown: int, of: int, what: str) -> str:
    """A sentence about what is not drawn, where anything is not."""
    return f"The first {shown:,} of {of:,} {what} are shown." if of > shown else ""


def waterfall(record: RecordScore) -> alt.Chart:
    """How a record's tkl-Score comes about: distance and weights add up, then DF_l divides."""
    return theme(waterfall_part(record), f"How a record comes to its tkl-Score of {record.tkl:.4g}, step by step.")


def waterfall_part(record: RecordScore, title: str = "Why this record scores as it does") -> Any:
    """The same, to be put beside other charts."""
    alt = _altair()
    steps, total = [], 0.0
    parts = {"class stands out (DF_t)": record.df_t} | {f"weight of {n}": w for n, w in record.weights.items()}
    for name, amount in parts.items():
        steps.append(_step(name, total, total + amount, "adds", f"+{amount:.4g}"))
        total += amount
    steps.append(_step(f"divided by DF_l = {record.df_l}", total, record.tkl, "divides", f"÷ {record.df_l}"))
    steps.append(_step("tkl-Score", 0.0, record.tkl, "result", f"{record.tkl:.4g}"))
    down = alt.Y("step:N", sort=None, title=None)
    across = alt.X("from:Q", title="tkl-Score of the record")
    colours = alt.Scale(domain=["adds", "divides", "result"], range=[ORANGE, GREY, BLUE])
    kind = alt.Color("kind:N", scale=colours, legend=alt.Legend(title=None, orient="bottom"))
    base = alt.Chart(table(steps))
    bars = base.mark_bar().encode(y=down, x=across, x2="to:Q", color=kind)
    labels = base.mark_text(align="left", dx=4).encode(y=down, x="end:Q", text="text:N")
    return titled((bars + labels).properties(width=WIDTH), title)


def _step(name: str, start: float, to: float, kind: str, text: str) -> dict[str, Any]:
    return {"step": name, "from": start, "to": to, "end": max(start, to), "kind": kind, "text": text}


def weights(by_attribute: Mapping[str, Mapping[str, float]], title: str = "Weights of sensitive values") -> alt.Chart:
    """A bar a value, heaviest first, a panel an attribute."""
    panels = _altair().vconcat(*weight_panels(by_attribute))
    return theme(titled(panels, title), f"{title}: a bar a value, heaviest first.")


def weight_panels(by_attribute: Mapping[str, Mapping[str, float]]) -> list[Any]:
    """A panel an attribute; all have one scale, so that bars can be compared."""
    alt = _altair()
    largest = max((w for values in by_attribute.values() for w in values.values()), default=0.0) or 1.0
    across = alt.X("weight:Q", title="weight", scale=alt.Scale(domain=[0, largest]), axis=alt.Axis(tickCount=5))
    panels = []
    for attribute, values in by_attribute.items():
        heaviest = sorted(values.items(), key=lambda item: -item[1])
        rows = [{"value": value, "weight": weight} for value, weight in heaviest[:MOST_BARS]]
        base = alt.Chart(table(rows)).encode(y=alt.Y("value:N", sort=None, title=None), x=across)
        labels = base.mark_text(align="left", dx=4).encode(text=alt.Text("weight:Q", format=".4f"))
        panel = (base.mark_bar(color=BLUE) + labels).properties(width=WIDTH)
        panels.append(titled(panel, attribute, left_out(len(rows), len(values), "values, the heaviest,")))
    return panels or [no_data("Weights")]


def no_data(title: str, width: int = WIDTH) -> Any:
    """A chart that says that there is nothing to draw."""
    alt = _altair()
    words = alt.Chart(table([{"text": "nothing to show"}])).mark_text(color=GREY).encode(text="text:N")
    return titled(words.properties(width=width, height=60), title)


def logarithmic(counts: Sequence[float], what: str) -> dict[str, Any]:
    """Scale, axis and title of counts: plain, or logarithmic down to 0 where the small ones would not be seen."""
    alt = _altair()
    there = [count for count in counts if count > 0]
    if not there or max(there) < 50 * min(there):
        return {"title": what, "axis": alt.Axis(format=",d", tickMinStep=1)}
    powers = [0, *(10**i for i in range(len(str(round(max(there))))))]
    axis = alt.Axis(format=",d", values=powers)
    return {"title": f"{what}, in steps of ten times", "axis": axis, "scale": alt.Scale(type="symlog")}


def save(chart: alt.Chart, path: Path) -> None:
    """Write a chart as HTML (self-contained), SVG, PNG or Vega-Lite JSON, by the suffix."""
    with saved(chart, path):
        pass


@contextmanager
def saved(chart: alt.Chart, path: Path) -> Iterator[None]:
    """The same, but the file appears only when the block ends well."""
    check_path(path)
    with whole_file(path) as temporary:
        chart.save(str(temporary), **OPTIONS.get(path.suffix, {}))
        yield


def check_path(path: Path) -> None:
    """A chart can be drawn to this path: known suffix, Altair there."""
    refuse_address(path)
    if path.suffix not in FORMATS:
        raise OptionError(f"'{path}' must end in one of {', '.join(FORMATS)}, so that it is known what to draw.")
    _altair()
