"""Study: a table, what each of its columns means, and the verbs. Each verb loads what it needs when it is called."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from pydantic import ValidationError

from veilmark.defaults import DRAWS, KNOWN, ORDER, SPREAD, SUPPRESSION, TARGETS, THRESHOLD, K, Order
from veilmark.engines.files import CsvFormat
from veilmark.engines.sources import PostgresTable, SparkFiles
from veilmark.errors import StudyError
from veilmark.output import write_text
from veilmark.readable import Grid, Readable, Summary
from veilmark.study.spec import VERSION, Latest, StudySpec, Unnamed, attributes_of, read_spec, resolve_source, spec_text
from veilmark.tables.persons import Folding
from veilmark.yamlfile import explain

if TYPE_CHECKING:
    from veilmark.hierarchy.kinds import HierarchyLike
    from veilmark.mark.marking import Marking
    from veilmark.mark.request import Terms
    from veilmark.privacy.measures import Measures
    from veilmark.report.document import Report
    from veilmark.score.breach import Breach
    from veilmark.score.ranking import Ranking
    from veilmark.score.scores import Options, RecordScore, ScoreResult
    from veilmark.study.ledger import Ledger
    from veilmark.tables.recoding import Recoding
    from veilmark.utility.view import UtilityView
    from veilmark.veil.anonymize import Anonymized, Method
    from veilmark.veil.mondrian import Mondrian
    from veilmark.veil.ola import Ola
    from veilmark.veil.sliced import Form, PersonsMethod, Sliced
    from veilmark.workbench.apply import Applied, Unknown
    from veilmark.workbench.attack import Attacked
    from veilmark.workbench.compare import Compared
    from veilmark.workbench.release import Released

File = str | os.PathLike[str]


@dataclass(frozen=True)
class Settings:
    """How much of the machine the engine may use; None: what it finds."""

    threads: int | None = None
    memory: str | None = None


@dataclass(frozen=True)
class Study(Readable):
    """A table and what its columns mean. Make one by `Study.open`, `Study.of` or `Study.guess`, then call its verbs.

    Wherever a verb takes a table, that is a file (CSV or Parquet), a frame (pandas, polars, Arrow, a DuckDB relation) or a
    result that holds one, such as what `anonymize` gives. Every result prints as a short text, shows as tables in a
    notebook, and has `to_dict()`.
    """

    spec: StudySpec
    folder: Path = field(default_factory=Path)
    data: Any = None
    name: str = "the study"
    settings: Settings = field(default_factory=Settings)
    reasons: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of a guessed study: why each column has its role."""
    _kept: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What was read of the source, for the next verb."""

    @classmethod
    def open(cls, path: File, settings: Settings | None = None, data: Any = None) -> Study:
        """Read a study file; `data` is a frame in place of the source that it names, if it names one."""
        file = Path(path)
        spec = read_spec(file)
        if data is not None:
            spec = spec.model_copy(update={"source": None})
        return cls(spec, file.resolve().parent, data, file.name, settings or Settings())

    @classmethod
    def guess(cls, data: Any, header: bool = False, settings: Settings | None = None) -> Study:
        """A study of a frame or a file with roles guessed as `veilmark init` guesses them; `reasons` says why.

        Review the roles before you rely on them. With `header`, the first line of a CSV holds the column names even where
        it looks like data.
        """
        from veilmark.workbench.init import guess_study

        return guess_study(data, header, settings)

    @classmethod
    def of(
        cls,
        data: Any,
        attributes: Mapping[str, Any] | None = None,
        person: str | None = None,
        settings: Settings | None = None,
        unnamed: Unnamed = "leave-out",
        *,
        quasi: Sequence[str] = (),
        sensitive: Sequence[str] = (),
        direct: Sequence[str] = (),
        other: Sequence[str] = (),
        hierarchies: Mapping[str, HierarchyLike] | None = None,
        weights: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Study:
        """A study of a frame (pandas, polars, Arrow, a DuckDB relation) or of a file, by the roles of its columns.

            Study.of(df, quasi=["age", "zip"], sensitive=["dx"], direct=["name"], person="id",
                     hierarchies={"zip": Mask(5), "age": Intervals(5, 10, 20)}, weights={"dx": {"HIV": 0.9, "default": 0.1}})

        `person` is the column that tells persons apart where a person has many records. A hierarchy is `Mask`, `Intervals`
        or `Dates`, the path of a file in ARX's form, or a mapping as in the study file. A column without a role is not
        published, unless `unnamed` is "other". `attributes` takes columns as the study file describes them: a role, or a
        mapping with one.
        """
        roles = {"quasi": quasi, "sensitive": sensitive, "direct": direct, "other": other}
        listed = attributes_of(attributes or {}, roles, hierarchies or {}, weights or {})
        path = data if isinstance(data, str | os.PathLike) else None
        content = {"version": VERSION, "source": path and os.fspath(path), "person": person, "attributes": listed}
        content["unnamed"] = unnamed
        try:
            spec = StudySpec.model_validate(content)
        except ValidationError as problem:
            raise StudyError(explain(problem, StudySpec)) from None
        return cls(spec, data=None if path else data, settings=settings or Settings())

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}: {' '.join(self._with_role(role)) or '-'}" for role in ("quasi", "sensitive"))
        return f"Study({self.label}; {roles}{f'; person: {self.person}' if self.person else ''})"

    def summary(self) -> Summary:
        """The columns with their roles."""
        rows = [
            (name, of.role, next(iter(of.hierarchy.model_dump())) if of.hierarchy else "", self.reasons.get(name, ""))
            for name, of in self.spec.attributes.items()
        ]
        person = f" The person column is '{self.person}'." if self.person else ""
        headings = ("column", "role", "hierarchy", "why")
        grid = Grid(headings if self.reasons else headings[:3], rows if self.reasons else [row[:3] for row in rows])
        return Summary(f"A study of {self.label}, {len(rows)} columns.{person}", (grid,))

    def to_dict(self) -> dict[str, Any]:
        """The study as its file would hold it."""
        return self.spec.model_dump(mode="json", exclude_defaults=True) | {"version": VERSION}

    @property
    def label(self) -> str:
        """What messages call the source."""
        source = self.spec.source
        if source is None:
            return str(self.data) if isinstance(self.data, PostgresTable | SparkFiles) else "the frame"
        return source if isinstance(source, str) else str(getattr(source, "path", None) or getattr(source, "table", ""))

    @property
    def person(self) -> str | None:
        """The column that tells persons apart, if there is one."""
        return self.spec.person

    @property
    def quasi(self) -> list[str]:
        """The quasi-identifiers."""
        return self._with_role("quasi")

    @property
    def sensitive(self) -> list[str]:
        """The sensitive attributes."""
        return self._with_role("sensitive")

    @property
    def direct(self) -> list[str]:
        """The direct identifiers."""
        return self._with_role("direct")

    @property
    def pseudonyms(self) -> list[str]:
        """The direct identifiers that are published as pseudonyms."""
        return [name for name, attribute in self.spec.attributes.items() if attribute.keep == "pseudonym"]

    @property
    def folding(self) -> Folding:
        """Which value of a quasi-identifier counts where a person's records differ."""
        given = self.spec.fold
        return Folding("latest", given.latest) if isinstance(given, Latest) else Folding(given)

    @property
    def missing(self) -> dict[str, list[str]]:
        """The codes that mean missing, of the columns that have some."""
        return {name: list(a.missing) for name, a in self.spec.attributes.items() if a.missing}

    def _with_role(self, role: str) -> list[str]:
        return [name for name, attribute in self.spec.attributes.items() if attribute.role == role]

    def source(self) -> tuple[Any, CsvFormat | None]:
        """What an engine opens, and how a CSV is written where the study says so."""
        source = self.spec.source
        if source is None and self.data is None:
            raise StudyError(
                f"{self.name} has no source. Add a line such as `source: patients.csv`, or open it with a frame: "
                "Study.open(…, data=frame)."
            )
        return (self.data, None) if source is None else resolve_source(source, self.folder)

    def save(self, path: File) -> None:
        """Write the study file. That of a frame names no source: add one, or open it with `data`, a frame."""
        target = Path(path)
        write_text(target, spec_text(self.spec, self.folder, target.resolve().parent))

    # Measure and score.

    def measure(
        self,
        data: Any = None,
        *,
        population: Any = None,
        population_size: int | None = None,
        threshold: float = THRESHOLD,
    ) -> Measures:
        """k-anonymity, l-diversity, t-closeness, α, β, δ and re-identification risk.

        Measures the source, or `data` by this study's roles. A `population` (a table of everybody) or its size adds the
        risks that depend on one. Records whose risk is over `threshold` are counted.
        """
        from veilmark.workbench.measure import measure

        return measure(self, data, population, population_size, threshold)

    def score(
        self,
        extract: Any = None,
        options: Options | None = None,
        *,
        records: File | None = None,
        skip_unknown: bool = False,
        chart: File | None = None,
    ) -> ScoreResult:
        """M-Score, L-Severity and tkl-Score of an extract of the source, by default of the whole source.

        `records` is a file for each record's score, `chart` one for a picture. Records that the source does not have are
        an error; with `skip_unknown` they are counted and left out.
        """
        from veilmark.workbench.score import score

        return score(self, extract, options, records, skip_unknown, chart)

    def rank(
        self,
        extracts: Sequence[Any],
        options: Options | None = None,
        *,
        spread: float = SPREAD,
        draws: int = DRAWS,
        seed: int = 1,
        skip_unknown: bool = False,
    ) -> Ranking:
        """Extracts of the source ranked by their scores, and how often the order survives when weights change.

        Weights are drawn `draws` times, each up to the share `spread` away from the study's.
        """
        from veilmark.workbench.score import compare_scores

        return compare_scores(self, extracts, options, spread, draws, seed, skip_unknown)

    def compare(
        self,
        published: Sequence[Any],
        options: Options | None = None,
        *,
        spread: float = SPREAD,
        draws: int = DRAWS,
        seed: int = 1,
        skip_unknown: bool = False,
    ) -> Ranking:
        """The old name of `rank`. To compare methods, use `compare_methods`."""
        message = "Study.compare is now called Study.rank. To compare methods, use Study.compare_methods."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.rank(published, options, spread=spread, draws=draws, seed=seed, skip_unknown=skip_unknown)

    def explain(self, record: Mapping[str, object]) -> RecordScore:
        """One record of the source, its score taken apart."""
        from veilmark.workbench.score import explain as explain_record

        return explain_record(self, record)

    def breach(self, leak: Any) -> Breach:
        """How severe it is that these records leaked: their share of the source's scores."""
        from veilmark.workbench.score import breach

        return breach(self, leak)

    # Anonymize.

    @overload
    def anonymize(
        self,
        method: Method,
        output: File | None = None,
        *,
        population: Any = None,
        recoding: File | None = None,
        pseudonym_key: File | None = None,
        order: Order = ORDER,
        seed: int | None = None,
    ) -> Anonymized: ...

    @overload
    def anonymize(
        self, method: PersonsMethod, output: File | None = None, *, form: Form = "csv", chart: File | None = None
    ) -> Sliced: ...

    def anonymize(
        self,
        method: Method | PersonsMethod,
        output: File | None = None,
        *,
        population: Any = None,
        recoding: File | None = None,
        pseudonym_key: File | None = None,
        order: Order | None = None,
        seed: int | None = None,
        form: Form | None = None,
        chart: File | None = None,
    ) -> Anonymized | Sliced:
        """The release with the least loss that meets what the method asks for, such as `Ola(k=5, suppression=0.05)`.

        The release is written to `output`. Without one the result holds it: `to_pandas()`, `to_polars()`, `to_arrow()`,
        `write("out.parquet")`; `recoding` of the result is what was applied.

        For `Ola`, `Mondrian` and `Microaggregation`: `population`, a table of everybody, for models that compare with one;
        `recoding` and `pseudonym_key`, files to write (a key that is there is used); `order` "keep" for the source's order
        of rows, which are shuffled otherwise; `seed` for the same shuffle each time.

        For `FSlip`, `OneMany`, `Rmr`, `Anatomy` and `Slicing`, which write a folder of tables: `form`, csv or parquet, and
        `chart`, a file for a picture of how the sensitive attributes go together.
        """
        from veilmark.workbench.anonymize_by_method import anonymize_by

        options = {"population": population, "recoding": recoding, "pseudonym_key": pseudonym_key, "order": order}
        return anonymize_by(self, method, output, {**options, "seed": seed}, {"form": form, "chart": chart})

    def apply(
        self,
        recoding: Recoding | File,
        data: Any = None,
        output: File | None = None,
        *,
        k: int | None = None,
        suppress: bool = True,
        unknown: Unknown = "leave-out",
        pseudonym_key: File | None = None,
        order: Order = ORDER,
        seed: int | None = None,
    ) -> Applied:
        """A recoding (`release.recoding`, or a file that it was saved to) applied to new `data`, by default the source.

        Classes that fail the recoding's models in the new data are left out, unless `suppress` is False; `k` replaces the
        recoding's own. Records with values that the recoding does not know are left out, or with `unknown` "error" refused.
        The other arguments are those of `anonymize`.
        """
        from veilmark.workbench.apply import apply

        return apply(self, recoding, output, data, k, suppress, unknown, pseudonym_key, order, seed)

    def utility(
        self,
        release: Any,
        *,
        data: Any = None,
        target: str | None = None,
        chart: File | None = None,
        seed: int = 1,
    ) -> UtilityView:
        """What a release still tells beside the source, or beside `data`: marginals, associations, a classifier.

        `target` is what the classifier predicts, by default the first sensitive attribute. `chart` is a file to draw to.
        """
        from veilmark.workbench.utility import view_utility

        return view_utility(self, release, data, target, chart, seed)

    def attack(
        self,
        release: Any,
        *,
        attacks: Sequence[str] | None = None,
        targets: int = TARGETS,
        known: int = KNOWN,
        population: Any = None,
        seed: int = 1,
        chart: File | None = None,
    ) -> Attacked:
        """What adversaries learn from a release (a table, or a folder of tables), each beside what guessing gives.

        `attacks` are some of bk, msacorr, qicorr, mcorr, nmcorr and linkage, by default all. `targets` is how many persons
        are attacked, `known` how many sensitive values an attacker knows already. `population` is a table of everybody for
        linkage; without it, that is the source. `chart` is a file to draw to.
        """
        from veilmark.attack import ATTACKS
        from veilmark.workbench.attack import attack

        return attack(self, release, attacks or ATTACKS, targets, known, population, seed, chart)

    def compare_methods(
        self,
        methods: Sequence[str] | None = None,
        *,
        k: int = K,
        l: float | None = None,  # noqa: E741
        suppression: float = SUPPRESSION,
        attacks: Sequence[str] | None = None,
        targets: int = TARGETS,
        known: int = KNOWN,
        seed: int = 1,
        chart: File | None = None,
    ) -> Compared:
        """Methods side by side on this study: loss, time, and what attackers learn from each release.

        `methods` are some of ola, mondrian, fslip, fslip-linked, fslip-paper, onemany, rmr, anatomy and slicing, by default
        all but fslip-paper. `chart` is a file for the frontier of risk and loss. The others are as for `attack`.
        """
        from veilmark.attack import ATTACKS
        from veilmark.workbench.compare import USUAL, CompareRequest, compare_methods

        asked = CompareRequest(k, l, suppression, seed)
        return compare_methods(self, methods or USUAL, asked, attacks or ATTACKS, targets, known, chart)

    # Release.

    def release(
        self,
        recipients: Sequence[str],
        method: Ola | Mondrian,
        *,
        marking: Marking | None = None,
        population: Any = None,
        identity: Sequence[str] = (),
        ledger: Ledger | None = None,
        folder: File | None = None,
        form: Literal["csv", "parquet"] = "csv",
        terms: Mapping[str, Terms] | None = None,
        sign_key: File | None = None,
        seed: int | None = None,
        dry_run: bool = False,
    ) -> Released:
        """A copy for each recipient, with marks of its own, written to a new `folder` and recorded in the `ledger`.

            with Ledger("ledger.db", key="ledger.key") as ledger:
                study.release(["ada", "bob"], Ola(k=5), marking=Marking(decoys=3, collusion=2), population=voters,
                              identity=["voter_id"], ledger=ledger, folder="copies")

        Decoys are persons of the `population`, a table of everybody; `identity` names its columns that tell who somebody
        is. With `Marking(decoys=0, …)` neither is needed. `terms` are noted in the ledger for each recipient. `sign_key` is
        the file of an operator's private key. With a `dry_run` nothing is written, and neither ledger nor folder is needed.
        """
        from veilmark.workbench.release_by_method import release_copies

        given = (marking, population, tuple(identity), ledger, folder, form, terms or {}, sign_key, seed, dry_run)
        return release_copies(self, tuple(recipients), method, *given)

    def report(
        self,
        output: File,
        release: Any = None,
        ledger: Ledger | None = None,
        *,
        release_id: str | None = None,
        copies: File | None = None,
        auditor: bool = False,
        attacks: Sequence[str] | None = None,
        require: Sequence[str] = (),
        title: str | None = None,
        seed: int = 1,
    ) -> Report:
        """Write one HTML page with every number and chart on the source, a release of it and its recipients.

        `release` is a table, a folder of tables, or what `anonymize` gave. Of the `ledger`, the release with `release_id` is
        reported, by default the newest; `copies` is the folder with the recipients' copies, to be checked. With `auditor`
        the page names decoys. `attacks` are as for `attack`, `require` limits such as "k=5" that the release must meet.
        """
        from veilmark.workbench.report import report_release

        given = (release_id, copies, auditor, attacks, require, title, seed)
        return report_release(self, output, release, ledger, *given)
