"""PostgreSQL's own: its types, views and names, one snapshot, and what is said when something is not right."""

from __future__ import annotations

import errno
import itertools
import json
import sys
import threading
import time
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from engines.contract.helpers import study_of
from strength import PATIENCE
from veilmark.cli.main import main
from veilmark.csvtext import CsvWriter
from veilmark.engines.postgres import PgTable, Postgres
from veilmark.engines.postgres_session import CONNECTION, LOCK_WAIT, SETTINGS, WORK_MEMORY
from veilmark.engines.sources import PostgresTable
from veilmark.errors import DataError, OptionError, OutputError, VeilmarkError
from veilmark.mark.members import Recognized, recognize
from veilmark.study.study import Study
from veilmark.veil.ola import Ola

NUMBERS = itertools.count(1)
OUR_SESSIONS = "FROM pg_stat_activity WHERE application_name = 'veilmark' AND datname = current_database()"


@pytest.fixture(scope="module")
def server(postgres):
    """A connection that prepares what is tested."""
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA special; SET search_path = special")
        yield connection
        connection.execute("DROP SCHEMA special CASCADE")


@pytest.fixture
def url(postgres):
    return postgres.url() + "&options=-csearch_path%3Dspecial"


@contextmanager
def opened(url, table):
    with Postgres(PostgresTable(url, table)) as engine:
        yield engine.open(PostgresTable(url, table))


def new_table(server, columns, *rows):
    """A table with these rows, written as SQL writes them."""
    name = f"t{next(NUMBERS)}"
    server.execute(f"CREATE TABLE {name} ({columns})")
    for row in rows:
        server.execute(f"INSERT INTO {name} VALUES ({row})")
    return name


def texts(table, column):
    return table.domain(column).text.to_pylist()


def all_ended(server):
    """Whether the server has none of our sessions any more; it takes a moment to notice."""
    for _ in range(20 * PATIENCE):
        if server.execute(f"SELECT {OUR_SESSIONS}").fetchone() is None:
            return True
        time.sleep(0.05)
    return False


def end_sessions(server):
    server.execute(f"SELECT pg_terminate_backend(pid) {OUR_SESSIONS}")


# Types.

