"""Studies of a case's tables, and results as plain values that can be compared."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from veilmark.study.opening import engine_of, open_source
from veilmark.study.spec import StudySpec
from veilmark.study.study import Study
from veilmark.tables.domain import as_text


def study_of(source, attributes, person=None, fold="error", unnamed="leave-out"):
    """A study of a loaded table; an attribute is a role, or a mapping as in the study file."""
    listed = {c: {"role": a} if isinstance(a, str) else a for c, a in attributes.items()}
    content = {"version": 1, "person": person, "fold": fold, "unnamed": unnamed, "attributes": listed}
    return Study(StudySpec.model_validate(content), data=source)


def opened(study, ask):
    """What a question to the study's source gives."""
    with engine_of(study) as engine:
        return ask(open_source(engine, study))


def plain(result, *without):
    """A result as JSON has it, less what names files."""
    content = json.loads(json.dumps(result.to_dict(), default=str))
    for name in ("output", "source", *without):
        content.pop(name, None)
    return content


def plain_cells(cells):
    """Cells as Python values."""
    settled = None if cells.settled is None else cells.settled.tolist()
    texts = [domain.text.to_pylist() for domain in cells.domains]
    return cells.columns, texts, cells.codes.tolist(), cells.records.tolist(), settled


def plain_persons(found):
    """Cells with persons; who wanders is counted by their combinations, since engines may name persons otherwise."""
    return [(plain_cells(cells), row_counts(wanderers)) for cells, wanderers in found]


def plain_fold(folded):
    """One row a person, as Python values."""
    columns = folded.quasi | folded.sensitive
    plain = {c: (of.domain.text.to_pylist(), of.starts.tolist(), of.values.tolist()) for c, of in columns.items()}
    return plain, folded.records


def row_counts(table):
    """The rows as a multiset of texts."""
    columns = [as_text(column.combine_chunks()).to_pylist() for column in table.columns]
    return Counter(zip(*columns, strict=True))


def read_rows(path):
    """A written file's columns and the multiset of its rows."""
    if str(path).endswith(".parquet"):
        table = pq.read_table(path)
    else:
        options = pa_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
        names = pa_csv.open_csv(path, parse_options=pa_csv.ParseOptions(newlines_in_values=True)).schema.names
        options.column_types = {name: pa.string() for name in names}
        parsing = pa_csv.ParseOptions(newlines_in_values=True)
        table = pa_csv.read_csv(path, parse_options=parsing, convert_options=options)
    return table.column_names, row_counts(table)
