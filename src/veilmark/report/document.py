"""The report: all that was found out about a table, its release and its recipients, as one page that needs nothing else.

The page has no script, loads nothing, and holds its own content as JSON. It shows numbers of groups, never a record.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from veilmark import __version__
from veilmark.attack import RULE, verdict
from veilmark.errors import VeilmarkError
from veilmark.ledger import Release, Verification
from veilmark.messages import PLAIN, said_by, spell_all
from veilmark.privacy.measures import Measures
from veilmark.privacy.require import Requirement
from veilmark.readable import Readable, finite
from veilmark.report import attack_chart, charts, score_charts, utility_charts
from veilmark.score.scores import ScoreResult
from veilmark.study.study import Study
from veilmark.utility.view import UtilityView
from veilmark.veil.generalized import Generalized

if TYPE_CHECKING:
    from veilmark.workbench.attack import Attacked

HOLDS, FAILS, SAYS = "holds", "fails", "says"

SCORED = ("records", "x", "normalize", "cap", "scores", "tkl_parts")

PROMISES = {
    "k": "k ≥ {k}",
    "k_map": "k-map ≥ {k}",
    "delta_presence": "presence from {low} to {high}",
    "l": "distinct l of {attribute} ≥ {l}",
    "entropy_l": "entropy l of {attribute} ≥ {l}",
    "recursive_l": "recursive ({c}, {l})-diversity of {attribute}",
    "alpha": "α of {attribute} ≤ {alpha}",
    "t": "t of {attribute} ≤ {t}, {distance} distance",
    "beta": "β of {attribute} ≤ {beta}",
    "enhanced_beta": "enhanced β of {attribute} ≤ {beta}",
    "delta_disclosure": "δ of {attribute} < {delta}",
}


class Finding(NamedTuple):
    """A line of the summary: whether something `holds`, `fails`, or is only said (`says`)."""

    status: str
    text: str


class File(NamedTuple):
    """A file and its SHA-256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Attribute:
    """A column of the study; `labels` are how many different ones each level of its hierarchy has."""

    name: str
    role: str
    hierarchy: str | None
    labels: tuple[int, ...]
    distance: str | None
    weighted: bool


@dataclass(frozen=True)
class Subject:
    """What the report is about: the study, its source and its columns."""

    study: str
    source: str
    person: str | None
    attributes: tuple[Attribute, ...]
    unnamed: str = "leave-out"
    """What becomes of columns that the study does not name."""

    @classmethod
    def of(cls, study: Study, labels: Mapping[str, tuple[int, ...]]) -> Subject:
        columns = []
        for name, spec in study.spec.attributes.items():
            sensitive = spec.role == "sensitive"
            kind = next(iter(spec.hierarchy.model_dump())) if spec.hierarchy else None
            distance = spec.distance if sensitive else None
            columns.append(Attribute(name, spec.role, kind, labels.get(name, ()), distance, bool(spec.weights)))
        return cls(study.name, study.label, study.person, tuple(columns), study.spec.unnamed)


@dataclass(frozen=True)
class Slices:
    """A folder of tables, measured: its persons, the classes of their quasi-identifiers and, for each table of sensitive
    attributes, how many slices it has and how many persons the smallest."""

    persons: int
    classes: int
    k: int
    linked: bool
    groups: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Shared:
    """The release that is looked at: a file, or a folder of tables (`slices`).

    `lacking` are quasi-identifiers and sensitive attributes that it does not have, `exposed` direct identifiers that it has,
    `unnamed` columns that it has and that have no role in the study.
    `agreed` says whether a second program found the same numbers, None where it could not look; `copy_of` whose copy it is,
    by the ledger.
    """

    name: str
    files: tuple[File, ...]
    lacking: tuple[str, ...]
    exposed: tuple[str, ...] = ()
    measures: Measures | None = None
    slices: Slices | None = None
    agreed: bool | None = None
    required: tuple[Requirement, ...] = ()
    utility: UtilityView | None = None
    scores: ScoreResult | None = None
    copy_of: str | None = None
    unnamed: tuple[str, ...] = ()
    generalized: Mapping[str, Generalized] = field(default_factory=dict)

    @property
    def k(self) -> int | None:
        found = self.measures or self.slices
        return None if found is None else found.k

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "files": [f._asdict() for f in self.files],
            "copy_of": self.copy_of,
            "lacking": list(self.lacking),
            "exposed": list(self.exposed),
            "unnamed": list(self.unnamed),
            "generalized": {name: asdict(of) for name, of in self.generalized.items()},
            "measures": self.measures.to_dict() if self.measures else None,
            "slices": asdict(self.slices) if self.slices else None,
            "agreed": self.agreed,
            "required": [r.to_dict() for r in self.required],
            "utility": self.utility.to_dict() if self.utility else None,
            "scores": score_dict(self.scores),
        }


