"""The f-slip paper's example: its Table 2, k-anonymous for one record per person, falls to the attacks; f-slip resists."""

from __future__ import annotations

import warnings

import pytest

from veilmark.study.study import Study
from veilmark.veil.fslip import FSlip
from veilmark.workbench.anonymize_persons import anonymize_persons
from veilmark.workbench.attack import attack

TABLE_1 = """id,age,gender,zip,salary,poverty,education,disease
1,19,F,60000,20000,medium,Bachelors,401
2,13,M,55000,10201,high,9th,V22
2,13,M,55000,10201,high,9th,V90
3,17,F,70000,17258,medium,12th,724
3,17,F,70000,17258,medium,12th,408
4,30,F,68000,25364,low,Master,276
4,30,F,68000,25364,low,Master,402
5,16,M,75000,19223,medium,11th,492
6,32,M,56000,21012,low,Master,272
6,32,M,56000,21012,low,Master,404
6,32,M,56000,21012,low,Master,490
"""
TABLE_2 = """age,gender,zip,salary,poverty,education,disease
15-20,F,50000-60000,20000,medium,Bachelors,401
15-20,M,50000-60000,10201,high,9th,V22
1*,M,55000-75000,10201,high,9th,V90
1*,F,55000-75000,17258,medium,12th,724
17,"{F, M}",60000-70000,17258,medium,12th,408
30,"{F, M}",60000-70000,25364,low,Master,276
30,F,68000,25364,low,Master,402
16,M,75000,19223,medium,11th,492
32,M,56000,21012,low,Master,272
3*,*,5****,21012,low,Master,404
3*,*,5****,21012,low,Master,490
"""
SCHOOL = {"9th": "lower", "11th": "lower", "12th": "middle", "Bachelors": "middle", "Master": "upper"}
CHAPTERS = {"V22": "C", "724": "G", "276": "B", "272": "B"} | dict.fromkeys(
    ["401", "V90", "408", "402", "492", "404", "490"], "D"
)
GROUPS = (("salary", "poverty"), ("education", "disease"))


@pytest.fixture
def study(tmp_path):
    def of(masked):
        (tmp_path / "table1.csv").write_text(TABLE_1)
        hidden = {name: {"hierarchy": {"mask": size}} if masked else {} for name, size in (("age", 2), ("zip", 5))}
        attributes = {name: {"role": "quasi"} | hidden.get(name, {}) for name in ("age", "gender", "zip")}
        attributes |= {"salary": {"role": "sensitive"}, "poverty": {"role": "sensitive"}}
        levels = {"education": SCHOOL, "disease": CHAPTERS}
        attributes |= {n: {"role": "sensitive", "hierarchy": {"levels": [m]}} for n, m in levels.items()}
        return Study.of(tmp_path / "table1.csv", attributes, person="id")

    return of


def test_table_2_falls(study, tmp_path):
    (tmp_path / "table2.csv").write_text(TABLE_2)
    attacks = attack(study(masked=True), tmp_path / "table2.csv").attacks
    # By hand: Alan, Dalia, Helen and Tom fit rows of their own only. Lisa and Tony fit one of their own and one of
    # somebody else's, and so half of the guesses are right; Lisa shares her poverty with the other.
    qicorr = attacks["qicorr"]
    own = {name: round(of["success"] * 12) for name, of in qicorr.details["attributes"].items()}
    assert own == {"salary": 10, "poverty": 11, "education": 10, "disease": 10}
    assert qicorr.success == pytest.approx(41 / 48)
    # Guessed from all records: 21012, low and Master, each right for whom it is right; of 11 codes all are as likely.
    assert qicorr.control == pytest.approx((1 + 2 + 2 + 1) / 24)
    assert all(attacks[name].gain > 0.49 for name in ("bk", "msacorr", "qicorr", "mcorr", "nmcorr", "linkage"))


@pytest.mark.parametrize("link", ["none", "groups"])
def test_strict_resists_where_paper_leaks(study, link):
    opened = study(masked=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        releases = {
            preset: anonymize_persons(opened, FSlip(k=2, preset=preset, link=link, groups=GROUPS))
            for preset in ("paper", "strict")
        }
    paper, strict = (attack(opened, releases[preset]).attacks for preset in ("paper", "strict"))
    # As printed, (16, 57500, F) stands alone, and who is known to have a Master has B, D, D.
    assert paper["linkage"].success > 1 / 2 >= strict["linkage"].success
    assert paper["bk"].gain > 0.13 > 0.1 > strict["bk"].gain
    assert all(strict[name].gain < 0.1 for name in ("bk", "msacorr", "qicorr", "mcorr", "nmcorr"))
    if link == "none":
        assert paper["qicorr"].success == pytest.approx(paper["qicorr"].control)
        assert strict["qicorr"].success == pytest.approx(strict["qicorr"].control)
