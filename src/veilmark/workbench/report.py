"""The verb report: what is known of a table, its release and its recipients, measured again and put on one page."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilmark.attack import ATTACKS
from veilmark.errors import (
    DataError,
    OptionError,
    VeilmarkError,
    VeilmarkWarning,
    WeightsError,
    as_address,
    is_address,
    listing,
)
from veilmark.hierarchy import resolve
from veilmark.ledger import Release
from veilmark.ledger.files import digest, digests, new_private_file
from veilmark.ledger.keys import OPEN_TO_OTHERS
from veilmark.messages import PLAIN, param, spell, template_of
from veilmark.output import refuse_address, refuse_inputs, write_table, write_text
from veilmark.privacy.measures import Measures
from veilmark.report.document import (
    Book,
    CopyCheck,
    File,
    Promise,
    Report,
    Shared,
    Slices,
    Subject,
    check_packages,
    render,
)
from veilmark.score.scores import ScoreResult
from veilmark.scratch import Scratch
from veilmark.study.columns import unnamed_columns
from veilmark.study.opening import engine_of, open_other, open_source, source_classes
from veilmark.study.study import Study
from veilmark.tables.classes import ClassTable
from veilmark.utility.view import UtilityView
from veilmark.veil.anonymize import read_release
from veilmark.veil.generalized import Generalized, generalized_by_labels
from veilmark.veil.sliced import Sliced, is_folder_of_tables, is_gid
from veilmark.veil.verify import FAULTS, WorstClass, verify
from veilmark.workbench import ledger as verbs
from veilmark.workbench.anonymize import written_columns
from veilmark.workbench.attack import Attacked, attack, check_attacks
from veilmark.workbench.measure import measure, require
from veilmark.workbench.score import score
from veilmark.workbench.utility import view_utility

if TYPE_CHECKING:
    from veilmark.study.ledger import Ledger

Place = str | os.PathLike[str]

FEW = 10
"""Shares of values that fewer records of the source have are not shown."""

DETAILS = ("attributes", "called_in", "population", "min_linked")
"""What is told of an attack. Of a copy, the rows that fit nobody are its decoys, and their number is the ledger's secret."""

MOVED = "each copy is compared with itself, marks included; this limit allows for the difference from the release"


@dataclass(frozen=True)
class Wanted:
    """What a report is to be about, beside the study's source; `attacks` None: all that are possible. A release that is
    `held` in memory is in a file only to be measured."""

    release: Place | None = None
    ledger: Place | None = None
    id: str | None = None
    copies: Place | None = None
    key: Place | None = None
    auditor: bool = False
    attacks: Sequence[str] | None = None
    require: Sequence[str] = ()
    title: str | None = None
    seed: int = 1
    held: bool = False


def report(study: Study, output: Place, wanted: Wanted | None = None) -> Report:
    """Write a report, a web page. The auditor's variant names decoys, so a new one is for its owner alone."""
    wanted = wanted or Wanted()
    target = Path(output)
    _check(study, target, wanted)
    made = make_report(study, wanted)
    page = render(made)
    if made.decoys is None or target.exists():
        write_text(target, page)
    else:
        with new_private_file(target) as temporary:
            temporary.write_text(page, encoding="utf-8")
    return made


def report_release(
    study: Study,
    output: Place,
    release: Any,
    ledger: Ledger | None,
    release_id: str | None,
    copies: Place | None,
    auditor: bool,
    attacks: Sequence[str] | None,
    require: Sequence[str],
    title: str | None,
    seed: int,
) -> Report:
    """Write a report on a release that is in files, in a frame, or in the result that holds it."""
    place, key = (None, None) if ledger is None else (ledger.place, ledger.key)
    with _in_files(release) as (path, held):
        about = (path, place, release_id, copies, key, auditor, attacks, require, title, seed, held)
        return report(study, output, Wanted(*about))


