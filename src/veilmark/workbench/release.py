"""The verb release: anonymize, plan decoys and covers, write each recipient's copy, and record it in the ledger."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmark import progress
from veilmark.attack.crosscopy import Scope
from veilmark.errors import OptionError, StudyError, did_you_mean
from veilmark.ledger import Key, Ledger
from veilmark.ledger.publish import Publication, check_target, publishing
from veilmark.ledger.signing import Signer
from veilmark.ledger.store import OvertakenError
from veilmark.mark.advice import notes_of
from veilmark.mark.claimable import Claimable
from veilmark.mark.closeness import TooFarError, check_close, tightened
from veilmark.mark.code import derive
from veilmark.mark.copies import Copies, copies_of
from veilmark.mark.discover import Feasibility, feasibility
from veilmark.mark.linking import Ground
from veilmark.mark.members import why_few
from veilmark.mark.plan import Marks, fitting, plan_marks
from veilmark.mark.plant import donors
from veilmark.mark.record import public_entry, secret_entry
from veilmark.mark.request import Copy, ReleaseRequest, Terms
from veilmark.mark.rowmarks import keeping, with_row_marks
from veilmark.mark.sealing import Pool, fingerprint, pool_after, sealed_entry
from veilmark.mark.telling import told_apart
from veilmark.messages import param
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
from veilmark.privacy.unchanged import Unchanged
from veilmark.readable import Grid, Readable, Summary, count
from veilmark.study.columns import left_out_columns, unchanged_columns
from veilmark.study.opening import engine_of
from veilmark.study.study import Study
from veilmark.trace.shown import cover_key
from veilmark.veil.anonymize import all_models
from veilmark.veil.mondrian import Mondrian
from veilmark.veil.ola import Ola
from veilmark.veil.planning import follow_distances
from veilmark.veil.verify import Verified, check_release, verify
from veilmark.workbench.anonymize import measure_release
from veilmark.workbench.ledger import open_to_publish, plan_to_publish
from veilmark.yamlfile import read_yaml

File = str | os.PathLike[str]

CANDIDATES = ("classes", "records", "excluded")

KEPT = (KAnonymity, DistinctL, EntropyL, RecursiveL, Alpha, TCloseness)
"""The models that copies keep: a decoy class takes all values of a released class, and so is as diverse."""


@dataclass(frozen=True, eq=False)
class Released(Readable):
    """A release to several recipients, or, of a dry run, what it would be; `release` is its name in the ledger.

    `feasible` is None where there is no population to link to. `loss` is that of the release before it is marked,
    `loss_after` that of a copy, on average.
    """

    release: str | None
    feasible: Feasibility | None
    copies: tuple[Copy, ...]
    cost: Mapping[str, Any]
    loss: Mapping[str, float]
    loss_after: Mapping[str, float]
    levels: Mapping[str, int]
    suppressed: int
    notes: tuple[str, ...] = ()
    folder: str | None = None
    columns_left_out: tuple[str, ...] = ()
    """Columns that are not published because the study does not name them."""
    commitment: str | None = None
    unchanged: Mapping[str, Unchanged] = field(default_factory=dict)
    """Of the first copy, how many records each column that is published unchanged makes unique; nothing of a dry run."""
    claims: Claimable | None = None
    """What claims can show; None without decoys."""
    told: Scope | None = None
    """How well decoys can be told from real classes by what a copy shows; None without decoys."""

    def summary(self) -> Summary:
        """Without the numbers of decoys, which are the ledger's secret."""
        rows = [(copy.name, copy.records, copy.file) for copy in self.copies]
        made = f"Release {self.release}" if self.release else "A planned release, not made"
        where = [f"Written to {self.folder}."] if self.folder else []
        headline = f"{made}: {len(rows):,} copies, {count(self.suppressed, 'record')} suppressed."
        return Summary(headline, (Grid(("recipient", "records", "file"), rows),), (*self.notes, *where))

    def to_dict(self) -> dict[str, Any]:
        found = self.feasible
        return {
            "release": self.release,
            "min_link": None if found is None else found.min_link,
            "candidates": {name: 0 if found is None else getattr(found, name) for name in CANDIDATES},
            "feasibility": None if found is None else found.to_dict(),
            "cost": dict(self.cost),
            "levels": dict(self.levels),
            "suppressed": self.suppressed,
            "loss": dict(self.loss),
            "loss_after": dict(self.loss_after),
            "recipients": [copy.to_dict() for copy in self.copies],
            "columns_left_out": list(self.columns_left_out),
            "unchanged": {name: of.to_dict() for name, of in self.unchanged.items()},
            "claims": None if self.claims is None else self.claims.to_dict(),
            "told": None if self.told is None else self.told.to_dict(),
            "notes": list(self.notes),
            "output": self.folder,
            "commitment": self.commitment,
        }


