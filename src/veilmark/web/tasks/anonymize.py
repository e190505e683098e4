"""The job of the Anonymize page: a release in the workspace, and all that the page shows of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmark.study.study import Study
from veilmark.web.forms import anonymize as anonymizing
from veilmark.web.forms.anonymize import AnonymizeForm
from veilmark.web.tasks.work import Outcome
from veilmark.web.workspace import Workspace

if TYPE_CHECKING:
    from veilmark.veil.anonymize import Anonymized
    from veilmark.veil.sliced import Sliced

MOST_NODES = 40
"""So many of the best nodes can be chosen from a list; in the chart, all."""
EXAMPLES = 3


def anonymize_source(
    workspace: Workspace,
    study: str,
    asked: Mapping[str, Any],
    node: Sequence[int] | None = None,
    lattice: str | None = None,
) -> Outcome:
    """A release of the study's source, its recoding, and what the written file says of itself; a job.

    `node` are the levels that somebody chose in the lattice of another job.
    """
    wanted = AnonymizeForm(**asked)
    opened = workspace.study(study)
    called = f"{study}-{wanted.method}"
    if wanted.of_persons:
        with _new(workspace, called, "") as target:
            return _of_persons(workspace, opened, wanted, target)
    if node is not None:
        fixed = {column: (level, level) for column, level in zip(opened.quasi, node, strict=True)}
        wanted = wanted.model_copy(update={"levels": fixed})
    with _new(workspace, called, f".{wanted.format}") as target:
        made = _of_records(workspace, opened, wanted, target)
    return replace(made, result={**made.result, "asked": dict(asked), "node": node, "lattice": lattice})


@contextmanager
def _new(workspace: Workspace, name: str, suffix: str) -> Iterator[Path]:
    """A new file or folder of the workspace, taken at once so that no other job takes it; gone where the block fails."""
    while True:
        target = workspace.new_output("anonymized", name, suffix)
        try:
            target.touch(exist_ok=False) if suffix else target.mkdir()
            break
        except FileExistsError:
            continue
    try:
        yield target
    except BaseException:
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        _rules(target).unlink(missing_ok=True)
        raise


def _rules(release: Path) -> Path:
    return release.with_name(f"{release.stem}.recoding.json")


def _of_records(workspace: Workspace, study: Study, asked: AnonymizeForm, target: Path) -> Outcome:
    from veilmark.report.class_charts import class_sizes
    from veilmark.report.utility_charts import marginals
    from veilmark.workbench.anonymize import anonymize
    from veilmark.workbench.preview import view_marginals

    population = None if asked.population is None else workspace.table(asked.population)
    models, method = anonymizing.models(study, asked), anonymizing.method(asked)
    made = anonymize(study, models, target, method, _rules(target), population)
    before_after = view_marginals(study, made.plan.recoding)
    charts = {"Generalizations that were tried": made.chart()} if made.plan.explored else {}
    charts["The columns before and after"] = marginals(before_after)
    charts["Sizes of the published classes"] = class_sizes(_counted(made), "persons" if made.of_persons else "records")
    result = made.to_dict() | {
        "output": workspace.relative(target),
        "files": [workspace.relative(path) for path in (target, _rules(target))],
        "quasi": study.quasi,
        "of_persons": made.of_persons,
        "limits": _limits(made),
        "nodes": _nodes(made),
        "examples": _examples(made),
        "changes": {name: of.total_variation for name, of in before_after.marginals.items()},
    }
    return Outcome(result, charts)


def _counted(made: Anonymized) -> Any:
    from veilmark.privacy.measures import count_sizes

    return count_sizes(made.plan.sizes)


def _limits(made: Anonymized) -> list[dict[str, Any]]:
    """Each limit in words, with what the written file shows."""
    pairs = zip(made.models, made.verified.limits, strict=True)
    return [{"limit": str(model), **found.to_dict()} for model, found in pairs]


def _nodes(made: Anonymized) -> list[dict[str, Any]]:
    """The best of the nodes that OLA tried."""
    tried = {found.node: found for found in made.plan.explored if found.loss is not None}
    best = sorted(tried.values(), key=lambda found: (found.loss, found.node))[:MOST_NODES]
    return [found.to_dict() for found in best]


def _examples(made: Anonymized) -> dict[str, list[str]]:
    """A few published labels of each column."""
    recoding = made.plan.recoding
    labels = recoding.class_labels or recoding.labels
    pairs = zip(recoding.columns, labels, strict=True)
    return {name: [str(v) for v in of.unique().to_pylist() if v is not None][:EXAMPLES] for name, of in pairs}


def _of_persons(workspace: Workspace, study: Study, asked: AnonymizeForm, target: Path) -> Outcome:
    from veilmark.workbench.anonymize_persons import anonymize_persons

    made = anonymize_persons(study, anonymizing.persons_method(asked), target, asked.format)
    result = {name: value for name, value in made.to_dict().items() if name != "correlations"} | {
        "method": asked.method,
        "asked": asked.given(),
        "output": workspace.relative(target),
        "files": [workspace.relative(path) for path in sorted(target.iterdir())],
        "linked": made.linked,
        "missed": _missed(made),
    }
    title = "How the sensitive columns go together" if "correlations" in made.facts else "Sizes of the classes"
    return Outcome(result, {title: made.chart()})


def _missed(made: Sliced) -> list[str]:
    """What was asked for and is not met: not every method promises all."""
    asked, facts = made.facts.get("asked", {}), made.facts
    known = [name for name in ("k", "l") if name in facts and asked.get(name) is not None]
    return [f"{name} = {asked[name]:g}" for name in known if facts[name] < asked[name]]
