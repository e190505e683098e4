"""Which file is read, and how a CSV is written; what cannot be read gets one paragraph that shows no data."""

from __future__ import annotations

import bz2
import gzip
import re
import warnings
import zipfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from veilmark.engines.duckdb import DuckDB
from veilmark.engines.duckdb_errors import explain
from veilmark.engines.files import HEAD_BYTES, CsvFormat, find_files, has_mixed_ends, read_head
from veilmark.errors import DataError, OptionError, VeilmarkWarning

FAR = (HEAD_BYTES >> 2) + 1000


@pytest.fixture
def engine():
    with DuckDB(threads=2, memory="1GB") as engine:
        yield engine


def rows(engine, path, given=None):
    table = engine.open(path, given)
    return [list(table.columns), *([*row.values()] for row in table.query(f"FROM {table.name}").to_pylist())]


def paragraph(caught):
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    return text


class TestNames:
    @pytest.mark.parametrize("name", ["v[1].csv", "v*.csv", "v?.csv", "v[1].parquet", "v].csv", "v{1,2}.csv", "v[1"])
    def test_a_name_with_pattern_characters_is_that_file(self, engine, tmp_path, name):
        for file, value in ((f"v1{name[-8:]}" if "parquet" in name else "v1.csv", "wrong"), (name, "right")):
            if "parquet" in name:
                pq.write_table(pa.table({"a": [value], "b": ["2"]}), tmp_path / file)
            else:
                (tmp_path / file).write_text(f"a,b\n{value},2\n")
        assert rows(engine, tmp_path / name) == [["a", "b"], ["right", "2"]]

    def test_a_pattern_may_match_such_names(self, engine, tmp_path):
        for i in range(3):
            (tmp_path / f"v[{i}].csv").write_text(f"a,b\n{i},2\n")
        assert len(rows(engine, str(tmp_path / "v*.csv"))) == 4

    def test_hidden_folders_are_no_part_of_a_table(self, tmp_path):
        for name in ("x.csv", "_x.csv", "_temporary/y.csv", ".tmp/y.csv", "_d=1/z.csv"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        assert find_files(tmp_path / "**/*.csv") == [tmp_path / name for name in ("_d=1/z.csv", "_x.csv", "x.csv")]
        assert find_files(tmp_path / "_temp*/*.csv") == [tmp_path / "_temporary/y.csv"]

    def test_a_pattern_in_a_folder_with_such_a_name(self, tmp_path):
        folder = tmp_path / "d[1]"
        (folder / "e").mkdir(parents=True)
        for name in ("x.csv", "e/y.csv"):
            (folder / name).touch()
        assert find_files(folder / "*.csv") == [folder / "x.csv"]
        assert find_files(folder / "**" / "*.csv") == [folder / "e/y.csv", folder / "x.csv"]


class TestEncodings:
    def test_a_mark_before_a_quoted_header(self, engine, tmp_path):
        (tmp_path / "t.csv").write_bytes('\ufeff"a","b"\n"1","2"\n'.encode())
        assert rows(engine, tmp_path / "t.csv") == [["a", "b"], ["1", "2"]]

    @pytest.mark.parametrize("before", [0, FAR])
    @pytest.mark.parametrize(
        ("data", "value", "name"),
        [
            (b"caf\xe9", "café", "Windows-1252"),
            (b"\x93x\x94 \x80", "“x” €", "Windows-1252"),
            (b"\xe9\x81", "é\x81", "Latin-1"),
        ],
    )
    def test_fallbacks_are_noted_once(self, engine, tmp_path, before, data, value, name):
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * before + b"1," + data + b"\n")
        with warnings.catch_warnings(record=True, action="always") as caught:
            table = engine.open(tmp_path / "t.csv")
            assert table.count() == before + 1
            assert value in table.domain("b").text.to_pylist()
            assert table.missing("b") == 0
        assert [str(w.message).split(":")[0] for w in caught] == [f"Not UTF-8, so read as {name}"]

    def test_an_undefined_byte_far_below_the_first_fault(self, engine, tmp_path):
        (tmp_path / "t.csv").write_bytes(b"a,b\n1,\xe9\n" + b"1,x\n" * FAR + b"1,\x81\n")
        with pytest.warns(VeilmarkWarning, match="read as Latin-1"):
            assert "\x81" in engine.open(tmp_path / "t.csv").domain("b").text.to_pylist()

    def test_each_file_of_a_pattern_has_its_own(self, engine, tmp_path):
        for encoding in ("utf-8", "cp1252", "utf-16"):
            (tmp_path / f"{encoding}.csv").write_bytes("a,b\n1,€\n".encode(encoding))
        with pytest.warns(VeilmarkWarning, match=r"Windows-1252: '[^']*cp1252.csv'\."):
            table = engine.open(str(tmp_path / "*.csv"))
        assert table.domain("b").text.to_pylist() == ["€"]

    @pytest.mark.parametrize("encoding", ["latin-1", "UTF8", "utf_8_sig", "cp1252"])
    def test_a_given_encoding_is_not_noted(self, engine, tmp_path, encoding):
        (tmp_path / "t.csv").write_bytes("a,b\n1,é\n".encode(encoding))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rows(engine, tmp_path / "t.csv", CsvFormat(encoding=encoding))[1] == ["1", "é"]

    @pytest.mark.parametrize("encoding", ["utf-8", "ascii", "utf-16"])
    def test_a_given_encoding_that_is_wrong(self, engine, tmp_path, encoding):
        (tmp_path / "t.csv").write_bytes(b"a,b\n1,SECRET\xe9\n")
        with pytest.raises(DataError, match="encoding") as caught:
            rows(engine, tmp_path / "t.csv", CsvFormat(encoding=encoding))
        assert "SECRET" not in paragraph(caught)

    @pytest.mark.parametrize("encoding", ["klingon", "hex", "idna"])
    def test_a_given_encoding_that_is_none(self, engine, tmp_path, encoding):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        with pytest.raises(DataError, match="not a known encoding"):
            engine.open(tmp_path / "t.csv", CsvFormat(encoding=encoding))


