"""The built-in hierarchy of ICD-9 codes."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierarchy.helpers import check_sound, domain, failure, levels_of, paths, spec_failure
from veilmark.hierarchy import parse_spec, resolve
from veilmark.hierarchy.icd9 import CHAPTERS

ICD9 = {"builtin": "icd9"}
CODES = Path(__file__).parents[3] / "shared/data/icd9/icd9_codes.csv"


def chapter_of(category: str) -> str:
    """The obvious way."""
    if category[0] == "V":
        return "V01-V91 factors influencing health"
    if category[0] == "E":
        return "E000-E999 external causes"
    return next(f"{a:03}-{b} {name}" for a, b, name in CHAPTERS if a <= int(category) <= b)


def test_codes_with_and_without_dot_lead_to_category_and_chapter():
    found = paths(
        levels_of(ICD9, "401", "4019", "401.9", "V22", "V220", "v22.0", "E812", "E812.0", "E8120", "005", None)
    )
    circulatory = ["401", "390-459 circulatory", "*"]
    factors, causes = ["V22", "V01-V91 factors influencing health", "*"], ["E812", "E000-E999 external causes", "*"]
    assert found["401"] == found["4019"] == found["401.9"] == circulatory
    assert found["V22"] == found["V220"] == found["v22.0"] == factors
    assert found["E812"] == found["E812.0"] == found["E8120"] == causes
    assert found["005"] == ["005", "001-139 infectious and parasitic", "*"]
    assert found[None] == [None, None, "*"]


def test_numbers_may_have_lost_their_zeros():
    found = paths(levels_of(ICD9, 5, 41, 401, 25000))
    assert [found[code][0] for code in ("5", "41", "401", "25000")] == ["005", "041", "401", "250"]
    assert paths(levels_of(ICD9, 5.1, 401.0))["5.1"][0] == "005"


def test_chapters_follow_each_other_without_a_gap():
    assert (CHAPTERS[0][0], CHAPTERS[-1][1]) == (1, 999)
    assert all(last + 1 == first for (_, last, _), (first, _, _) in pairwise(CHAPTERS))


def test_what_is_no_code_is_named():
    assert "these values are not ICD-9 codes: '-1', 'flu'" in failure(ICD9, "401", "flu", "-1")
    assert "'000'" in failure(ICD9, "000", "401")
    assert paths(levels_of({**ICD9, "others": "*"}, "401", "flu"))["flu"] == ["*", "*", "*"]


def test_only_known_names():
    assert "icd9" in spec_failure({"builtin": "icd11"})
    assert "one kind" in spec_failure({**ICD9, "mask": 1})


CATEGORY = st.one_of(
    st.integers(1, 999).map("{:03}".format),
    st.integers(1, 91).map("V{:02}".format),
    st.integers(0, 999).map("E{:03}".format),
)


@given(st.lists(st.tuples(CATEGORY, st.sampled_from(["", ".", "dotless"]), st.integers(0, 9)), min_size=1, max_size=20))
def test_any_code_stands_under_its_category_and_chapter(codes: list[tuple[str, str, int]]):
    written = {c + {"": "", ".": f".{d}", "dotless": str(d)}[form]: c for c, form, d in codes}
    levels, of = levels_of(ICD9, *written), domain(*written)
    check_sound(resolve(parse_spec(ICD9), of, "col"), of)
    found = paths(levels)
    assert {code: above[:2] for code, above in found.items()} == {
        code: [category, chapter_of(category)] for code, category in written.items()
    }


@pytest.mark.skipif(not CODES.exists(), reason="needs shared/data/icd9")
def test_every_real_code():
    rows = [row for row in csv.reader(CODES.open(encoding="utf-8"), delimiter=";") if row and "-" in row[3]]
    found = paths(levels_of(ICD9, *{row[0] for row in rows}, *{row[0].replace(".", "") for row in rows}))
    for code, _, _, span, _, category, *_ in rows:
        for written in (code, code.replace(".", "")):
            assert found[written][0] == category
            chapter = found[written][1]
            assert chapter == chapter_of(category)
        if span[0].isdigit():
            first, last = map(int, span.split("-"))
            own_first, own_last = map(int, chapter.split()[0].split("-"))
            assert own_first <= first
            assert last <= own_last