def release(
    study: Study,
    request: ReleaseRequest,
    ledger: File | None = None,
    key: File | None = None,
    output: File | None = None,
    dry_run: bool = False,
    sign_key: File | None = None,
) -> Released:
    """Write a copy for each recipient, with decoys of its own, and record all of it in the ledger, signed by the operator
    whose private key is in the file `sign_key`.

    A dry run draws everything, by a key that is forgotten, and needs neither ledger, key nor output. The same seed, key and
    version of veilmark give the same copies.
    """
    models = all_models([KAnonymity(request.marking.k), *request.models], request.method)
    files = file_names(request.marking.recipients, request.form)
    _check(study, request, models)
    seed = str(secrets.randbits(64) if request.seed is None else request.seed)
    target = None if dry_run else _given(ledger, key, output)
    signer = None if sign_key is None else Signer.open(sign_key)
    secret_key = None if target is None else plan_to_publish(*target[:2])[1]
    with _to_its_end() as begun, engine_of(study) as engine:
        dry, strict = derive(bytes(32), f"dry run {seed}"), list(models)
        while not begun or not begun[-1].published:
            ground = Ground.prepare(
                engine, study, request.population, request.identity, request.marking, strict, request.method, seed
            )
            try:
                request = replace(request, marking=fitting(ground.linked, ground.marking or request.marking))
                # What cannot be carried is refused before a ledger or a key is made.
                marks = _tried(ground, request, models, dry)
                if target is None or secret_key is None:
                    return _result(ground, marks, [Copy.planned(marks, i, file) for i, file in enumerate(files)], dry)
                making = _Making(ground, request, tuple(models), seed, target, secret_key, signer)
                while not begun or not begun[-1].published:
                    with suppress(OvertakenError):  # Then decoys are drawn anew, beside those of the other release.
                        making.publish(files, begun)
            except TooFarError as far:
                strict = tightened(strict, far)
    return making.released(begun[-1])


def _tried(ground: Ground, request: ReleaseRequest, models: Sequence[PrivacyModel], key: bytes) -> Marks:
    """Marks as they may be drawn."""
    marks = plan_marks(ground.linked, request.marking, key, _whole(models), lambda: why_few(ground, request.marking.k))
    return _complete(marks, ground, models, key)


def _whole(models: Sequence[PrivacyModel]) -> bool:
    """Whether a decoy class must be as diverse as a released one, and so takes all values of one."""
    return any(m.attribute is not None for m in models)


def _complete(marks: Marks, ground: Ground, models: Sequence[PrivacyModel], key: bytes) -> Marks:
    """The marks with single records that some copies lack, where these are asked for; all copies keep t."""
    marks = _with_rows(marks, ground, models, key)
    check_close(ground, marks, models)
    return marks


def _with_rows(marks: Marks, ground: Ground, models: Sequence[PrivacyModel], key: bytes) -> Marks:
    """The marks with single records that some copies lack, where these are asked for."""
    if marks.marking.marks == "classes":
        return marks
    if ground.study.person is not None:
        raise StudyError(
            f"Row marks need one record per person, but {ground.study.name} has a person column. Use "
            f"{param('marks', 'classes')}."
        )
    if getattr(ground.source, "hold_classes", None) is not None:
        raise OptionError(f"Row marks do not work with sources in Spark. Use {param('marks', 'classes')}.")
    domains = {name: histogram.domain for name, histogram in ground.classes.histograms.items()}
    of_values = [m for m in follow_distances(ground.study, ground.classes, models) if m.attribute is not None]
    fits = keeping(of_values, ground.rows(), marks.linked, domains) if of_values else None
    return with_row_marks(marks, ground.rows(), key, fits)


