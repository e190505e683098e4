"""What every result can do that is better looked at than read: show its chart in a notebook, and save it."""

from __future__ import annotations

import base64
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmark.readable import Readable

if TYPE_CHECKING:
    import altair as alt


class Charted(Readable, ABC):
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
        """What a notebook shows, without the network: the tables and, where it can be drawn, the chart."""
        return {"text/html": f"{self._repr_html_()}{self._picture()}", "text/plain": str(self)}

    def _picture(self) -> str:
        """The chart as a picture that is part of the page; nothing where it cannot be drawn."""
        try:
            import vl_convert

            svg = vl_convert.vegalite_to_svg(self.chart().to_dict())
        except Exception:  # a notebook would show a traceback in place of the result
            return ""
        return f'<img alt="" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'