@dataclass(frozen=True)
class Promise:
    """A limit that a release was made to keep, and what a copy shows of it; `kept` is None where it does not show it."""

    limit: Mapping[str, Any]
    found: Any
    kept: bool | None
    why: str | None = None

    @property
    def text(self) -> str:
        return PROMISES.get(self.limit["model"], "{model}").format(**self.limit)

    def to_dict(self) -> dict[str, Any]:
        return {"promise": self.text, "found": self.found, "kept": self.kept, "why": self.why}


@dataclass(frozen=True)
class CopyCheck:
    """A recipient's file, compared with its digest in the ledger (`status`: as published, changed, not there) and, where it
    is as published, measured."""

    file: str
    recipient: str | None
    status: str
    records: int | None = None
    classes: int | None = None
    k: int | None = None
    promises: tuple[Promise, ...] = ()
    unnamed: tuple[str, ...] = ()
    """Columns of the file that have no role in the study."""

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"promises": [p.to_dict() for p in self.promises]}


@dataclass(frozen=True)
class Book:
    """The ledger, and what it says to anybody of one release; `copies` is None where they were not looked at."""

    ledger: str
    verified: Verification
    release: Release
    copies: tuple[CopyCheck, ...] | None = None

    @property
    def public(self) -> dict[str, Any]:
        """As `veilmark ledger show` prints it, less where the files lay."""
        return {name: value for name, value in self.release.to_dict().items() if name != "folder"}

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """What the release was made by, a line each; the promises have a table of their own."""
        given = self.release.public.get("parameters", {})
        return [(name, _plain(value)) for name, value in given.items() if name != "models" and value not in (None, {})]

    @property
    def promises(self) -> list[str]:
        models = self.release.public.get("parameters", {}).get("models", [])
        return [Promise(limit, None, None).text for limit in models]

    @property
    def recipients(self) -> list[dict[str, Any]]:
        listed = self.release.public.get("recipients", [])
        return [r if isinstance(r, dict) else {"name": r} for r in listed]

    def to_dict(self) -> dict[str, Any]:
        copies = None if self.copies is None else [c.to_dict() for c in self.copies]
        return {
            "ledger": self.ledger,
            "verified": self.verified.to_dict(),
            "release": self.public,
            "copies": copies,
        }


@dataclass(frozen=True)
class Report(Readable):
    """All that a report says. `decoys` are there in the auditor's variant alone."""

    title: str
    time: str
    subject: Subject
    measures: Measures
    scores: ScoreResult | None = None
    shared: Shared | None = None
    attacked: Attacked | None = None
    book: Book | None = None
    decoys: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    notes: tuple[str, ...] = ()

    @property
    def guessed(self) -> dict[str, Any]:
        """Success and control by attribute, of the attacks that guess values."""
        tried = self.attacked.attacks if self.attacked else {}
        return {name: own for name, of in tried.items() if (own := of.details.get("attributes"))}

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the page, and as the command line prints it as JSON."""
        content = {
            "veilmark": __version__,
            "title": self.title,
            "time": self.time,
            "confidential": self.decoys is not None,
            "findings": [f._asdict() for f in findings(self)],
            "study": asdict(self.subject),
            "measures": self.measures.to_dict(),
            "scores": score_dict(self.scores),
            "release": self.shared.to_dict() if self.shared else None,
            "attacks": self.attacked.to_dict() if self.attacked else None,
            "ledger": self.book.to_dict() if self.book else None,
            "notes": list(self.notes),
        }
        if self.decoys is not None:
            content["decoys"] = {name: [dict(row) for row in rows] for name, rows in self.decoys.items()}
        plain: dict[str, Any] = spell_all(finite(content), PLAIN)
        return plain


def score_dict(scores: ScoreResult | None) -> dict[str, Any] | None:
    """Scores without the records and classes that carry them, which are somebody's."""
    if scores is None:
        return None
    return {name: value for name, value in scores.to_dict().items() if name in SCORED}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(of)}" for name, of in value.items())
    if isinstance(value, list | tuple):
        return " to ".join(map(_plain, value)) if len(value) == 2 else ", ".join(map(_plain, value))
    return str(value)


