"""The scores straight from the tkl paper, over rows that are dicts of texts (None: missing)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict


def groups(rows, columns):
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[c] for c in columns)].append(row)
    return found


def shares(rows, column):
    return {v: n / len(rows) for v, n in Counter(r[column] for r in rows).items()}


def equal_distance(p, q):
    return sum(abs(p.get(v, 0) - q.get(v, 0)) for v in {*p, *q}) / 2


def record_factors(source, quasi, sensitive, person=None):
    """(DF_k, DF_l, DF_t) of each record of a source with quasi-identifiers."""
    classes = groups(source, quasi)
    whole = {s: shares(source, s) for s in sensitive}
    result = []
    for row in source:
        members = classes[tuple(row[c] for c in quasi)]
        size = len({r[person] for r in members}) if person else len(members)
        diversity = min(
            len({r[s] for r in members if all(r[o] == row[o] for o in sensitive if o != s)}) for s in sensitive
        )
        distance = max(equal_distance(shares(members, s), whole[s]) for s in sensitive)
        result.append((size, diversity, distance))
    return result


def table_factors(table, sensitive):
    """The same of a published table without quasi-identifiers: one for all its records."""
    lowest = min(f[1] for f in record_factors(table, [], sensitive))
    return [(len(table), lowest, 0.0)] * len(table)


def scores(records, x=1.0, cap=False):
    """records: (weight, DF_k, DF_l, DF_t) each."""
    power = 1 if math.isinf(x) else len(records) ** (1 / x)
    tkl = [(t + (min(1, w) if cap else w)) / values for w, _, values, t in records]
    return {
        "m": power * max(min(1, w) / k for w, k, _, _ in records),
        "l_severity": sum(w / k for w, k, _, _ in records),
        "tkl": sum(tkl),
        "tkl_max": max(tkl),
    }
