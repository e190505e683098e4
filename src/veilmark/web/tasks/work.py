"""Work: what a job's own process does. It is told of on a pipe, and its result is written to the job's folder."""

from __future__ import annotations

import importlib
import json
import secrets
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from veilmark import progress
from veilmark.errors import VeilmarkError, VeilmarkWarning
from veilmark.messages import spell_all, template_of
from veilmark.progress import Poll
from veilmark.readable import finite
from veilmark.web.spelling import FIELDS
from veilmark.web.workspace import NotFoundError, Workspace

EVERY = 0.2
"""Seconds between two words of progress."""


class Chart(BaseModel):
    """A chart of a job: the name of its files, and what it shows, for who cannot see it."""

    name: str
    title: str


@dataclass(frozen=True)
class Outcome:
    """What a job returns: a result for JSON, and charts by their titles (Altair's)."""

    result: Mapping[str, Any]
    charts: Mapping[str, Any] = field(default_factory=dict)


def run(told: Connection, module: str, name: str, workspace: Path, folder: Path, given: dict[str, Any]) -> None:
    """Do the work of one job, in a process made for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    teller = _Teller(told, Workspace(workspace))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        ending = _ending(teller, module, name, workspace, folder, given)
    for note in dict.fromkeys(template_of(n.message) for n in notes if _is_ours(n)):
        teller.tell({"note": note})
    teller.tell(ending)
    told.close()


def _is_ours(note: warnings.WarningMessage) -> bool:
    return issubclass(note.category, VeilmarkWarning)


def _ending(
    teller: _Teller, module: str, name: str, workspace: Path, folder: Path, given: dict[str, Any]
) -> dict[str, Any]:
    try:
        with progress.reported_by(teller.step):
            work = getattr(importlib.import_module(module), name)
            found = work(Workspace(workspace), **given)
            outcome = found if isinstance(found, Outcome) else Outcome(found)
            charts = _draw_all(folder, outcome.charts)
        text = json.dumps(finite(spell_all(outcome.result, FIELDS)), ensure_ascii=False, allow_nan=False, default=str)
        (folder / "result.json").write_text(text, encoding="utf-8")
        return {"end": "done", "charts": [chart.model_dump() for chart in charts]}
    except KeyboardInterrupt:
        return {"end": "cancelled"}
    except (VeilmarkError, NotFoundError) as error:
        return {"end": "failed", "error": template_of(error)}
    except MemoryError:
        return {
            "end": "failed",
            "error": "There is not enough memory for this. Use fewer or coarser quasi-identifiers.",
        }
    except Exception:
        reference = secrets.token_hex(4)
        teller.tell({"log": f"Reference {reference}:\n{traceback.format_exc()}"})
        return {
            "end": "failed",
            "error": f"Something went wrong inside veilmark, reference {reference}. The server's log says more.",
        }


def _draw_all(folder: Path, charts: Mapping[str, Any]) -> list[Chart]:
    if not charts:
        return []
    with progress.step("Drawing"):
        return [_draw(folder, i, title, chart) for i, (title, chart) in enumerate(charts.items(), 1)]


def _draw(folder: Path, number: int, title: str, chart: Any) -> Chart:
    """Keep a chart as a picture, and as what the browser makes an interactive one from."""
    import vl_convert

    spec = chart.to_dict() if hasattr(chart, "to_dict") else chart
    name = f"chart-{number}"
    (folder / f"{name}.json").write_text(json.dumps(finite(spec), ensure_ascii=False), encoding="utf-8")
    (folder / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return Chart(name=name, title=title)


class _Teller:
    """Says on the pipe how far the work is."""

    def __init__(self, pipe: Connection, workspace: Workspace) -> None:
        self._pipe, self._workspace, self._lock = pipe, workspace, threading.Lock()

    def tell(self, content: Mapping[str, Any]) -> None:
        plain = {k: self._workspace.plain(v) if isinstance(v, str) else v for k, v in content.items()}
        with self._lock:
            self._pipe.send_bytes(json.dumps(plain).encode())

    @contextmanager
    def step(self, label: str, poll: Poll) -> Iterator[None]:
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(label, poll, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            self.tell({"step": label, "share": 1.0, "done": True})

    def _watch(self, label: str, poll: Poll, done: threading.Event) -> None:
        last: float | None = -1.0
        while True:
            share = poll()
            if share != last:
                self.tell({"step": label, "share": share, "done": False})
            last = share
            if done.wait(EVERY):
                return