# The summary.


def findings(report: Report) -> list[Finding]:
    """What a reader should know first."""
    return [*_of_columns(report), *_of_source(report), *_of_shared(report), *_of_attacks(report), *_of_book(report)]


def _of_columns(report: Report) -> list[Finding]:
    """Whether a column is published that has no role in the study, so that nobody judged it."""
    copies = report.book.copies if report.book and report.book.copies else ()
    in_files = [*(report.shared.unnamed if report.shared else ()), *(name for copy in copies for name in copy.unnamed)]
    if in_files:
        named = ", ".join(dict.fromkeys(in_files))
        return [Finding(FAILS, f"The published files have columns without a role in the study: {named}.")]
    if report.subject.unnamed == "other" and report.measures.unseen:
        named = ", ".join(report.measures.unseen)
        return [Finding(FAILS, f"The study publishes columns that have no role in it (unnamed: other): {named}.")]
    if report.shared is None and not copies:
        return []
    return [Finding(HOLDS, "Every published column has a role in the study.")]


def _of_source(report: Report) -> list[Finding]:
    found = report.measures
    who = "records" if found.persons is None else "persons"
    size = f"{found.records:,} records" + ("" if found.persons is None else f" of {found.persons:,} persons")
    alone = f", and {found.uniques:,} {who} stand alone in theirs" if found.uniques else ""
    text = f"The source has {size} in {found.classes:,} classes. Its smallest class has {found.k:,}{alone}."
    return [Finding(SAYS, text)]


def _of_shared(report: Report) -> list[Finding]:
    shared = report.shared
    if shared is None:
        return []
    lines = [
        Finding(SAYS, f"The smallest class of the release has {_smallest(report, shared)}, measured from its files.")
    ]
    named = ", ".join(shared.exposed)
    hidden = f"still holds the direct identifiers {named}" if named else "holds none of the study's direct identifiers"
    lines.append(Finding(FAILS if named else HOLDS, f"The release {hidden}."))
    if shared.agreed is not None:
        same = "finds the same" if shared.agreed else "finds other numbers: do not rely on them"
        lines.append(Finding(HOLDS if shared.agreed else FAILS, f"A second program that shares no code {same}."))
    for limit in shared.required:
        asked = f"{limit.what} is {limit.value:.6g} in the release, and {limit.limit:g} was required."
        lines.append(Finding(HOLDS if limit.met else FAILS, asked))
    lines += _of_unchanged(shared)
    before, after = report.scores, shared.scores
    if before and after and before.scores["tkl"].value:
        left = after.scores["tkl"].value / before.scores["tkl"].value
        lines.append(Finding(SAYS, f"The release's tkl-Score is {left:.1%} of the source's."))
    return lines


def _of_unchanged(shared: Shared) -> list[Finding]:
    """What a column that is published unchanged adds to the quasi-identifiers, the worst one alone."""
    found = shared.measures.unchanged if shared.measures else {}
    if not found:
        return []
    name, worst = next(iter(found.items()))
    if not worst.unique:
        return [Finding(SAYS, "No record of the release is unique by its quasi-identifiers and one more column.")]
    about = "" if worst.exact else "about "
    many = f"{about}{worst.unique:,} of {worst.records:,} records of the release are unique"
    more = sum(of.unique > 0 for of in found.values()) - 1
    others = ("", " 1 more column also makes records unique.", f" {more:,} more columns also make records unique.")
    text = f"{many} once {name}, which is published unchanged, is known beside the quasi-identifiers.{others[min(more, 2)]}"
    return [Finding(SAYS, text[0].upper() + text[1:])]