class TestLines:
    @pytest.mark.parametrize(
        "data",
        [
            b"a,b\r\n1,2\n3,4\r\n",
            b"a,b\n1,2\r\n3,4\n",
            b'a,b\n1,"2"\r\n3,"4"\n',
            b"a,b\r1,2\r3,4\r",
            b"a,b\n1,2\n3,4\r",
            b"\r\n\na,b\n1,2\n3,4\n",
            b"\n\na,b\n1,2\n3,4\n",
            b" \r\n\r\na,b\r\n1,2\r\n3,4\r\n",
            b"sep=,\na,b\n1,2\n3,4",
            b'"sep=;"\r\na;b\r\n1;2\r\n3;4\r\n',
            b"\xef\xbb\xbfSEP=\t\r\n\r\na\tb\r\n1\t2\r\n3\t4\r\n",
            "\nsep=;\na;b\r\n1;2\n3;4\n".encode("utf-16"),
        ],
    )
    def test_line_ends_and_lines_before_the_header(self, engine, tmp_path, data):
        (tmp_path / "t.csv").write_bytes(data)
        assert rows(engine, tmp_path / "t.csv") == [["a", "b"], ["1", "2"], ["3", "4"]]

    def test_an_odd_line_end_and_an_odd_letter_far_down(self, engine, tmp_path):
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * FAR + b"1,x\r\n" + b"1,\xe9\n")
        with warnings.catch_warnings(record=True, action="always") as caught:
            table = engine.open(tmp_path / "t.csv")
            assert table.count() == FAR + 2
            assert table.domain("b").text.to_pylist() == ["x", "é"]
        assert len(caught) == 1

    def test_the_separator_line_decides(self, tmp_path):
        (tmp_path / "t.csv").write_text("sep=|\na,b,c|d\n1,2,3|4\n")
        assert read_head(tmp_path / "t.csv").columns == ("a,b,c", "d")
        assert read_head(tmp_path / "t.csv", CsvFormat(",")).columns == ("a", "b", "c|d")

    def test_only_lines_before_the_header(self, tmp_path):
        (tmp_path / "t.csv").write_text("\nsep=;\n \n")
        with pytest.raises(DataError, match="is empty"):
            read_head(tmp_path / "t.csv")

    def test_the_line_of_a_fault_counts_those_before_the_header(self, engine, tmp_path):
        (tmp_path / "t.csv").write_text("\n\na,b\n1,2\nSECRET\n")
        with pytest.raises(DataError, match="Line 5 ") as caught:
            rows(engine, tmp_path / "t.csv")
        assert "SECRET" not in paragraph(caught)

    def test_values_keep_their_line_ends(self, engine, tmp_path):
        (tmp_path / "t.csv").write_bytes(b'a,b\r\n1,"x\ny"\r\n')
        assert rows(engine, tmp_path / "t.csv")[1] == ["1", "x\ny"]
        assert has_mixed_ends(tmp_path / "t.csv")

    def test_a_fault_met_while_streaming(self, engine, tmp_path):
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"1,x\n" * FAR + b"SECRET\n")
        table = engine.open(tmp_path / "t.csv")
        with pytest.raises(DataError, match=rf"Line {FAR + 2} .* has 1 field,") as caught:
            list(table.batches())
        assert "SECRET" not in paragraph(caught)