@contextmanager
def _in_files(release: Any) -> Iterator[tuple[Place | None, bool]]:
    """Where a release can be read from files, and whether these are gone afterwards."""
    written = getattr(release, "output", None)
    if release is None or written is not None or isinstance(release, str | os.PathLike):
        yield written or release, False
        return
    with Scratch() as folder:
        if isinstance(release, Sliced):
            release.write(folder / "release")
            yield folder / "release", True
        else:
            write_table(read_release(release, None), folder / "release.parquet")
            yield folder / "release.parquet", True


def make_report(study: Study, wanted: Wanted) -> Report:
    """All that a report says; what the verbs warn of becomes its notes."""
    notes: list[str] = []
    with _noted(notes):
        book = None if wanted.ledger is None else _book(study, wanted.ledger, wanted, notes)
        subject, measured = _subject(study), measure(study)
        scored = _scored(study, notes)
        shared = None if wanted.release is None else _shared(study, Path(wanted.release), wanted, scored, notes)
        attacked = None if shared is None else _attacked(study, shared, wanted, notes)
        decoys = None
        if wanted.auditor and wanted.ledger is not None and book is not None:
            decoys = verbs.decoys(wanted.ledger, book.release.id, wanted.key)
    if shared is not None and book is not None:
        shared = replace(shared, copy_of=_owner(shared.files, book.release))
    time = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    title = wanted.title or f"Sharing {study.label}"
    told = tuple(dict.fromkeys(spell(note, PLAIN) for note in notes))
    return Report(title, time, subject, measured, scored, shared, attacked, book, decoys, told)


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VeilmarkWarning)
        yield
    notes += [template_of(w.message) for w in caught if issubclass(w.category, VeilmarkWarning)]


def _check(study: Study, output: Path, wanted: Wanted) -> None:
    """What cannot be is said before the work is done."""
    check_packages()
    refuse_address(output)
    if output.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"The report '{output}' is a web page: give it a name that ends in .html.")
    if not output.absolute().parent.is_dir():
        raise OptionError(
            f"'{output}' cannot be written: there is no folder '{output.parent}'. Create the folder first."
        )
    places = [study.source()[0], wanted.release, wanted.ledger, wanted.key]
    refuse_inputs(output, [Path(p) if isinstance(p, os.PathLike) else p for p in places])
    if wanted.ledger is None:
        called = {"id": "release", "copies": "copies", "key": "key", "auditor": "auditor"}
        lost = [option for name, option in called.items() if getattr(wanted, name)]
        if lost:
            raise OptionError(
                f"{param(lost[0])} needs a release in a ledger. Name the ledger with {param('ledger')}, or omit it."
            )
    if wanted.auditor and output.exists() and output.stat().st_mode & OPEN_TO_OTHERS:
        raise OptionError(f"Other users can read '{output}', but the auditor's report names decoys. Name a new file.")
    if wanted.auditor and wanted.key is None:
        raise OptionError(
            f"The auditor's report names decoys, which are encrypted. Give the ledger's key with {param('key')}."
        )
    if wanted.release is None and (wanted.attacks or wanted.require):
        which = param("attacks" if wanted.attacks else "require")
        raise OptionError(f"{which} needs a release, but none is named. Name its file or folder, or omit {which}.")
    if wanted.release is not None and is_address(wanted.release):
        raise DataError(
            f"'{as_address(str(wanted.release))}' is a URL, not a file path. Copy the release to a file first."
        )
    if wanted.release is not None and not os.path.exists(wanted.release):
        raise DataError(f"There is no release '{wanted.release}'. Name its file, or its folder of tables.")
    if wanted.require and wanted.release is not None and os.path.isdir(wanted.release):
        raise OptionError(
            f"{param('require')} needs a release in one file, but '{wanted.release}' is a folder. Omit it; the "
            "report shows the folder's k."
        )
    if wanted.copies is not None and not os.path.isdir(wanted.copies):
        raise DataError(f"There is no folder '{wanted.copies}'. Name the folder of the recipients' copies.")
    if wanted.attacks:
        check_attacks(study, wanted.attacks, 1, 1)


