"""The lattice that OLA searched, to look around in: what a release at other levels would be."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from veilmark.study.study import Study
from veilmark.web.forms import anonymize as anonymizing
from veilmark.web.forms.anonymize import AnonymizeForm
from veilmark.web.workspace import Workspace

if TYPE_CHECKING:
    from veilmark.workbench.preview import Explorer


class NodeView(BaseModel):
    """A generalization that was not made: its levels, what it would suppress and lose, its first rows, and a chart (as
    Vega-Lite) of its columns before and after."""

    study: str
    job: str
    levels: dict[str, int]
    heights: dict[str, int]
    records: int
    suppressed: int
    passes: bool
    k: int | None
    classes: int
    metric: str
    loss: dict[str, float]
    loss_by_attribute: dict[str, dict[str, float]]
    columns: list[str]
    rows: list[list[str | None]]
    chart: dict[str, Any]


def preview(workspace: Workspace, study: str, job: str, asked: AnonymizeForm, levels: Sequence[int]) -> NodeView:
    """What the release that was asked for would be at other levels."""
    found = _explorer(workspace, study, asked).at(levels)
    shown = found.to_dict()
    del shown["marginals"]
    return NodeView(study=study, job=job, chart=found.chart().to_dict(), **shown)


_OPENED: OrderedDict[tuple[Any, ...], Explorer] = OrderedDict()
_MOST_OPENED = 2
_OPENING = threading.Lock()


def _explorer(workspace: Workspace, name: str, asked: AnonymizeForm) -> Explorer:
    """The study's classes in memory, so that a click need not read the source again; the last two are kept."""
    from veilmark.workbench.preview import Explorer

    study = workspace.study(name)
    key = _key(workspace, name, study, asked)
    with _OPENING:
        found = _OPENED.get(key)
        if found is None:
            population = None if asked.population is None else workspace.table(asked.population)
            found = Explorer.open(study, anonymizing.models(study, asked), anonymizing.ola(asked), population)
        _OPENED[key] = found
        _OPENED.move_to_end(key)
        while len(_OPENED) > _MOST_OPENED:
            _OPENED.popitem(last=False)
    return found


def _key(workspace: Workspace, name: str, study: Study, asked: AnonymizeForm) -> tuple[Any, ...]:
    """What an explorer depends on. A source that is no plain file is read again every time."""
    files = [workspace.study_file(name)]
    source = study.source()[0]
    files += [Path(source)] if isinstance(source, str) and Path(source).is_file() else []
    stamps = [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    unknown = object() if len(files) < 2 else None
    return (workspace.folder, asked.model_dump_json(), unknown, *stamps)
