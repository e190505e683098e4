"""Charts, one function each; they work offline and tell things apart by more than colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmark.errors import OptionError, VeilmarkError
from veilmark.output import whole_file
from veilmark.score.scores import RecordScore

if TYPE_CHECKING:
    import altair as alt

BLUE, ORANGE, GREY = "#3b6ea5", "#d17a22", "#8a8f98"
FORMATS = (".html", ".svg", ".png", ".json")


def _altair() -> Any:
    try:
        import altair
    except ImportError:
        raise VeilmarkError("Charts need the extra `report`: pip install 'veilmark[report]'.") from None
    return altair


def waterfall(record: RecordScore) -> alt.Chart:
    """How a record's tkl-Score comes about: distance and weights add up, then DF_l divides."""
    alt = _altair()
    steps, total = [], 0.0
    parts = {"class stands out (DF_t)": record.df_t} | {f"weight of {n}": w for n, w in record.weights.items()}
    for name, amount in parts.items():
        steps.append(_step(name, total, total + amount, "adds", f"+{amount:.4g}"))
        total += amount
    steps.append(_step(f"divided by DF_l = {record.df_l}", total, record.tkl, "divides", f"÷ {record.df_l}"))
    steps.append(_step("tkl-Score", 0.0, record.tkl, "result", f"{record.tkl:.4g}"))
    down = alt.Y("step:N", sort=None, title=None, axis=alt.Axis(labelLimit=260))
    across = alt.X("from:Q", title="tkl-Score of the record")
    colours = alt.Scale(domain=["adds", "divides", "result"], range=[ORANGE, GREY, BLUE])
    kind = alt.Color("kind:N", scale=colours, legend=alt.Legend(title=None))
    base = alt.Chart(alt.Data(values=steps))
    bars = base.mark_bar().encode(y=down, x=across, x2="to:Q", color=kind)
    labels = base.mark_text(align="left", dx=4).encode(y=down, x="end:Q", text="text:N")
    return (bars + labels).properties(title="Why this record scores as it does", width=420)


def _step(name: str, start: float, to: float, kind: str, text: str) -> dict[str, Any]:
    return {"step": name, "from": start, "to": to, "end": max(start, to), "kind": kind, "text": text}


def weights(by_attribute: Mapping[str, Mapping[str, float]], title: str = "Weights of sensitive values") -> alt.Chart:
    """A bar a value, heaviest first, a panel an attribute."""
    alt = _altair()
    rows = [
        {"attribute": attribute, "value": value, "weight": weight}
        for attribute, values in by_attribute.items()
        for value, weight in values.items()
    ]
    bars = (
        alt.Chart()
        .mark_bar(color=BLUE)
        .encode(
            y=alt.Y("value:N", sort="-x", title=None, axis=alt.Axis(labelLimit=260)),
            x=alt.X("weight:Q", title="weight"),
        )
    )
    labels = bars.mark_text(align="left", dx=4).encode(text=alt.Text("weight:Q", format=".4f"))
    layered = alt.layer(bars, labels, data=alt.Data(values=rows)).properties(width=420)
    panels = layered.facet(row=alt.Row("attribute:N", title=None)).resolve_scale(y="independent")
    return panels.properties(title=title)


def save(chart: alt.Chart, path: Path) -> None:
    """Write a chart as HTML (self-contained), SVG, PNG or Vega-Lite JSON, by the suffix."""
    with saved(chart, path):
        pass


@contextmanager
def saved(chart: alt.Chart, path: Path) -> Iterator[None]:
    """The same, but the file appears only when the block ends well."""
    check_path(path)
    with whole_file(path) as temporary:
        options: dict[str, Any] = {"inline": True} if path.suffix == ".html" else {}
        chart.save(str(temporary), **options)
        yield


def check_path(path: Path) -> None:
    """A chart can be drawn to this path: known suffix, Altair there."""
    if path.suffix not in FORMATS:
        raise OptionError(f"'{path}' must end in one of {', '.join(FORMATS)}, so that it is known what to draw.")
    _altair()
