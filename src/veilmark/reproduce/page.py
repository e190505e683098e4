"""A reproduction as one HTML page that needs nothing else: verdicts, tables, figures."""

from __future__ import annotations

import io
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from veilmark.errors import OptionError
from veilmark.output import write_text
from veilmark.reproduce.comparison import Reproduced, Row

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 68em; padding: 0 1em; color: #111; }
table { border-collapse: collapse; margin: .5em 0 2em; } th, td { text-align: left; padding: .2em .8em .2em 0; }
th { border-bottom: 2px solid #111; } td { border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
.differs td:last-child { font-weight: bold; color: #9a3412; } .unknown { color: #666; }
svg { max-width: 100%; height: auto; }
"""


def write_page(found: Reproduced, path: Path) -> None:
    """Write the page, whole or not at all."""
    check_page(path)
    write_text(path, "\n".join(_page(found)) + "\n")


def check_page(path: Path) -> None:
    if path.suffix != ".html":
        raise OptionError(f"'{path}' must end in .html: it is a page.")


def _page(found: Reproduced) -> Iterator[str]:
    title = escape(found.title)
    yield f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>'
    yield f"<body><h1>{title}</h1>"
    yield f"<p><strong>{found.in_words()}</strong></p>"
    yield from (f"<p>{escape(note)}</p>" for note in found.notes)
    for table, rows in groupby(found.rows, key=lambda row: row.table):
        yield f"<h2>{escape(_heading(table))}</h2><table><tr><th></th><th>paper</th><th>veilmark</th><th>verdict</th></tr>"
        yield from map(_row, rows)
        yield "</table>"
    for name, draw in found.charts.items():
        yield f"<h2>{escape(name)}</h2>{_svg(draw())}"
    yield "</body></html>"


def _heading(table: str) -> str:
    return f"Table {table}" if table[:1].isdigit() else table


def _row(row: Row) -> str:
    kind = "differs" if not row.holds else "unknown" if row.verdict.startswith("nothing") else "holds"
    cells = "".join(f"<td>{escape(text)}</td>" for text in (row.what, row.printed, row.ours, row.verdict))
    return f'<tr class="{kind}">{cells}</tr>'


def _svg(chart: Any) -> str:
    text = io.StringIO()
    chart.save(text, format="svg")
    return text.getvalue()