@dataclass(eq=False)
class _Making:
    """A release that is ready to be drawn and written; `pool` and `result` are those of the last try."""

    ground: Ground
    request: ReleaseRequest
    models: tuple[PrivacyModel, ...]
    seed: str
    target: tuple[File, File, File]
    key: Key
    signer: Signer | None
    pool: Pool = field(init=False)
    result: Released = field(init=False)

    def publish(self, files: Sequence[str], begun: list[Publication]) -> None:
        """Draw, write and record it; `begun` is told when the ledger is."""
        ground, request, (ledger, key_file, folder) = self.ground, self.request, self.target
        book = Ledger.open(ledger) if Ledger.exists(ledger) else None
        self.pool = pool = pool_after(ground, request.marking, book, self.key, self.seed)
        own = release_key(self.key.subkey("release"), self.seed, fingerprint(ground, request.marking, pool))
        lasting = cover_key(self.key, pool.epoch)
        marks = plan_marks(
            ground.linked, request.marking, own, _whole(self.models), cover_key=lasting, pool=pool.classes
        )
        marks = _complete(marks, ground, self.models, lasting)
        made = [Copy.planned(marks, i, file) for i, file in enumerate(files)]
        people = [ground.decoys(marks, i, own) for i in range(len(made))]
        public = public_entry(request, ground, self.models, made, self.seed, Claimable.of(marks))
        secret = secret_entry(ground, marks, people, sealed_entry(ground, request.marking, pool, own), own, pool.epoch)
        self.result = _result(ground, marks, [replace(copy, file=str(Path(folder) / copy.file)) for copy in made], own)
        with copies_of(ground, marks, own) as copies:
            book, _ = open_to_publish(ledger, key_file, self.key)  # as late as can be
            with publishing(book, self.key, folder, public, secret, None, self.signer, pool.beside) as doing:
                begun.append(doing)
                unchanged = _write_copies(doing.folder, ground, self.models, made, copies)
                self.result = replace(self.result, unchanged=unchanged)

    def released(self, doing: Publication) -> Released:
        """What was published."""
        notes = (*self.result.notes, *self.pool.notes(doing.digests))
        result = replace(self.result, release=doing.release, notes=notes, commitment=doing.commitment)
        return replace(result, folder=str(self.target[2]))


@contextmanager
def _to_its_end() -> Iterator[list[Publication]]:
    """Ctrl-C comes too late once a release that was begun is published: the rest is done as if it had not been pressed."""
    begun: list[Publication] = []
    try:
        yield begun
    except KeyboardInterrupt:
        if not any(doing.published for doing in begun):
            raise


def release_key(secret: bytes, seed: str, drawn_from: str) -> bytes:
    """The key of one release. What marks are drawn from and for whom is part of it, so that the same seed gives independent
    marks for other recipients or other data."""
    return derive(secret, f"{seed} {drawn_from}")


def _given(ledger: File | None, key: File | None, output: File | None) -> tuple[File, File, File]:
    """Where to publish; said before the work is done."""
    if ledger is None or key is None or output is None:
        raise OptionError(
            f"Give the place to publish: {param('ledger')}, {param('key')} and {param('output')}. Only a dry run "
            f"({param('dry_run', True)}) needs none of them."
        )
    check_target(output)
    return ledger, key, output


def _check(study: Study, request: ReleaseRequest, models: Sequence[PrivacyModel]) -> None:
    if not study.quasi:
        raise StudyError(
            f"{study.name} has no quasi-identifier, so records cannot be linked. Give at least one column the "
            "role quasi."
        )
    check_attributes(models, study.sensitive)
    beyond = [m for m in models if not isinstance(m, KEPT)]
    if beyond:
        raise OptionError(
            f"'{beyond[0]}' cannot be guaranteed for copies, because they lack some classes. Remove this condition."
        )
    if not isinstance(request.method, Ola | Mondrian) or (
        isinstance(request.method, Mondrian) and request.method.relaxed
    ):
        raise OptionError(
            "Copies need OLA or strict Mondrian. Overlapping labels would reveal which records are decoys."
        )
    _check_population(request)
    strangers = [name for name in request.terms if name not in request.marking.recipients]
    if strangers:
        known = did_you_mean(strangers[0], request.marking.recipients)
        raise OptionError(f"There are terms for '{strangers[0]}', who is not a recipient.{known}")


