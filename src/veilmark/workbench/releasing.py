"""The verb release: anonymize, plan decoys and covers, write each recipient's copy, and record it in the ledger."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from veilmark import progress
from veilmark.engines.duckdb import DuckDB
from veilmark.errors import OptionError, StudyError, did_you_mean
from veilmark.ledger import Key, Ledger
from veilmark.ledger.publish import Publication, check_target, publishing
from veilmark.mark.code import derive
from veilmark.mark.discover import Feasibility, feasibility
from veilmark.mark.plan import Marking, Marks, plan_marks
from veilmark.mark.plant import Rows, copy_of, donors
from veilmark.output import write_table
from veilmark.privacy.models import (
    Alpha,
    DistinctL,
    EntropyL,
    KAnonymity,
    PrivacyModel,
    RecursiveL,
    TCloseness,
    check_attributes,
)
from veilmark.study import Study
from veilmark.trace.evidence import Marked
from veilmark.veil.anonymize import all_models
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.verify import check_release, verify
from veilmark.workbench.advising import notes_of
from veilmark.workbench.anonymizing import follow_distances, measure_release, published_columns
from veilmark.workbench.ledger import open_to_publish, plan_to_publish
from veilmark.workbench.linking import Ground, check_identity
from veilmark.workbench.recognizing import why_few
from veilmark.workbench.recording import public_entry, secret_entry
from veilmark.workbench.sources import engine_of
from veilmark.yamlfile import read_yaml

__all__ = ["Copy", "Job", "Released", "Terms", "check_identity", "file_names", "read_terms", "release"]

File = str | os.PathLike[str]

CROWDED = (
    "Too few classes are left that held no decoys in earlier releases of this ledger, so that some are used again. Claims "
    "about them may point to several recipients and count for less; leaked files do not."
)

KEPT = (KAnonymity, DistinctL, EntropyL, RecursiveL, Alpha, TCloseness)
"""The models that copies keep: a decoy class takes all values of a released class, and so is as diverse."""


@dataclass(frozen=True)
class Copy:
    """One recipient's copy."""

    name: str
    file: str
    records: int
    decoy_classes: int
    decoy_records: int
    withheld_classes: int
    withheld_records: int

    @classmethod
    def planned(cls, marks: Marks, recipient: int, file: str) -> Copy:
        published, withheld = marks.linked.published, marks.withheld(recipient)
        added, lost = int(marks.sizes[recipient].sum()), int(published[withheld].sum())
        name, records = marks.marking.recipients[recipient], int(published.sum()) - lost + added
        return cls(name, file, records, len(marks.decoys[recipient]), added, len(withheld), lost)

    @property
    def classes_more(self) -> int:
        """How many classes it has more than the release without marks."""
        return self.decoy_classes - self.withheld_classes

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Released:
    """A release to several recipients, or, of a dry run, what it would be; `release` is its name in the ledger.

    `loss` is that of the release before it is marked, `loss_after` that of a copy, on average.
    """

    release: str | None
    feasible: Feasibility
    copies: tuple[Copy, ...]
    cost: Mapping[str, Any]
    loss: Mapping[str, float]
    loss_after: Mapping[str, float]
    levels: Mapping[str, int]
    suppressed: int
    notes: tuple[str, ...] = ()
    folder: str | None = None

    def to_dict(self) -> dict[str, Any]:
        found = self.feasible
        return {
            "release": self.release,
            "min_link": found.min_link,
            "candidates": {"classes": found.classes, "records": found.records, "excluded": found.excluded},
            "feasibility": found.to_dict(),
            "cost": dict(self.cost),
            "levels": dict(self.levels),
            "suppressed": self.suppressed,
            "loss": dict(self.loss),
            "loss_after": dict(self.loss_after),
            "recipients": [copy.to_dict() for copy in self.copies],
            "notes": list(self.notes),
            "output": self.folder,
        }