def _smallest(report: Report, shared: Shared) -> str:
    """Its size. Records must not be taken for persons."""
    if shared.slices:
        return f"{shared.slices.k:,} persons"
    if shared.measures is None or shared.measures.persons is not None:
        return f"{shared.k:,} persons"
    fewer = "" if report.measures.persons is None else " (of perhaps fewer persons, whom the file does not tell apart)"
    return f"{shared.k:,} records{fewer}"


def _of_attacks(report: Report) -> list[Finding]:
    if report.attacked is None:
        return []
    tried = report.attacked.attacks
    lines = [Finding(SAYS, verdict(tried))] if any(a.targets for a in tried.values()) else []
    if linkage := report.attacked.attacks.get("linkage"):
        people = f"{linkage.details['min_linked']:,} of {linkage.details['population']:,}"
        lines.append(Finding(SAYS, f"A published row that fits anybody fits at least {people} people."))
    return lines


def _of_book(report: Report) -> list[Finding]:
    book = report.book
    if book is None:
        return []
    whole = book.verified.ok
    chain = f"is whole: {book.verified.entries:,} entries" if whole else f"is broken: {book.verified.what}"
    who = f"Release {book.release.id} ({book.release.status}) has {len(book.recipients):,} recipients."
    lines = [Finding(SAYS, who), Finding(HOLDS if whole else FAILS, f"The ledger's chain {chain}.")]
    if book.copies is not None:
        wrong = [c for c in book.copies if c.status != "as published"]
        same = f"{len(book.copies) - len(wrong):,} of {len(book.copies):,} copies are, byte for byte, as published."
        lines.append(Finding(FAILS if wrong else HOLDS, same))
        broken = [c.file for c in book.copies if any(p.kept is False for p in c.promises)]
        said = f"broken by {', '.join(broken)}" if broken else "kept by every copy that shows them"
        lines.append(Finding(FAILS if broken else HOLDS, f"What was promised of the release is {said}."))
    return lines


# The page.


def _jinja() -> Any:
    try:
        import jinja2
    except ImportError:
        raise VeilmarkError("Reports need the extra `report`: pip install 'veilmark[report]'.") from None
    return jinja2


def check_packages() -> None:
    """What draws and writes a page is there; said before the work is done."""
    _jinja()
    charts.check_path(Path("chart.svg"))


def render(report: Report) -> str:
    """The page. Whatever comes from data is escaped."""
    jinja2 = _jinja()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("veilmark.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=said_by(PLAIN),
    )
    environment.filters |= {"count": _count, "share": _share, "number": _number, "fixed": _fixed}
    page: str = environment.get_template("report.html.j2").render(
        report=report,
        findings=findings(report),
        charts=_drawn(report),
        version=__version__,
        rule=RULE,
        content=_embedded(report),
    )
    return page.encode("utf-8", "replace").decode()


def _embedded(report: Report) -> str:
    """The content as JSON that cannot end the element it stands in."""
    text = json.dumps(report.to_dict(), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _drawn(report: Report) -> dict[str, str]:
    """The charts by name, as SVG that is part of the page; as pictures, they cannot run or load anything."""
    made: dict[str, Any] = {"source": report.measures.chart()}
    if report.scores:
        made["scores"] = score_charts.distribution(report.scores)
    if report.shared and report.shared.measures:
        made["release"] = report.shared.measures.chart()
    if report.shared and (view := report.shared.utility):
        if any(of.shares for of in view.marginals.values()):
            made["marginals"] = utility_charts.marginals(view)
        if view.associations:
            made["associations"] = utility_charts.associations(view)
    if report.attacked:
        made["attacks"] = attack_chart.attacks(report.attacked.attacks)
    return {name: _picture(chart) for name, chart in made.items()}


def _picture(chart: Any) -> str:
    drawing = io.StringIO()
    chart.save(drawing, format="svg")
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.getvalue().encode()).decode()}"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _fixed(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return "∞" if math.isinf(value) else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
