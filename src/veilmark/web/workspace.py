"""Workspace: the folder that the web app works in, and the only place from which it reads and to which it writes.

    NAME.yaml        the studies
    data/            uploaded and made-up tables
    hierarchies/     uploaded hierarchy files
    weights/         judgements and data models
    confidential/    reports on the ledger
    anonymized/      releases without marks
    releases/        recipients' marked copies
    reports/
    ledger.db        the ledger; its key is ledger.key
    .veilmark/       accounts, audit log, jobs: never listed, never served

A path that comes from a request goes through `study_file`, `table` or `output`, which refuse all that lies outside.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO

from veilmark.errors import OptionError, OutputError
from veilmark.messages import spell
from veilmark.study.study import Study
from veilmark.web.spelling import FIELDS

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
"""What a study may be called: plain enough for a URL and for every file system."""

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".gz")
OUTPUTS = ("anonymized", "releases", "reports")
NO_TABLES = ("hierarchies", "weights", "confidential")
CLOSED = ("releases", "confidential")
"""Folders that no request reads a table from: recipients' copies, and what tells of them."""
DEEPEST = 3
MOST_LISTED = 1_000


class NotFoundError(Exception):
    """There is no such thing in the workspace, or nobody may have it: the two look alike from outside."""


@dataclass(frozen=True)
class Workspace:
    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Workspace:
        """The workspace in a folder, which is made where there is none."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace = cls(folder.resolve())
            workspace.private.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"'{folder}' cannot be used as a workspace: {error.strerror}. Name another one."
            ) from None
        return workspace

    @property
    def private(self) -> Path:
        return self.folder / ".veilmark"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def key(self) -> Path:
        return self.folder / "ledger.key"

    # --- studies ---------------------------------------------------------------------------------------------

    def studies(self) -> list[str]:
        """The names of the studies, in order."""
        found = (path for path in self.folder.glob("*.yaml") if NAME.fullmatch(path.stem) and self._within(path))
        return sorted((path.stem for path in found if _looks_like_study(path)), key=str.lower)

    def study_file(self, name: str) -> Path:
        """The file of a study that is there."""
        path = self.folder / f"{name}.yaml"
        if not NAME.fullmatch(name) or not os.path.isfile(path) or not self._within(path):
            raise NotFoundError(f"There is no study '{name[:80]}' in the workspace.")
        return path

    def study(self, name: str) -> Study:
        """The study as its file describes it."""
        from veilmark.study.opening import open_study

        return open_study(self.study_file(name))

    def new_study(self, name: str) -> Path:
        """The file of a study yet to be written, under this name or, where that is taken, a numbered one."""
        return self.folder / f"{_free(slug(name), lambda n: not (self.folder / f'{n}.yaml').exists())}.yaml"

    # --- tables ----------------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        """The tables in the workspace, as paths relative to it; outputs are not among them."""
        found = (path for path in self._walk(self.folder, DEEPEST) if path.suffix.lower() in TABLES)
        named = (path.relative_to(self.folder).as_posix() for path in found)
        return sorted(name for name in named if name.split("/")[0] not in (*OUTPUTS, *NO_TABLES))[:MOST_LISTED]

    def hierarchies(self) -> list[str]:
        """The uploaded hierarchy files, as paths relative to the workspace."""
        return sorted(f"hierarchies/{path.name}" for path in self._walk(self.folder / "hierarchies", 1))

    def table(self, name: str) -> Path:
        """A table, hierarchy file or unmarked release by its path relative to the workspace."""
        path = self.folder / name
        parts = Path(name).parts
        hidden = any(part.startswith(".") for part in parts)
        if "\0" in name or not parts or hidden or path.suffix.lower() not in TABLES:
            raise NotFoundError(f"There is no table '{name[:80]}' in the workspace.")
        if not self._within(path) or not os.path.isfile(path) or self._top(path) in CLOSED:
            raise NotFoundError(f"There is no table '{name[:80]}' in the workspace.")
        return path

    def output(self, name: str) -> Path:
        """A file of `anonymized/`, `releases/` or `reports/`, by its path relative to the workspace."""
        path = self.folder / name
        parts = Path(name).parts
        plain = len(parts) > 1 and parts[0] in OUTPUTS and not any(part.startswith(".") for part in parts)
        if (
            "\0" in name
            or not plain
            or not self._within(path)
            or not os.path.isfile(path)
            or self._top(path) != parts[0]
        ):
            raise NotFoundError(f"There is no file '{name[:80]}' in the workspace.")
        return path

    def new_output(self, folder: str, name: str, suffix: str = "") -> Path:
        """A path in an output folder that is not taken; the folder is made."""
        parent = self._made(folder)
        return parent / (_free(slug(name), lambda n: not (parent / f"{n}{suffix}").exists()) + suffix)

    @contextmanager
    def upload(self, folder: str, name: str) -> Iterator[tuple[Path, IO[bytes]]]:
        """A fresh file for an upload, named after the file it comes from; it vanishes where the block fails."""
        suffix = Path(name).suffix.lower()
        if suffix not in TABLES:
            raise OptionError(
                f"'{name[:80]}' is neither CSV nor Parquet by its name. Upload one of: {', '.join(TABLES)}."
            )
        parent, stem = self._made(folder), slug(Path(name).stem)
        target = parent / (_free(stem, lambda n: _claimed(parent / f"{n}{suffix}")) + suffix)
        try:
            with target.open("wb") as file:
                yield target, file
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def store(self, folder: str, name: str, content: IO[bytes]) -> str:
        """Keep an uploaded file, and say where, relative to the workspace."""
        with self.upload(folder, name) as (target, file):
            shutil.copyfileobj(content, file, 1 << 20)
        return self.relative(target)

    def relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def plain(self, text: object) -> str:
        """A message or an error as pages say it, without the workspace's own place on this computer, which is nobody's
        business."""
        return spell(text, FIELDS).replace(f"{self.folder}{os.sep}", "")

    def _made(self, folder: str) -> Path:
        path = self.folder / folder
        try:
            path.mkdir(mode=0o700 if folder in CLOSED else 0o777, exist_ok=True)
        except OSError as error:
            raise OutputError(f"The folder '{folder}' of the workspace cannot be made: {error.strerror}.") from None
        return path

    def _within(self, path: Path) -> bool:
        """Whether a path, links followed, stays within the workspace and out of its private part."""
        try:
            real = path.resolve()
        except (OSError, ValueError):
            return False
        return real.is_relative_to(self.folder) and not real.is_relative_to(self.private)

    def _top(self, path: Path) -> str:
        """The folder of the workspace that a path within it lies in, links followed."""
        return path.resolve().relative_to(self.folder).parts[0]

    def _walk(self, folder: Path, depth: int) -> Iterator[Path]:
        """The plain files of a folder and, to a depth, of those in it; none that is hidden, none behind a link out."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(".") or not self._within(path):
                continue
            if entry.is_dir(follow_symlinks=False) and depth > 1:
                yield from self._walk(path, depth - 1)
            elif entry.is_file():
                yield path


def slug(text: str) -> str:
    """A plain file name out of any text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:60].lower() or "table"


def _free(name: str, free: Callable[[str], bool]) -> str:
    numbered = (name if i == 1 else f"{name}-{i}" for i in count(1))
    return next(n for n in numbered if free(n))


def _claimed(path: Path) -> bool:
    """Make the file, unless it is there; of two who ask at once, one is told no."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _looks_like_study(path: Path) -> bool:
    """Whether a YAML file is a study, by its first keys; a broken study is still listed, so that it can be mended."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return bool(re.search(r"^(attributes|source)\s*:", file.read(1 << 20), re.M))
    except OSError:
        return False