# The source.


def _subject(study: Study) -> Subject:
    """The study's columns, with how many labels the levels of each quasi-identifier have."""
    with engine_of(study) as engine:
        classes = source_classes(open_source(engine, study), study)
    labels = {}
    for name, domain in zip(classes.columns, classes.domains, strict=True):
        levels = resolve(study.spec.attributes[name].hierarchy, domain, name, study.folder)
        labels[name] = tuple(len(of) for of in levels.labels)
    return Subject.of(study, labels)


def _scored(study: Study, notes: list[str]) -> ScoreResult | None:
    """The source's scores, where the study has weights."""
    bare = [name for name in study.sensitive if not study.spec.attributes[name].weights]
    if bare or not study.sensitive:
        lacking = f"; it has none for {listing(bare)}" if bare else ""
        notes.append(f"No scores: the study needs weights for its sensitive values{lacking}.")
        return None
    return score(study)


# A release: a file, or a folder of tables.


def _shared(study: Study, release: Path, wanted: Wanted, scored: ScoreResult | None, notes: list[str]) -> Shared:
    names = [*study.quasi, *study.sensitive]
    if is_folder_of_tables(release):
        tables = Sliced.open(release)
        held = {*tables.quasi.column_names, *(name for group in tables.groups for name in group)}
        notes.append(
            "The loss of a folder of tables cannot be computed from its files, because their rows are in "
            "different orders."
        )
        given = (_absent(names, held), _exposed(study, held))
        unnamed = unnamed_columns(study, sorted(name for name in held if not is_gid(name)))
        return Shared(*_named(release, wanted), *given, slices=_slices(study, tables), unnamed=unnamed)
    with engine_of(study) as engine:
        listed = list(open_other(engine, study, release, ()).columns)
    columns = set(listed)
    part = _within(study, columns)
    measured = measure(part, release)
    return Shared(
        *_named(release, wanted),
        _absent(names, columns),
        _exposed(study, columns),
        measures=measured,
        agreed=_agreed(part, release, measured, notes),
        required=tuple(require(measured, wanted.require)),
        utility=_told(view_utility(study, release, seed=wanted.seed)),
        scores=None if scored is None else _released_scores(part, release, notes),
        unnamed=unnamed_columns(study, listed),
        generalized=_generalized(study, release, [name for name in study.quasi if name in columns]),
    )


def _generalized(study: Study, release: Path, names: Sequence[str]) -> dict[str, Generalized]:
    """How far each quasi-identifier of a release was generalized, with labels before and after that many records have."""
    if not names:
        return {}
    found = {}
    with engine_of(study) as engine:
        before = source_classes(open_source(engine, study), study)
        after = ClassTable.build(open_other(engine, study, release, ()), names)
    for i, name in enumerate(names):
        place = before.columns.index(name)
        levels = resolve(study.spec.attributes[name].hierarchy, before.domains[place], name, study.folder)
        labels = after.domains[i].text, after.value_records(i)
        found[name] = generalized_by_labels(levels, before.value_records(place), *labels, FEW)
    return found


def _named(release: Path, wanted: Wanted) -> tuple[str, tuple[File, ...]]:
    """What the report calls a release, and its files."""
    return ("the release", ()) if wanted.held else (release.name, _files(release))


def _files(release: Path) -> tuple[File, ...]:
    """A file, or those in a folder."""
    if not release.is_dir():
        return (_file(release, release.name),)
    return tuple(_file(release / name, name) for name in digests(release))


def _file(path: Path, name: str) -> File:
    return File(name, path.stat().st_size, digest(path))