TYPES = {
    "char(6)": (["'a'", "'b  '"], "text", ["a", "b"]),
    "varchar(9)": (["'a '", "''"], "text", ["a ", None]),
    "numeric(10,2)": (["1.50", "'NaN'"], "number", ["1.5", None]),
    "numeric": (["1.50", "1.5", "-0.00", "1e20", "'NaN'"], "number", ["0", "1.5", "100000000000000000000", None]),
    "numeric(60,3)": (["1.500", "2"], "number", ["1.5", "2"]),
    "money": (["1000.5::numeric::money"], "number", ["1000.5"]),
    "uuid": (["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], "text", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    "time": (["'24:00'", "'01:02:03.5'"], "text", ["01:02:03.5", "24:00:00"]),
    "interval": (["'36 hours'"], "text", ["36:00:00"]),
    "inet": (["'10.0.0.1'"], "text", ["10.0.0.1/32"]),
    "mood": (["'sad'", "'Happy'"], "text", ["Happy", "sad"]),
    "zip_code": (["'00123'", "'0123'"], "text", ["00123", "0123"]),
    "date": (["'2024-02-29'", "NULL"], "date", ["2024-02-29", None]),
    "timestamptz(0)": (["'2024-06-01 12:00+02'"], "date", ["2024-06-01 10:00:00"]),
}


@pytest.fixture(scope="module")
def own_types(server):
    server.execute("CREATE TYPE mood AS ENUM ('sad', 'Happy'); CREATE DOMAIN zip_code AS text CHECK (VALUE <> 'x')")


@pytest.mark.parametrize("kind", TYPES)
def test_types(server, own_types, url, kind):
    values, expected_kind, expected = TYPES[kind]
    with opened(url, new_table(server, f"x {kind}", *values)) as table:
        assert (table.columns["x"], texts(table, "x")) == (expected_kind, expected)


WILD = {
    "date": ("'infinity', '2024-01-01', '0044-03-15 BC'", ["0044-03-15 BC", "2024-01-01", "infinity"]),
    "timestamp": ("'-infinity', '2024-01-01 00:00', NULL", ["-infinity", "2024-01-01 00:00:00", None]),
    "numeric": ("1e40, 0.5, 'Infinity'", ["0.5", "1" + "0" * 40, "Infinity"]),
}


@pytest.mark.parametrize("kind", WILD)
def test_values_that_no_file_could_hold_are_texts(server, url, kind):
    values, expected = WILD[kind]
    name = new_table(server, f"x {kind}", *values.split(", "))
    with opened(url, name) as table:
        assert (table.columns["x"], texts(table, "x")) == ("text", expected)
        assert [v for batch in table.rows(["x"]) for v in batch.column(0).to_pylist()][:1] == [
            {"date": "infinity", "timestamp": "-infinity", "numeric": "1" + "0" * 40}[kind]
        ]


def test_what_has_no_plain_values_is_nested(server, url):
    name = new_table(server, "a int[], b jsonb, c bytea, d int4range, e point, f text")
    with opened(url, name) as table:
        assert table.columns == dict.fromkeys("abcde", "nested") | {"f": "text"}
    with pytest.raises(DataError, match=r"Column 'b' of '.*' has lists, records or bytes"):
        Study.of(PostgresTable(url, name), {"b": "quasi"}).measure()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_has_no_plain_values_is_published_as_text(server, url, tmp_path, suffix):
    row = """'x', '{1,NULL}', '{"k": [1]}', '\\x00ff', '[1,5)', '(1,2)', '<a/>'"""
    name = new_table(server, "f text, a int[], b jsonb, c bytea, d int4range, e point, x xml", row, row, "'x'")
    out = tmp_path / f"out.{suffix}"
    study = Study.of(PostgresTable(url, name), {"f": "quasi"}, unnamed="other")
    made = study.anonymize(Ola(k=2), out, order="keep")
    published = pq.read_table(out) if suffix == "parquet" else pa_csv.read_csv(out)
    first, _, last = (list(row.values()) for row in published.to_pylist())
    assert first == ["x", "{1,NULL}", '{"k": [1]}', "\\x00ff", "[1,5)", "(1,2)", "<a/>"]
    assert not any(last[1:])
    assert made.as_is == ("a", "b", "c", "d", "e", "x")


CODES = {
    "real": (["-99.9", "1e40", "1e-60"], ["-99.9", "0", "1.5"], ["0", "1.5", None]),
    "double precision": (["-99.9", "1e400"], ["-99.9", "1.5", "'Infinity'"], ["1.5", "inf", None]),
    "numeric(4,1)": (["-99.9", "1.54", "1e9"], ["-99.9", "1.5"], ["1.5", None]),
    "smallint": (["-99", "1.5", "99999"], ["-99", "2"], ["2", None]),
}


@pytest.mark.parametrize("kind", CODES)
def test_codes_for_missing_values(server, url, kind):
    codes, values, expected = CODES[kind]
    with opened(url, new_table(server, f"x {kind}", *values)) as table:
        table.declare_missing({"x": codes})
        assert (texts(table, "x"), table.missing("x")) == (expected, 1)


PAIRS = {
    "decimals": ("numeric(6,2)", "numeric(6,1)", ["60.50", "-0", "NULL"]),
    "whole and decimal": ("integer", "numeric(6,1)", ["60", "0", "NULL"]),
    "floats": ("double precision", "real", ["0.5", "'-0'", "'-Infinity'", "'NaN'", "NULL"]),
    "dates": ("date", "timestamp", ["'1980-01-02'", "NULL"]),
    "zones": ("date", "timestamptz", ["'1980-01-02 00:00Z'", "NULL"]),
    "truths": ("boolean", "boolean", ["true", "NULL"]),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_equal_values_of_different_types(server, url, pair):
    ours, theirs, values = PAIRS[pair]
    rows = [f"'p{i}', {value}" for i, value in enumerate(values)]
    name, people = (new_table(server, f"who text, x {kind}", *rows) for kind in (ours, theirs))
    with opened(url, name) as table:
        population = table.engine.open(f"table:{people}", joined=True)
        assert recognize(table, population, ["who"], ["x"]) == Recognized(len(rows), len(rows), 0)
    server.execute(f"UPDATE {people} SET x = NULL WHERE who = 'p0'")
    with opened(url, name) as table:
        population = table.engine.open(f"table:{people}", joined=True)
        assert recognize(table, population, ["who"], ["x"]) == Recognized(len(rows), len(rows), 1)


@pytest.mark.parametrize("kind", ["real", "double precision"])
def test_pseudonyms_of_floats_are_refused(server, url, kind):
    name = new_table(server, f"id {kind}, x text", "1, 'a'", "2.5, 'a'")
    server.execute(f"CREATE VIEW {name}_text AS SELECT CAST(id AS text) AS id, x FROM {name}")
    roles = {"id": {"role": "direct", "keep": "pseudonym"}, "x": "quasi"}
    with pytest.raises(OptionError, match=r"Column 'id' of '.*' holds floating-point numbers.*as text"):
        study_of(PostgresTable(url, name), roles).anonymize(Ola(k=2))
    made = study_of(PostgresTable(url, f"{name}_text"), roles).anonymize(Ola(k=2))
    assert len(set(made.table()["id"].to_pylist())) == 2


def test_a_population_with_durations(server, url):
    name = new_table(server, "x text", "'a'")
    with opened(url, name) as table:
        frame = pa.table({"x": ["a"], "stay": pa.array([1], pa.duration("us"))})
        assert table.engine.open(frame, joined=True).columns == {"x": "text", "stay": "number"}


def test_a_population_with_a_long_name(server, url):
    with opened(url, new_table(server, "x text", "'a'")) as table:
        fits, long = "ä" * 31, "ä" * 32
        assert list(table.engine.open(pa.table({fits: ["a"]}), joined=True).columns) == [fits]
        with pytest.raises(DataError, match=rf"'{long}' of 'the frame' has a name of more than 63 bytes"):
            table.engine.open(pa.table({long: ["a"]}), joined=True)


def test_a_collation_that_ignores_case_merges_nothing(server, url):
    server.execute("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    name = new_table(server, "x text COLLATE loose, who text COLLATE loose", "'a', 'p'", "'A', 'P'", "'a', 'P'")
    with opened(url, name) as table:
        assert table.group(["x"]).records.tolist() == [1, 2]
        [(found, wanderers)] = table.group_persons(["x"], [], "who")
        assert (found.records.tolist(), found.settled.tolist(), len(wanderers)) == ([1, 2], [0, 1], 2)


# Names, views and the order of rows.


@pytest.mark.parametrize("name", ["Visits", "with.dot", 'a"b', "select", "größe"])
def test_names(server, url, name):
    quoted = '"' + name.replace('"', '""') + '"'
    server.execute(f"CREATE TABLE IF NOT EXISTS {quoted} (x int); TRUNCATE {quoted}; INSERT INTO {quoted} VALUES (1)")
    for given in (name, f"special.{quoted}"):
        with opened(url, given) as table:
            assert table.count() == 1


def test_an_unknown_table(server, url, postgres):
    server.execute("CREATE TABLE patients (x int)")
    with pytest.raises(
        DataError, match=rf"no table 'patient' in the database '{postgres.database}'.*Did you mean 'patients'"
    ):
        Study.of(PostgresTable(url, "patient"), {"x": "quasi"}).measure()


def test_updated_rows_move_and_the_order_is_that_of_storage(server, url):
    name = new_table(server, "who text, x int", *(f"'p', {i}" for i in range(4)))
    server.execute(f"UPDATE {name} SET x = 9 WHERE x = 0")
    with opened(url, name) as table:
        assert [v for batch in table.rows(["x"]) for v in batch.column(0).to_pylist()] == [1, 2, 3, 9]
        visits = table.visits(["x"], "who")
        assert next(visits.columns).column(0).to_pylist() == [1, 2, 3, 9]
        assert visits.counts.tolist() == [1] * 4


RELATIONS = {
    "view": "CREATE VIEW {new} AS SELECT * FROM {old} ORDER BY x DESC",
    "materialized view": "CREATE MATERIALIZED VIEW {new} AS SELECT * FROM {old} ORDER BY x DESC",
    "partitioned": "CREATE TABLE {new} (who text, x int) PARTITION BY LIST (x);"
    "CREATE TABLE {new}_a PARTITION OF {new} FOR VALUES IN (3);"
    "CREATE TABLE {new}_b PARTITION OF {new} DEFAULT; INSERT INTO {new} SELECT * FROM {old} ORDER BY x DESC",
    "inherited": "CREATE TABLE {new} (who text, x int); CREATE TABLE {new}_more () INHERITS ({new});"
    "INSERT INTO {new} VALUES ('p', 3), ('p', 2); INSERT INTO {new}_more VALUES ('p', 1), ('p', 0)",
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_like_a_table(server, url, tmp_path, relation):
    old = new_table(server, "who text, x int", *(f"'p', {i}" for i in range(4)))
    new = f"{old}_{relation[:4]}"
    server.execute(RELATIONS[relation].format(new=new, old=old))
    with opened(url, new) as table:
        assert [v for batch in table.rows(["x"]) for v in batch.column(0).to_pylist()] == [3, 2, 1, 0]
        assert next(table.visits(["x"], "who").columns).column(0).to_pylist() == [3, 2, 1, 0]
    study = Study.of(PostgresTable(url, new), {"who": "quasi", "x": "other"})
    assert study.anonymize(Ola(k=2), order="keep").table()["x"].to_pylist() == [3, 2, 1, 0]


def test_parts_of_persons_make_up_the_whole(server, url):
    name = new_table(server, "who text, x int", *(f"'p{i % 7}', {i % 3}" for i in range(40)))
    with opened(url, name) as table:
        whole = table.visits(["x"], "who")
        parts = [table.visits(["x"], "who", (i, 3)) for i in range(3)]
        assert sorted(h for part in parts for h in part.hashes) == sorted(whole.hashes)
        assert sum(int(part.counts.sum()) for part in parts) == whole.counts.sum() == 40


# One snapshot.


def test_what_others_write_meanwhile_is_not_seen(server, url):
    import psycopg

    name = new_table(server, "who text, x int", "'p', 1", "'q', 2")
    with opened(url, name) as table:
        before = table.count()
        server.execute(f"INSERT INTO {name} VALUES ('r', 3); UPDATE {name} SET x = 7")
        assert table.count() == before == 2
        assert texts(table, "x") == ["1", "2"]
        assert sum(batch.num_rows for batch in table.rows(["x"])) == 2
        [(cells, _)] = table.group_persons(["x"], [], "who")
        assert cells.records.tolist() == [1, 1]
        with pytest.raises(psycopg.errors.LockNotAvailable):
            server.execute(f"SET lock_timeout = '50ms'; TRUNCATE {name}")
        server.execute("RESET lock_timeout")
    with opened(url, name) as table:
        assert table.count() == 3


def test_nothing_is_left_behind(server, url, tmp_path):
    name = new_table(server, "who text, x int", *(f"'p{i}', {i % 2}" for i in range(20)))
    count = "SELECT count(*) FROM pg_class"
    [before] = server.execute(count).fetchone()
    Study.of(PostgresTable(url, name), {"x": "quasi", "who": "direct"}, "who").anonymize(Ola(k=2), tmp_path / "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 21
    assert all_ended(server)
    assert server.execute(count).fetchone() == (before,)


def test_a_view_that_writes_is_refused(server, url):
    log = new_table(server, "x int")
    server.execute(
        f"CREATE FUNCTION noted() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO special.{log} VALUES (1) RETURNING x';"
        "CREATE VIEW curious AS SELECT noted() AS x"
    )
    with pytest.raises(DataError, match="would write to the database"):
        Study.of(PostgresTable(url, "curious"), {"x": "quasi"}).measure()
    with (
        opened(url, "curious") as table,
        table.engine.holding(table.sample(0)),
        pytest.raises(DataError, match="write"),
    ):
        table.count()
    assert server.execute(f"SELECT count(*) FROM {log}").fetchone() == (0,)


def hold_up(server, url, name):
    """An ALTER TABLE that waits for whoever reads the table; gives the thread that waits."""
    import psycopg

    def alter():
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(f"ALTER TABLE {name} ADD COLUMN z int")

    thread = threading.Thread(target=alter)
    thread.start()
    waiting = "datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE%'"
    waits = f"SELECT FROM pg_stat_activity WHERE {waiting}"
    while server.execute(waits).fetchone() is None:
        time.sleep(0.02)
    return thread


def test_a_table_that_others_wait_to_alter(server, url, tmp_path, monkeypatch):
    name = new_table(server, "x int", *"1112223")
    write, threads = PgTable.write_recoded, []

    def late(self, *arguments):
        threads.append(hold_up(server, url, name))
        write(self, *arguments)

    monkeypatch.setattr(PgTable, "write_recoded", late)
    study = Study.of(PostgresTable(url + "%20-clock_timeout%3D300", name), {"x": "quasi"})
    with pytest.raises(VeilmarkError, match=rf"'{name}' is locked .*lock_timeout") as caught:
        study.anonymize(Ola(k=2), tmp_path / "out.csv")
    threads[0].join()
    assert caught.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_settings_are_of_the_transaction(server, url):
    asked = [*SETTINGS, "lock_timeout", "work_mem"]
    with opened(url, new_table(server, "x int")) as table:
        found = [table.engine.session.value(f"SHOW {name}") for name in asked]
        assert found == [*SETTINGS.values(), LOCK_WAIT, WORK_MEMORY]
        table.engine.session.execute("ROLLBACK")
        assert table.engine.session.value("SHOW lock_timeout") == "0"


STOPS = {
    "full": (OSError(errno.ENOSPC, "No space left"), OutputError, "the disk is full"),
    "interrupted": (KeyboardInterrupt(), KeyboardInterrupt, None),
}


@pytest.mark.parametrize("stop", STOPS)
def test_stopped_while_writing(server, url, tmp_path, monkeypatch, stop):
    raised, expected, said = STOPS[stop]

    def fail(*_):
        raise raised

    monkeypatch.setattr(CsvWriter, "write", fail)
    study = Study.of(PostgresTable(url, new_table(server, "x int", *"1112223")), {"x": "quasi"})
    with pytest.raises(expected, match=said):
        study.anonymize(Ola(k=2), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
    assert all_ended(server)


def test_a_session_goes_on_after_a_failed_part(server, url):
    with opened(url, new_table(server, "x int", "1")) as table:
        making = table.engine.making
        with pytest.raises(DataError), making.guarded():
            making.execute("SELECT nothing")
        making.make_temporary("TABLE afterwards (x int)")
        assert table.count() == 1
        making.execute("SET TRANSACTION READ ONLY")
        making.drop("afterwards")


# Bad input.


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me:hush@/db?host=/nowhere", "cannot connect to the database 'db' on /nowhere"),
        ("postgresql://me:hush@localhost:1/db", "cannot connect to the database 'db' on localhost"),
        ("postgresql+what://me:hush@localhost/db", "address cannot be read"),
        ("postgresql://me:hush@localhost:port/db", "cannot connect"),
        ("postgresql://me:hush@localhost/db?connect_timeout=abc", "cannot connect .*connect_timeout"),
        ("postgresql://me:x@hush@localhost:1/db", "address cannot be read.*% codes"),
        ("postgresql://me:x@hush:y@localhost:1/db", "address cannot be read.*% codes"),
        ("postgresql://me:x/hush@localhost:1/db", "address cannot be read.*% codes"),
        ("postgresql://me:x?y@hush@localhost:1/db", "address cannot be read.*% codes"),
        ("postgresql://me:hu%40sh@localhost:1/my%40db", "cannot connect to the database 'my@db' on localhost"),
    ],
)
def test_a_database_that_is_not_there(address, said):
    with pytest.raises(OptionError, match=said) as caught:
        Study.of(PostgresTable(address, "visits"), {"x": "quasi"}).measure()
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(PostgresTable(address, "visits"))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(OptionError, match=r"pip install 'veilmark\[postgres\]'"):
        Study.of(PostgresTable("postgresql://me@host/db", "visits"), {"x": "quasi"}).measure()


def test_an_unknown_user(server, postgres):
    with pytest.raises(OptionError, match='role "nobody_here" does not exist'):
        Study.of(PostgresTable(postgres.url("nobody_here"), "t"), {"x": "quasi"}).measure()


def test_permissions(server, postgres, tmp_path):
    name = new_table(server, "x int, y text", "1, 'a'", "1, 'b'")
    server.execute(f"CREATE ROLE guest LOGIN; REVOKE TEMPORARY ON DATABASE {postgres.database} FROM PUBLIC")
    study = Study.of(PostgresTable(postgres.url("guest"), f"special.{name}"), {"x": "quasi", "y": "sensitive"})
    try:
        with pytest.raises(DataError, match=r"does not let you read.*permission denied for schema special"):
            study.measure()
        server.execute("GRANT USAGE ON SCHEMA special TO guest")
        with pytest.raises(
            DataError, match=rf"does not let you read.*permission denied for table {name}.*GRANT SELECT"
        ):
            study.measure()
        server.execute(f"GRANT SELECT ON {name} TO guest")
        assert study.measure().k == 2
        with pytest.raises(OptionError, match="GRANT TEMPORARY ON DATABASE"):
            study.anonymize(Ola(k=2), tmp_path / "out.csv")
    finally:
        server.execute(
            f"GRANT TEMPORARY ON DATABASE {postgres.database} TO PUBLIC; DROP OWNED BY guest; DROP ROLE guest"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_lost_connection(server, url, tmp_path, monkeypatch):
    name = new_table(server, "x int", *"1112223")
    write = PgTable.write_recoded

    def lose(self, *arguments):
        end_sessions(server)
        write(self, *arguments)

    monkeypatch.setattr(PgTable, "write_recoded", lose)
    with pytest.raises(VeilmarkError, match=r"The connection .* was lost") as caught:
        Study.of(PostgresTable(url, name), {"x": "quasi"}).anonymize(Ola(k=2), tmp_path / "out.csv")
    assert caught.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_connection_lost_while_rows_come(server, url):
    name = new_table(server, "x text")
    server.execute(f"INSERT INTO {name} SELECT repeat('x', 1000) FROM generate_series(1, 40000)")
    with opened(url, name) as table:
        rows = table.rows(["x"])
        next(rows)
        end_sessions(server)
        with pytest.raises(VeilmarkError, match=r"The connection .* was lost"):
            list(rows)


def test_a_limit_of_time(server, url):
    server.execute("CREATE VIEW slow AS SELECT 1 AS x FROM pg_sleep(5)")
    with pytest.raises(VeilmarkError, match=r"stopped the work.*statement timeout"):
        Study.of(PostgresTable(url + "%20-cstatement_timeout%3D200", "slow"), {"x": "quasi"}).measure()


def test_interrupted(server, url, ctrl_c):
    server.execute("CREATE VIEW slower AS SELECT 1 AS x FROM pg_sleep(30)")

    def interrupt():
        while server.execute(f"SELECT {OUR_SESSIONS} AND wait_event = 'PgSleep'").fetchone() is None:
            time.sleep(0.02)
        ctrl_c()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Study.of(PostgresTable(url, "slower"), {"x": "quasi"}).measure()
    thread.join()
    assert all_ended(server)


def test_values_in_errors_are_not_shown(server, url):
    name = new_table(server, "x text", "'secret'")
    server.execute(f"CREATE VIEW broken AS SELECT CAST(x AS int) AS x FROM {name}")
    with pytest.raises(DataError, match="does not fit the type") as caught:
        Study.of(PostgresTable(url, "broken"), {"x": "quasi"}).measure()
    assert "secret" not in str(caught.value)


SAID = {
    "CAST(x AS int)": "does not fit the type",
    "special.told(x)": "SQLSTATE P0001",
    "special.told(x, '23514')": "SQLSTATE 23514",
}


@pytest.mark.parametrize("expression", SAID)
def test_what_functions_say_is_not_shown(server, url, expression):
    name = new_table(server, "x text", "'temporary resident Ada'")
    server.execute(
        "CREATE OR REPLACE FUNCTION told(v text, code text = 'P0001') RETURNS int LANGUAGE plpgsql STABLE AS "
        "$$ BEGIN RAISE EXCEPTION 'bad value %', v USING ERRCODE = code; END $$;"
        f"CREATE VIEW {name}_view AS SELECT {expression} AS x FROM {name}"
    )
    with pytest.raises(DataError, match=SAID[expression]) as caught:
        Study.of(PostgresTable(url, f"{name}_view"), {"x": "quasi"}).measure()
    assert "Ada" not in str(caught.value)


def test_a_table_called_temporary(server, postgres):
    server.execute("CREATE TABLE temporary_stays (x int); CREATE ROLE stranger LOGIN")
    server.execute("GRANT USAGE ON SCHEMA special TO stranger")
    try:
        with pytest.raises(DataError, match="GRANT SELECT"):
            Study.of(PostgresTable(postgres.url("stranger"), "special.temporary_stays"), {"x": "quasi"}).measure()
    finally:
        server.execute("DROP OWNED BY stranger; DROP ROLE stranger")


def test_a_connection_is_kept_alive(monkeypatch):
    import psycopg

    asked = []

    def connect(url, **more):
        asked.append(more)
        raise psycopg.OperationalError("connection failed")

    monkeypatch.setattr(psycopg, "connect", connect)
    for address in ("postgresql://me@host/db", "postgresql://me@host/db?keepalives_idle=5&connect_timeout=3"):
        with pytest.raises(OptionError, match="cannot connect"):
            Study.of(PostgresTable(address, "visits"), {"x": "quasi"}).measure()
    assert asked[0] == {"autocommit": True} | CONNECTION
    assert set(asked[0]) - set(asked[1]) == {"keepalives_idle", "connect_timeout"}


def test_a_population_of_another_database(server, url):
    name = new_table(server, "x int", "1")
    study = Study.of(PostgresTable(url, name), {"x": "quasi"})
    with pytest.raises(OptionError, match="in a different database"):
        study.measure(population=PostgresTable(url + "&connect_timeout=3", name))


# The command line.


def test_commands(server, url, tmp_path, monkeypatch, capsys):
    name = new_table(server, "who text, x text, s text", *(f"'p{i}', '0{i % 3}', 's{i % 4}'" for i in range(24)))
    server.execute(f"CREATE TABLE everybody AS SELECT who, x FROM {name}")
    monkeypatch.setenv("VISITS_URL", url)
    study = tmp_path / "study.yaml"
    study.write_text(
        f"version: 1\nsource: {{engine: postgres, url: 'env:VISITS_URL', table: special.{name}}}\n"
        "attributes:\n  who: {role: direct}\n  x: {role: quasi, hierarchy: {mask: 2}}\n  s: {role: sensitive}\n"
    )
    assert main(["measure", str(study), "--population", "table:everybody", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["k"] == 8
    out = tmp_path / "out.csv"
    assert main(["anonymize", str(study), "--method", "ola", "--k", "4", "-o", str(out), "--json"]) == 0
    assert len(out.read_text().splitlines()) == 25
    monkeypatch.delenv("VISITS_URL")
    capsys.readouterr()
    assert main(["measure", str(study)]) == 2
    assert "environment variable VISITS_URL, but it is not set" in capsys.readouterr().err


def test_a_table_that_is_named_without_its_prefix(server, url, tmp_path):
    name = new_table(server, "a int", "1")
    study = Study.of(PostgresTable(url, name), {"a": "quasi"})
    with pytest.raises(DataError, match=f"no file 'special.{name}'. For a table .* write table:special.{name}"):
        study.measure(population=f"special.{name}")
    assert study.measure(population=f"table:special.{name}").k == 1
    for other in ("special.csv", str(tmp_path / name)):
        with pytest.raises(DataError, match="Check the name and the folder"):
            study.measure(population=other)