@dataclass(frozen=True)
class Terms:
    """What the ledger notes of an agreement: its reference, a contact, and on what basis persons serve as decoys."""

    agreement: str | None = None
    contact: str | None = None
    consent: str | None = None

    def to_dict(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Job:
    """All that `release` is asked for; `identity` are the columns that tell who somebody in the population is."""

    population: Any
    identity: tuple[str, ...]
    marking: Marking
    models: tuple[PrivacyModel, ...] = ()
    method: Ola | Mondrian = field(default_factory=Ola)
    seed: int | None = None
    form: str = "csv"
    terms: Mapping[str, Terms] = field(default_factory=dict)


def release(
    study: Study,
    job: Job,
    ledger: File | None = None,
    key: File | None = None,
    output: File | None = None,
    dry_run: bool = False,
) -> Released:
    """Write a copy for each recipient, with decoys of its own, and record all of it in the ledger.

    A dry run draws everything, by a key that is forgotten, and needs neither ledger, key nor output. The same seed, key and
    version of veilmark give the same copies.
    """
    models = all_models([KAnonymity(job.marking.k), *job.models], job.method)
    whole = any(m.attribute is not None for m in models)
    files = file_names(job.marking.recipients, job.form)
    _check(study, job, models)
    seed = str(secrets.randbits(64) if job.seed is None else job.seed)
    target = None if dry_run else _given(ledger, key, output)
    book, secret_key = (None, None) if target is None else plan_to_publish(*target[:2])
    with _to_its_end() as begun, engine_of(study) as engine:
        ground = Ground.prepare(engine, study, job.population, job.identity, job.marking, models, job.method)
        # What cannot be carried is refused before a ledger or a key is made.
        dry = derive(bytes(32), f"dry run {seed}")
        marks = plan_marks(ground.linked, job.marking, dry, whole, lambda: why_few(ground, job.marking.k))
        if target is None or secret_key is None:
            return _result(ground, marks, [Copy.planned(marks, i, file) for i, file in enumerate(files)])
        earlier = [] if book is None else _earlier(book, secret_key, seed, job.marking.recipients)
        linked, fresh = ground.sparing(earlier, job.marking)
        own = release_key(secret_key.subkey("release"), seed, job.marking.recipients)
        marks = plan_marks(linked, job.marking, own, whole)
        made = [Copy.planned(marks, i, file) for i, file in enumerate(files)]
        people = [ground.decoys(marks, i, own) for i in range(len(made))]
        public, secret = public_entry(job, ground, models, made, seed), secret_entry(ground, marks, people)
        result = _result(ground, marks, [replace(copy, file=str(Path(target[2]) / copy.file)) for copy in made])
        with (
            _copies(ground, marks, own) as copies,
            publishing(open_to_publish(*target[:2], secret_key)[0], secret_key, target[2], public, secret) as doing,
        ):
            begun.append(doing)
            _write_copies(doing.folder, ground, models, made, copies)
    notes = result.notes if fresh else (*result.notes, CROWDED)
    return replace(result, release=doing.release, folder=str(target[2]), notes=notes)


@contextmanager
def _to_its_end() -> Iterator[list[Publication]]:
    """Ctrl-C comes too late once a release that was begun is published: the rest is done as if it had not been pressed."""
    begun: list[Publication] = []
    try:
        yield begun
    except KeyboardInterrupt:
        if not any(doing.published for doing in begun):
            raise


def _earlier(book: Ledger, key: Key, seed: str, recipients: Sequence[str]) -> list[Marked]:
    """The marks of earlier releases, up to when this same one was first made: it is to be the same again."""
    found = []
    for release in book.releases():
        if release.public["parameters"]["seed"] == seed and release.recipients == list(recipients):
            break
        if release.status == "published":
            found.append(Marked.of(release.id, book.secrets(release.id, key)))
    return found


def release_key(secret: bytes, seed: str, recipients: Sequence[str]) -> bytes:
    """The key of one release. The recipients are part of it, lest others get the same marks by the same seed, and are taken
    for each other."""
    return derive(secret, f"{seed} {len(recipients)} " + "\0".join(recipients))


def _given(ledger: File | None, key: File | None, output: File | None) -> tuple[File, File, File]:
    """Where to publish; said before the work is done."""
    if ledger is None or key is None or output is None:
        raise OptionError(
            "Say where to publish: --ledger, --key and -o. Only a dry run (--dry-run) needs none of them."
        )
    check_target(output)
    return ledger, key, output


def _check(study: Study, job: Job, models: Sequence[PrivacyModel]) -> None:
    if not study.quasi:
        raise StudyError(f"{study.name} names no quasi-identifier, so there is nothing to link by. Give one its role.")
    check_attributes(models, study.sensitive)
    beyond = [m for m in models if not isinstance(m, KEPT)]
    if beyond:
        raise OptionError(f"Copies cannot be promised to keep '{beyond[0]}', since they lack some classes. Drop it.")
    if not isinstance(job.method, Ola | Mondrian) or (isinstance(job.method, Mondrian) and job.method.relaxed):
        raise OptionError("Copies are made by OLA or by strict Mondrian: labels that overlap would tell decoys.")
    strangers = [name for name in job.terms if name not in job.marking.recipients]
    if strangers:
        known = did_you_mean(strangers[0], job.marking.recipients)
        raise OptionError(f"There are terms for '{strangers[0]}', who is no recipient.{known}")


def file_names(recipients: Sequence[str], form: str) -> list[str]:
    """A file name for each recipient: its name, less what file systems do not take."""
    if form not in ("csv", "parquet"):
        raise OptionError(f"Copies are written as csv or parquet, not '{form}'.")
    names = [re.sub(r"[^\w.-]+", "_", name).strip("._") or "recipient" for name in recipients]
    taken = [name for i, name in enumerate(names) if name.lower() in [n.lower() for n in names[:i]]]
    if taken:
        raise OptionError(f"Two recipients would have the same file '{taken[0]}.{form}'. Rename one of them.")
    return [f"{name}.{form}" for name in names]


def read_terms(path: File, recipients: Sequence[str]) -> dict[str, Terms]:
    """The terms of each recipient, from a YAML file: `ada: {agreement: …, contact: …, consent: …}`."""
    content = read_yaml(Path(path), OptionError).data
    known = set(Terms.__dataclass_fields__)
    if not isinstance(content, dict) or not all(isinstance(v, dict) and set(v) <= known for v in content.values()):
        raise OptionError(f"'{path}' must hold, for each recipient, some of {', '.join(sorted(known))}.")
    strangers = [name for name in content if str(name) not in recipients]
    if strangers:
        raise OptionError(
            f"'{path}' has terms for '{strangers[0]}', who is no recipient.{did_you_mean(str(strangers[0]), recipients)}"
        )
    return {str(name): Terms(**{k: str(v) for k, v in given.items()}) for name, given in content.items()}


# Copies are made one at a time. Each file is measured anew while the next is made: it must keep what the release promises,
# decoys included.


class Copies(Protocol):
    """Writes the recipients' copies."""

    def write(self, recipient: int, path: Path) -> None:
        """Write one recipient's copy, CSV or Parquet by the suffix."""


@dataclass(frozen=True, eq=False)
class HeldCopies:
    """Copies of rows that are held in memory."""

    rows: Rows
    marks: Marks
    key: bytes

    def write(self, recipient: int, path: Path) -> None:
        """Write one recipient's copy, CSV or Parquet by the suffix."""
        borrowed = donors(self.rows, self.marks, recipient, self.key)
        write_table(copy_of(self.rows, self.marks, recipient, borrowed, self.key), path)


def _copies(ground: Ground, marks: Marks, key: bytes) -> AbstractContextManager[Copies]:
    """What writes the copies: the engine, where it can, so that nobody has to hold the rows."""
    by_engine = getattr(ground.source, "copies", None)
    if by_engine is None:
        return nullcontext(HeldCopies(ground.rows(), marks, key))
    columns = published_columns(ground.study, ground.source)
    made: AbstractContextManager[Copies] = by_engine(ground.whole_recoding(), columns, marks, key)
    return made


def _write_copies(
    folder: Path, ground: Ground, models: Sequence[PrivacyModel], made: Sequence[Copy], copies: Copies
) -> None:
    promised = follow_distances(ground.study, ground.classes, models)
    done = 0
    with progress.step("Writing copies", lambda: done / len(made)), ThreadPoolExecutor(1) as beside:
        checks = []
        for i, copy in enumerate(made):
            copies.write(i, folder / copy.file)
            checks.append(beside.submit(_measure, folder / copy.file, ground, promised, copy))
            done += 1
        for check in checks:
            check.result()


def _measure(path: Path, ground: Ground, models: Sequence[PrivacyModel], copy: Copy) -> None:
    models = [_widened(m, path, ground) for m in models]
    study, expected = ground.study, (copy.records, int((ground.linked.published > 0).sum()) + copy.classes_more)
    if any(m.attribute is not None for m in models):
        measure_release(path, study, models, ground.classes, expected)
        return
    limits, settings = [m.to_dict() for m in models], study.settings
    persons = study.person is not None
    found = verify(path, study.quasi, (), limits, None, persons, settings.threads, settings.memory)
    check_release(found, *expected, limits)


def _widened(model: PrivacyModel, path: Path, ground: Ground) -> PrivacyModel:
    """t-closeness compares with the whole table, from which a copy differs: no class of it can be farther from the copy than
    from the release by more than these two are apart (the triangle inequality)."""
    if not isinstance(model, TCloseness):
        return model
    settings = ground.study.settings
    with DuckDB(settings.threads, settings.memory) as engine:
        found = engine.open(f"{path}/*{path.suffix}" if path.is_dir() else path).group([model.attribute])
    domain = ground.classes.histograms[model.attribute].domain
    codes = domain.codes_of(found.domains[0].text)[found.codes[0]]
    own = np.bincount(codes, weights=found.records, minlength=len(domain)) / max(found.records.sum(), 1)
    released = ground.released(model.attribute)
    apart = float(np.abs(own - released / max(released.sum(), 1)).sum() / 2)
    return replace(model, t=min(model.t + apart, 1.0))


# What is reported.


def _result(ground: Ground, marks: Marks, made: Sequence[Copy]) -> Released:
    plan = ground.plan
    found = feasibility(ground.linked, marks.marking.k)
    after = marks.loss(plan.loss)
    levels, left_out = plan.recoding.levels, plan.suppressed
    notes = notes_of(ground, marks, {copy.name: copy.file for copy in made})
    return Released(None, found, tuple(made), marks.cost(), plan.loss, after, levels, left_out, notes)
