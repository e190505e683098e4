"""PostgreSQL's own: its types, views and names, one snapshot, and what is said when something is not right."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from veilmark.cli.main import main
from veilmark.engines.postgres import PgTable, Postgres
from veilmark.engines.sources import PostgresTable
from veilmark.errors import DataError, OptionError, VeilmarkError
from veilmark.study import Study
from veilmark.veil.ola import Ola

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server(postgres):
    """A connection that prepares what is tested."""
    import psycopg

    with psycopg.connect(url_of(postgres), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA special; SET search_path = special")
        yield connection
        connection.execute("DROP SCHEMA special CASCADE")


@pytest.fixture
def url(postgres):
    return url_of(postgres) + "&options=-csearch_path%3Dspecial"


def url_of(folder, user="veilmark"):
    return f"postgresql://{user}@/postgres?host={folder}"


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
    for _ in range(100):
        if server.execute("SELECT FROM pg_stat_activity WHERE application_name = 'veilmark'").fetchone() is None:
            return True
        time.sleep(0.05)
    return False


def end_sessions(server):
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'veilmark'")


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
        assert table.sample(0).column_names == ["f"]
    with pytest.raises(DataError, match=r"Column 'b' of '.*' holds lists, records or bytes"):
        Study.of(PostgresTable(url, name), {"b": "quasi"}).measure()


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


def test_an_unknown_table(server, url):
    server.execute("CREATE TABLE patients (x int)")
    with pytest.raises(DataError, match=r"no table 'patient' in the database 'postgres'.*Did you mean 'patients'"):
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
    assert study.anonymize(Ola(k=2)).table()["x"].to_pylist() == [3, 2, 1, 0]


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


# Bad input.


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://me:hush@/db?host=/nowhere", "cannot connect to the database 'db' on /nowhere"),
        ("postgresql://me:hush@localhost:1/db", "cannot connect to the database 'db' on localhost"),
        ("postgresql+what://me:hush@localhost/db", "address cannot be read"),
        ("postgresql://me:hush@localhost:port/db", "cannot connect"),
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
        Study.of(PostgresTable(url_of(postgres, "nobody_here"), "t"), {"x": "quasi"}).measure()


def test_permissions(server, postgres, tmp_path):
    name = new_table(server, "x int, y text", "1, 'a'", "1, 'b'")
    server.execute("CREATE ROLE guest LOGIN; REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
    study = Study.of(PostgresTable(url_of(postgres, "guest"), f"special.{name}"), {"x": "quasi", "y": "sensitive"})
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
        server.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC; DROP OWNED BY guest; DROP ROLE guest")
    assert list(tmp_path.iterdir()) == []


def test_a_lost_connection(server, url, tmp_path, monkeypatch):
    name = new_table(server, "x int", *"1112223")
    write = PgTable.write_recoded

    def lose(self, *arguments):
        end_sessions(server)
        write(self, *arguments)

    monkeypatch.setattr(PgTable, "write_recoded", lose)
    with pytest.raises(VeilmarkError, match="was lost half-way") as caught:
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
        with pytest.raises(VeilmarkError, match="was lost half-way"):
            list(rows)


def test_a_limit_of_time(server, url):
    server.execute("CREATE VIEW slow AS SELECT 1 AS x FROM pg_sleep(5)")
    with pytest.raises(VeilmarkError, match=r"stopped the work.*statement timeout"):
        Study.of(PostgresTable(url + "%20-cstatement_timeout%3D200", "slow"), {"x": "quasi"}).measure()


def test_interrupted(server, url):
    server.execute("CREATE VIEW slower AS SELECT 1 AS x FROM pg_sleep(30)")
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        Study.of(PostgresTable(url, "slower"), {"x": "quasi"}).measure()
    assert all_ended(server)


def test_values_in_errors_are_not_shown(server, url):
    name = new_table(server, "x text", "'secret'")
    server.execute(f"CREATE VIEW broken AS SELECT CAST(x AS int) AS x FROM {name}")
    with pytest.raises(DataError, match="does not fit the type") as caught:
        Study.of(PostgresTable(url, "broken"), {"x": "quasi"}).measure()
    assert "secret" not in str(caught.value)


def test_a_population_of_another_database(server, url):
    name = new_table(server, "x int", "1")
    study = Study.of(PostgresTable(url, name), {"x": "quasi"})
    with pytest.raises(OptionError, match="in another database"):
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
    assert "environment variable VISITS_URL, which is not set" in capsys.readouterr().err
