"""The script that our users were promised works from beginning to end, as it stands."""

from __future__ import annotations

import pytest

SCRIPT = """
import veilmark as vm

study = vm.Study.open("study.yaml")
study = vm.Study.of(df, quasi=["age", "zip"], sensitive=["dx"], direct=["name"], person="id",
                    hierarchies={"zip": vm.Mask(5), "age": vm.Intervals(5, 10, 20)},
                    weights={"dx": {"HIV": 0.9, "default": 0.1}})
guessed = vm.Study.guess(df)                     # roles guessed as `init` does; study.reasons says why
study.save("saved.yaml")

measured = study.measure(population=None, threshold=0.2)    # prints as a short readable text, and as a table in notebooks
scored = study.score(extract); ranked = study.rank([a, b]); breached = study.breach(leak)
release = study.anonymize(vm.Ola(k=5, suppression=0.05, models=[vm.TCloseness("dx", 0.6)]))
frames = release.to_pandas(), release.to_polars(), release.to_arrow()
release.write("out.parquet")
release.recoding.save("recoding.yaml"); applied = study.apply(release.recoding, new_df)
useful = study.utility(release); attacked = study.attack(release)
compared = study.compare_methods(["ola", "mondrian"], k=5)

ledger = vm.Ledger("ledger.db", key="ledger.key")        # made where there is none; a context manager
marking = vm.Marking(decoys=3, collusion=2)
copies = study.release(["ada", "bob"], vm.Ola(k=5), marking=marking, population=voters,
                       identity=["voter_id"], ledger=ledger, folder="copies")
verdict = ledger.trace("copies/bob.csv")                 # verdict.accused, verdict.recipients
claimed = ledger.trace(claims=claims)
reported = study.report("report.html", release=release, ledger=ledger)
"""

RESULTS = (
    "measured scored ranked breached release applied useful attacked compared copies verdict claimed reported ledger"
)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """All names of the script, after it ran in a folder of its own: on patients from a town, and a register of voters that
    has villages as well, whose people can serve as decoys."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    town, villages = 56_000, 24_000
    zips = [*rng.integers(13_000, 13_040, town), *rng.integers(14_000, 14_200, villages)]
    ids, ages = [f"V{i:05d}" for i in range(len(zips))], rng.integers(20, 80, len(zips))
    voters = pd.DataFrame({"voter_id": ids, "zip": [f"{z:05d}" for z in zips], "age": ages})
    df = voters.iloc[:town:10].assign(dx=rng.choice(["flu", "asthma", "HIV"], town // 10, p=[0.6, 0.3, 0.1]))
    df = df.assign(name=df.voter_id.str.replace("V", "N"), id=range(len(df)))
    new = voters.iloc[3:town:10].assign(dx=df.dx.to_numpy(), id=range(len(df)), name="x")
    leak, extract = df.head(200), df.head(300)
    given = {"df": df, "extract": extract, "a": df.head(50), "b": df.tail(400), "leak": leak, "voters": voters}
    folder = tmp_path_factory.mktemp("contract")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        df.to_csv("df.csv", index=False)
        (folder / "study.yaml").write_text("version: 1\nsource: df.csv\nattributes: {age: {role: quasi}}\n")
        found = {**given, "new_df": new, "claims": voters[["voter_id"]].head(20), "folder": folder}
        exec(compile(SCRIPT, "the contract", "exec"), found)
        yield found


def test_the_script_says_who_leaked(names):
    assert names["verdict"].accused == ("bob",)
    assert {r.name for r in names["verdict"].recipients} == {"ada", "bob"}
    assert names["claimed"].accused == ()


@pytest.mark.parametrize("name", RESULTS.split())
def test_every_result_is_readable(names, name):
    text = str(names[name])
    assert 1 < len(text.splitlines()) < 40
    assert "array(" not in text
    assert len(repr(names[name]).splitlines()) == 1
    assert "<table>" in names[name]._repr_html_()
    assert names[name].to_dict()


def test_what_is_published_is_anonymous_and_the_same_in_every_form(names):
    pandas, polars, arrow = names["frames"]
    assert pandas.groupby(["age", "zip"]).size().min() >= 5
    assert list(pandas.columns) == polars.columns == arrow.column_names == ["zip", "age", "dx"]
    assert len(pandas) == len(polars) == len(arrow) == names["release"].records


def test_what_is_written_is_there(names):
    for file in ("saved.yaml", "out.parquet", "recoding.yaml", "ledger.db", "ledger.key", "copies/ada.csv"):
        assert (names["folder"] / file).stat().st_size
    page = (names["folder"] / "report.html").read_text()
    assert names["copies"].release in page
    assert "release.parquet" not in page


def test_a_guess_has_reasons(names):
    assert set(names["guessed"].reasons) == set(names["df"].columns)
