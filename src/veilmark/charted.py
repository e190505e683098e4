"""What every result can do that is better looked at than read: show its chart in a notebook, and save it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt


class Charted(ABC):
    """A result with a chart of its own. Nothing is drawn, and no chart package loaded, before somebody looks."""

    @abstractmethod
    def chart(self) -> alt.Chart:
        """The result as an Altair chart. Needs the extra `report`."""

    def save_chart(self, path: str | os.PathLike[str]) -> None:
        """Write the chart as .html (needs no network), .svg, .png or .json, whole or not at all."""
        from veilmark.report import charts

        charts.check_path(Path(path))
        charts.save(self.chart(), Path(path))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook shows, without the network: the chart, or where it cannot be drawn the result's text."""
        text = {"text/plain": repr(self)}
        try:
            import altair
            import vl_convert

            spec = self.chart().to_dict()
            kind = f"application/vnd.vegalite.{altair.SCHEMA_VERSION.partition('.')[0]}+json"
            return {kind: spec, "image/svg+xml": vl_convert.vegalite_to_svg(spec), **text}
        except Exception:  # a notebook would show a traceback in place of the result
            return text