class TestPacked:
    @pytest.mark.parametrize("suffix", ["gz", "zst", "bz2", "lz4"])
    @pytest.mark.parametrize("before", [0, FAR])
    def test_packed_files(self, engine, tmp_path, suffix, before):
        path = tmp_path / f"t.csv.{suffix}"
        with pa.output_stream(str(path), compression="detect") as out:
            out.write(b"a,b\n" + b"1,x\n" * before + b"1,\xe9\n")
        with pytest.warns(VeilmarkWarning, match="Windows-1252"):
            found = engine.open(path).domain("b").text.to_pylist()
        assert found == (["x", "é"] if before else ["é"])

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
    def test_packed_without_saying_so(self, engine, tmp_path, pack):
        (tmp_path / "t.csv").write_bytes(pack(b"a,b\n1,2\n"))
        with pytest.raises(DataError, match=r"is compressed \("):
            engine.open(tmp_path / "t.csv")

    def test_a_workbook(self, engine, tmp_path):
        with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as out:
            out.writestr("sheet", "x")
        with pytest.raises(DataError, match="export the table as CSV"):
            engine.open(tmp_path / "t.xlsx")

    def test_cut_short(self, engine, tmp_path):
        data = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * 7919 % 1000) for i in range(200_000))
        (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(data)[:200_000])
        with pytest.raises(DataError, match="Check that the file is complete"):
            engine.open(tmp_path / "t.csv.bz2")