def _check_population(request: ReleaseRequest) -> None:
    """Decoys are persons of a population."""
    if request.marking.decoys and (request.population is None or not request.identity):
        given = {"population": request.population is not None, "identity": bool(request.identity)}
        missing = [param(name) for name, is_given in given.items() if not is_given]
        raise OptionError(
            "Decoys are persons of a population, such as a register of voters. They need the population and the "
            f"columns that identify a person in it. {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Give {'it' if len(missing) == 1 else 'both'}, or "
            f"release without decoys: {param('decoys', 0)}, with {param('covers')} or {param('collusion')}."
        )
    if request.population is None and request.identity:
        raise OptionError(
            f"{param('identity')} names columns of the population, but there is no {param('population')}. Omit it."
        )
    if request.population is None and request.marking.strategy == "risk":
        raise OptionError(
            f"{param('strategy', 'risk')} needs {param('population')}, because the risk of a class comes from "
            "linking. Use size or random."
        )


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
        raise OptionError(f"'{path}' must give some of {', '.join(sorted(known))} for each recipient.")
    strangers = [name for name in content if str(name) not in recipients]
    if strangers:
        raise OptionError(
            f"'{path}' has terms for '{strangers[0]}', who is not a "
            f"recipient.{did_you_mean(str(strangers[0]), recipients)}"
        )
    return {str(name): Terms(**{k: str(v) for k, v in given.items()}) for name, given in content.items()}


# Copies are made one at a time. Each file is measured anew while the next is made: it must keep what the release promises,
# decoys included.


def _write_copies(
    folder: Path, ground: Ground, models: Sequence[PrivacyModel], made: Sequence[Copy], copies: Copies
) -> Mapping[str, Unchanged]:
    """Write all copies, and measure each; the records of the first one that columns published unchanged make unique."""
    promised = follow_distances(ground.study, ground.classes, models)
    done = 0
    with progress.step("Writing copies", lambda: done / len(made)), ThreadPoolExecutor(1) as beside:
        checks = []
        for i, copy in enumerate(made):
            copies.write(i, folder / copy.file)
            columns = unchanged_columns(ground.study, ground.source.columns) if i == 0 else []
            checks.append(beside.submit(_measure, folder / copy.file, ground, promised, copy, columns))
            done += 1
        measured = [check.result() for check in checks]
    sensitive = ground.study.sensitive
    return {name: replace(of, sensitive=name in sensitive) for name, of in measured[0].unchanged.items()}


def _measure(
    path: Path, ground: Ground, models: Sequence[PrivacyModel], copy: Copy, unchanged: Sequence[str]
) -> Verified:
    study, expected = ground.study, (copy.records, int((ground.linked.published > 0).sum()) + copy.classes_more)
    if any(m.attribute is not None for m in models):
        return measure_release(path, study, models, ground.classes, expected, unchanged=unchanged)
    limits, settings = [m.to_dict() for m in models], study.settings
    persons = study.person is not None
    found = verify(path, study.quasi, (), limits, None, persons, settings.threads, settings.memory, unchanged)
    check_release(found, *expected, limits)
    return found


# What is reported.


def _told(ground: Ground, marks: Marks, key: bytes) -> Scope | None:
    """How well decoys can be told: by all that copies show, where the rows are held, else by labels and sizes."""
    if getattr(ground.source, "hold_classes", None) is not None:
        return told_apart(marks, None, np.empty(0, dtype=np.int64))
    borrowed = [donors(ground.rows(), marks, i, key) for i in range(len(marks.decoys))] if marks.marking.decoys else []
    return told_apart(marks, ground.rows(), np.concatenate([np.empty(0, dtype=np.int64), *borrowed]))


def _result(ground: Ground, marks: Marks, made: Sequence[Copy], key: bytes) -> Released:
    plan = ground.plan
    found = None if ground.population is None else feasibility(ground.linked, marks.marking.k)
    after = marks.loss(plan.loss)
    levels, left_out = plan.recoding.levels, plan.suppressed
    told = _told(ground, marks, key)
    notes = notes_of(ground, marks, {copy.name: copy.file for copy in made}, told)
    unnamed = left_out_columns(ground.study, ground.source.columns)
    amounts = (marks.cost(), plan.loss, after, levels, left_out)
    claims = Claimable.of(marks)
    return Released(None, found, tuple(made), *amounts, notes, columns_left_out=unnamed, claims=claims, told=told)
