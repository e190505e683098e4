"""The f-slip paper's worked example."""

from __future__ import annotations

import json

from veilmark.reproduce.fslip import HALF, MEAN, ORDER, SAME, V_CODES, worked_example


def test_every_row_of_the_papers_tables_holds():
    rows = worked_example()
    assert [row.to_dict() for row in rows if not row.holds] == []
    verdicts = [row.verdict for row in rows]
    assert verdicts.count(HALF) == 2
    assert sum(MEAN in verdict for verdict in verdicts) == 3
    assert verdicts.count(ORDER) == 3
    assert verdicts.count(V_CODES) == 1
    assert verdicts.count(SAME) >= 15
    assert json.dumps([row.to_dict() for row in rows])


def test_what_table_9_claims_is_not_so_and_strict_mends_it():
    claims = {(row.ours, row.verdict) for row in worked_example() if row.table.startswith("9 ")}
    assert ("k = 1", "not so: (16, 57,500, F) is alone") in claims
    assert ("l = 1", "not so: who is in slice 3 is a Master") in claims
    assert sum(verdict == "mended" for _, verdict in claims) == 2