def _absent(names: Sequence[str], there: set[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in there)


def _exposed(study: Study, there: set[str]) -> tuple[str, ...]:
    """The direct identifiers, the person's included, that a release has and not as pseudonyms."""
    direct = dict.fromkeys([*study.direct, *([study.person] if study.person else [])])
    return tuple(name for name in direct if name in there and name not in study.pseudonyms)


def _within(study: Study, columns: set[str]) -> Study:
    """The study on the columns that a release has; those that it does not name are there as well."""
    kept = {name: a for name, a in study.spec.attributes.items() if name in columns}
    person = study.person if study.person in columns else None
    content = {"attributes": kept, "person": person, "unnamed": "other"}
    return replace(study, spec=study.spec.model_copy(update=content))


def _agreed(study: Study, release: Path, measured: Measures, notes: list[str]) -> bool | None:
    """Whether plain SQL on the file finds the same; None where that reads or counts other things."""
    if study.person is not None or study.missing:
        return None
    try:
        second = verify(release, study.quasi, study.sensitive, threads=study.settings.threads)
    except VeilmarkError:
        notes.append(
            "Only one program measured the release. The second one reads only CSV and Parquet files written by "
            "veilmark."
        )
        return None
    first = measured.attributes
    pairs: list[tuple[float, float]] = [(measured.records, second.records), (measured.classes, second.classes)]
    pairs += [(measured.k, second.k)]
    for name, of in first.items():
        pairs += [(of.diversity.distinct, second.distinct[name]), (of.diversity.entropy, second.entropy[name])]
        pairs += [(of.t_by_distance["equal"], second.t[name]), (of.alpha, second.alpha[name])]
    return all(math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) for one, other in pairs)


def _told(view: UtilityView) -> UtilityView:
    """A view without the shares of values that few have."""
    least = FEW / max(view.records[0], 1)
    marginals = {}
    for name, of in view.marginals.items():
        shown = {value: change for value, change in of.shares.items() if change.before >= least}
        marginals[name] = replace(of, shares=shown)
    return replace(view, marginals=marginals)


def _released_scores(study: Study, release: Path, notes: list[str]) -> ScoreResult | None:
    """The release, scored as a table of its own by the study's weights."""
    if not study.sensitive:
        notes.append("The release has no score: none of the sensitive attributes is in it.")
        return None
    own = replace(study, spec=study.spec.model_copy(update={"source": str(release.resolve())}))
    try:
        with _noted([]):  # Values that have a weight and are not in it were suppressed.
            return score(own)
    except WeightsError as error:
        notes.append(f"The release has no score. {template_of(error)}")
        return None


def _slices(study: Study, tables: Sliced) -> Slices:
    quasi = [name for name in study.quasi if name in tables.quasi.column_names]
    classes = _sizes(tables.quasi, quasi)
    groups = []
    for names, table in zip(tables.groups, tables.sensitive, strict=True):
        sizes = _sizes(table, [table.column_names[0]])
        groups.append({"attributes": list(names), "slices": len(sizes), "smallest": int(sizes.min(initial=len(table)))})
    k = int(classes.min(initial=len(tables)))
    return Slices(len(tables), len(classes), k, tables.linked, tuple(groups))