class TestGivenForms:
    @pytest.mark.parametrize("given", ["||", "", "\\t", "\n"])
    @pytest.mark.parametrize("name", ["delimiter", "quote"])
    def test_one_character(self, name, given):
        with pytest.raises(OptionError, match=f"The {name} .* is not one character"):
            CsvFormat(**{name: given})

    def test_a_quote_that_the_engine_cannot_take(self):
        with pytest.raises(OptionError, match="must be an ASCII character"):
            CsvFormat(quote="«")

    def test_a_delimiter_beyond_ascii(self, engine, tmp_path):
        (tmp_path / "t.csv").write_text("a§b\n1§2\n")
        assert rows(engine, tmp_path / "t.csv", CsvFormat("§"))[1] == ["1", "2"]

    def test_a_delimiter_that_is_the_quote(self, engine, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        with pytest.raises(OptionError, match="as both delimiter and quote"):
            engine.open(tmp_path / "t.csv", CsvFormat('"', '"'))


class TestPatterns:
    def test_a_disagreement_shows_no_data(self, engine, tmp_path):
        (tmp_path / "t1.csv").write_text("1,SECRET,3\n")
        (tmp_path / "t2.csv").write_text("1,HIDDEN,3,4\n")
        with pytest.raises(DataError, match=r"t2.csv' .* 't1|t1.csv") as caught:
            engine.open(str(tmp_path / "t*.csv"))
        text = paragraph(caught)
        assert "it has 4 columns instead of 3, and 2 differ, first at position 2" in text
        assert "SECRET" not in text
        assert "HIDDEN" not in text

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            ("a;b\n1;2\n", "the delimiter is ';' instead of ','"),
            ("'a','b'\n'1','2'\n'1','2'\n", "the quote is"),
            ("\na,b\n1,2\n", "the number of lines before the column names is 1 instead of 0"),
        ],
    )
    def test_files_written_otherwise(self, engine, tmp_path, other, words):
        (tmp_path / "t1.csv").write_text("a,b\n1,2\n")
        (tmp_path / "t2.csv").write_text(other)
        with pytest.raises(DataError, match=words):
            engine.open(str(tmp_path / "t*.csv"))

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (pa.array([1], pa.int32()), pa.array(["SECRET"])),
            (pa.array(["x"]), pa.array([1])),
            (pa.array([1]), pa.array([1.5])),
            (pa.array([1.5], pa.float32()), pa.array([1.1])),
            (pa.nulls(1), pa.array([1])),
        ],
    )
    def test_parquet_types_that_differ(self, engine, tmp_path, first, second):
        for i, values in enumerate((first, second)):
            pq.write_table(pa.table({"a": values}), tmp_path / f"t{i}.parquet")
        with pytest.raises(DataError, match=r"Column 'a' of .*t1.parquet' has the type .* does not fit") as caught:
            engine.open(str(tmp_path / "t*.parquet"))
        assert "SECRET" not in paragraph(caught)

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (pa.array(["1"]), pa.array(["1"]).dictionary_encode()),
            (pa.array(["1"], pa.large_string()), pa.array(["1"])),
            (pa.array([1], pa.int32()), pa.array([1])),
            (pa.array([1.0]), pa.array([1.0], pa.float32())),
            (pa.array(["1"]), pa.nulls(1)),
        ],
    )
    def test_parquet_types_that_fit(self, engine, tmp_path, first, second):
        for i, values in enumerate((first, second)):
            pq.write_table(pa.table({"a": values}), tmp_path / f"t{i}.parquet")
        table = engine.open(str(tmp_path / "t*.parquet"))
        assert table.count() == 2
        assert table.group(["a"]).records.sum() == 2

    def test_values_of_folders_are_texts_as_written(self, engine, tmp_path):
        for folder in ("zip=00501", "zip=501", "zip=__HIVE_DEFAULT_PARTITION__", "zip=a%20b"):
            (tmp_path / "zip=0" / "d" / folder).mkdir(parents=True)
            pq.write_table(pa.table({"n": [1]}), tmp_path / "zip=0" / "d" / folder / "p.parquet")
        table = engine.open(str(tmp_path / "zip=0/d/*/*.parquet"))
        assert table.columns == {"n": "number", "zip": "text"}
        assert table.domain("zip").text.to_pylist() == ["00501", "501", "a b", None]

    def test_uuids_are_texts(self, engine, tmp_path):
        (tmp_path / "state=FL").mkdir()
        key = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        duckdb.sql(f"SELECT '{key}'::UUID AS id, 1 AS n").write_parquet(str(tmp_path / "state=FL" / "p.parquet"))
        assert rows(engine, str(tmp_path / "*/p.parquet")) == [["id", "n", "state"], [key, 1, "FL"]]
        assert engine.open(str(tmp_path / "*/p.parquet")).group(["id"]).domains[0].text.to_pylist() == [key]

    def test_parquet_numbers_that_are_too_large(self, engine, tmp_path):
        pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "t0.parquet")
        pq.write_table(pa.table({"a": [1 << 40]}), tmp_path / "t1.parquet")
        table = engine.open(str(tmp_path / "t*.parquet"))
        with pytest.raises(DataError, match=r"Column 'a' of .*t1.parquet' has the type BIGINT") as caught:
            table.group(["a"])
        assert str(1 << 40) not in paragraph(caught)

    def test_parquet_columns_that_are_missing(self, engine, tmp_path):
        pq.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "t0.parquet")
        pq.write_table(pa.table({"b": [1], "A": [1]}), tmp_path / "t1.parquet")
        with pytest.raises(DataError, match=r"t1.parquet' has no column 'a'"):
            engine.open(str(tmp_path / "t*.parquet"))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT CAST(a AS INTEGER) FROM t", "A value of column 'a' in 'x.csv' does not fit the type INT32"),
        ("SELECT CAST(a AS DATE) FROM t", "A value in 'x.csv' does not fit the type"),
        ("SELECT CAST(7919 * i AS TINYINT) FROM t", "does not fit the type INT8"),
        ("SELECT CAST(79 + i AS TINYINT) + CAST(79 AS TINYINT) FROM t", "does not fit the type"),
        ("SELECT strptime(a, '%Y') FROM t", "'x.csv' cannot be read: Could not parse string$"),
        ("SELECT nothing FROM t", "'x.csv' cannot be read: .*\"nothing\" not found"),
    ],
)
def test_the_engines_errors_show_no_value(statement, words):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 'SECRET' || i AS a, i FROM range(1, 3) s(i)")
        with pytest.raises(duckdb.Error) as caught:
            connection.sql(statement).fetchall()
    text = str(explain(caught.value, "x.csv"))
    assert "\n" not in text
    assert not any(value in text for value in ("SECRET", "79"))
    assert re.search(words, text), text


def test_an_error_on_opening_is_explained(engine, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr("veilmark.engines.files.as_pattern", lambda path: "/nowhere/t.csv")
    with pytest.raises(DataError, match="cannot be read: No files found") as caught:
        engine.open(tmp_path / "t.csv")
    paragraph(caught)


@pytest.mark.parametrize("end", [b"", b"\n", b"\n3,v\n"])
def test_a_line_longer_than_the_engine_s_buffer_is_never_left_out(tmp_path, end):
    """DuckDB drops a last line of over 32 MB without a word."""
    (tmp_path / "t.csv").write_bytes(b"a,s\n1,u\n2," + b"x" * 34_000_000 + end)
    with DuckDB() as engine, pytest.raises(DataError, match="longer than 2 MB"):
        engine.open(tmp_path / "t.csv").count()


def test_ctrl_c_while_a_statement_is_handed_over_ends_it(monkeypatch):
    with DuckDB(threads=1, memory="1GB") as engine:
        submit = engine._worker.submit

        def interrupted(work):
            submit(work)
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(engine._worker, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.run("SELECT count(*) FROM range(1000000000) a, range(1000000000) b")
        assert engine.run("SELECT 1 AS one")["one"].to_pylist() == [1]