def _sizes(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """How many rows have each combination of some columns' values."""
    if not columns:
        return np.array([len(table)])
    sizes: np.ndarray = table.group_by(list(columns)).aggregate([([], "count_all")])["count_all"].to_numpy()
    return sizes


def _attacked(study: Study, shared: Shared, wanted: Wanted, notes: list[str]) -> Attacked | None:
    """The attacks on a release. What hinders those that nobody asked for is a note, not an error."""
    if wanted.attacks is not None and not wanted.attacks:
        return None
    possible = study.quasi and set(study.sensitive) - set(shared.lacking)
    if wanted.attacks is None and not possible:
        notes.append("No attacks: they need quasi-identifiers and a sensitive attribute that is in the release.")
        return None
    try:
        found = attack(study, wanted.release, wanted.attacks or ATTACKS, seed=wanted.seed)
    except DataError as error:
        if wanted.attacks is not None:
            raise
        notes.append(f"No attacks were tried. {template_of(error)}")
        return None
    told = {}
    for name, of in found.attacks.items():
        told[name] = replace(of, details={n: v for n, v in of.details.items() if n in DETAILS})
    return replace(found, release=shared.name, attacks=told)


# The ledger.


def _book(study: Study, where: Place, wanted: Wanted, notes: list[str]) -> Book:
    found = verbs.verify(where, wanted.key)
    chosen = _chosen(where, wanted)
    if chosen.public.get("study", study.name) != study.name:
        notes.append(f"The ledger says that the release was made with '{chosen.public['study']}', not '{study.name}'.")
    if chosen.status != "published":
        notes.append(f"Release {chosen.id} is {chosen.status}: nobody was given a copy.")
    copies = None if wanted.copies is None else _copies(study, Path(wanted.copies), chosen)
    return Book(verbs.open_to_read(where).label, found, chosen, copies)


def _chosen(where: Place, wanted: Wanted) -> Release:
    """The release asked for, or the newest."""
    if wanted.id is not None:
        return verbs.release(where, wanted.id, wanted.key)
    published = [r for r in verbs.releases(where, wanted.key) if r.status == "published"]
    if not published:
        raise OptionError(f"The ledger '{verbs.open_to_read(where).label}' has no published release to report on.")
    return published[-1]


def _owner(files: Sequence[File], release: Release) -> str | None:
    """Whose copy a file is, by its digest."""
    here = {f.sha256 for f in files}
    names = [name.partition("/")[0] for name, known in release.digests.items() if known in here]
    return _recipient(release, names[0]) or names[0] if names else None


def _recipient(release: Release, file: str) -> str | None:
    listed = [r for r in release.public.get("recipients", []) if isinstance(r, dict)]
    return next((str(r["name"]) for r in listed if r.get("file") == file), None)


def _copies(study: Study, folder: Path, release: Release) -> tuple[CopyCheck, ...]:
    """Each copy by itself; one in several files, in a folder, is checked and measured as a whole."""
    names = dict.fromkeys(name.partition("/")[0] for name in release.digests)
    return tuple(_copy(study, folder, release, name) for name in names)


def _copy(study: Study, folder: Path, release: Release, name: str) -> CopyCheck:
    who, path = _recipient(release, name), folder / name
    known = {file: sha for file, sha in release.digests.items() if file.partition("/")[0] == name}
    if not path.exists():
        return CopyCheck(name, who, "not there")
    here = {f"{name}/{part}": sha for part, sha in digests(path).items()} if path.is_dir() else {name: digest(path)}
    if here != known:
        return CopyCheck(name, who, "changed")
    there = written_columns(path)
    quasi, sensitive = ([n for n in names if n in there] for names in (study.quasi, study.sensitive))
    limits = release.public.get("parameters", {}).get("models", [])
    limits = [limit for limit in limits if limit.get("attribute") in (None, *sensitive)]
    settings, persons = study.settings, study.person is not None
    found = verify(path, quasi, sensitive, limits, None, persons, settings.threads, settings.memory)
    promises = tuple(_promise(of) for of in found.limits)
    unnamed = unnamed_columns(study, there)
    return CopyCheck(name, who, "as published", found.records, found.classes, found.k, promises, unnamed)


def _promise(found: WorstClass) -> Promise:
    """Whether a copy keeps a limit. Its t may be a little over: marks move the table that its classes are compared with."""
    limit, worst = found.limit, found.worst
    shown = found.to_dict()["found"]
    if worst is None or found.unchecked:
        return Promise(limit, shown, None, found.unchecked or "it has no class")
    broken = worst < limit["k"] if limit["model"] == "k" else FAULTS[limit["model"]][0](worst, limit)
    if broken and limit["model"] == "t":
        return Promise(limit, shown, None, MOVED)
    return Promise(limit, shown, not broken)
