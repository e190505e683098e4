"""The attacks as plainly as can be: loops over targets, published rows and labels, and exact fractions.

A release is `quasi` (rows: attribute -> label, and a group for each part) and `parts` (rows: "group", attribute -> labels).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np


@dataclass
class Column:
    """The source's values (texts, None for missing; once for everybody who has them), levels, and published labels."""

    had: list
    levels: list  # value -> label, for each level above the values
    labels: set
    number: bool = False
    amount: bool = False

    def __post_init__(self):
        self.values = set(self.had)
        self.covers = {label: self._cover(label) for label in self.labels}
        self.means = set()
        plain = [x for x in self.labels if x is not None and re.fullmatch(r"-?\d+(\.\d+)?", x)]
        if self.number and any(x not in self.values and not any(x in m.values() for m in self.levels) for x in plain):
            self.means = set(plain)
        self.amount |= bool(self.means)

    def _cover(self, label):
        if label in self.values:
            return {label}
        for level in self.levels:
            if label in level.values():
                return {v for v in self.values if level.get(v) == label}
        if label == "*" or label is None:
            return set(self.values)
        if found := re.fullmatch(r"(\d+)-(\d+)", label):
            low, high = map(float, found.groups())
            return {v for v in self.values if v is not None and low <= float(v) <= high}
        if found := re.fullmatch(r"\{(.*)\}", label):
            return set(found[1].split(", "))
        return set(self.values)

    def fits(self, label, value):
        return value is not None if label in self.means else value in self.covers[label]

    def holds(self, label, value):
        """As `fits`, but of means only the nearest."""
        if label not in self.means:
            return value in self.covers[label]
        if value is None:
            return False
        apart = {m: abs(float(m) - float(value)) for m in self.means}
        return apart[label] <= min(apart.values()) * (1 + 1e-9)

    @property
    def tolerance(self):
        numbers = [float(v) for v in self.had if v is not None]
        if not self.amount or not numbers:
            return 0.0
        low, high = np.quantile(numbers, [0.05, 0.95])
        return 0.05 * (high - low)

    def near(self, one, other):
        if one == other:
            return True
        if not self.amount or one is None or other is None:
            return False
        return abs(float(one) - float(other)) <= self.tolerance * (1 + 1e-9)

    def told(self, label):
        """How likely each value is behind a label."""
        if label in self.means:
            return {label: Fraction(1)}
        often = {v: self.had.count(v) for v in self.covers[label]}
        return {v: Fraction(n, sum(often.values())) for v, n in often.items()}


@dataclass
class Oracle:
    persons: list  # each: {"quasi": {name: value}, "sensitive": {name: [values]}}
    columns: dict  # name -> Column
    quasi: list
    parts: list
    of_persons: bool = True
    names: list = field(default_factory=list)

    def part_of(self, name):
        return next(j for j, rows in enumerate(self.parts) if name in rows[0])

    def classes(self, known):
        """The published combinations of labels that somebody fits."""
        names = list(known)
        fitting = {
            tuple(row[n] for n in names)
            for row in self.quasi
            if all(self.columns[n].fits(row[n], known[n]) for n in names)
        }

        def apart(labels):
            total = 0.0
            for name, label in zip(names, labels, strict=True):
                column = self.columns[name]
                if label in column.means and known[name] is not None:
                    numbers = [float(row[name]) for row in self.quasi if row[name] in column.means]
                    total += ((float(label) - float(known[name])) / (float(np.std(numbers)) or 1.0)) ** 2
            return total

        least = min(map(apart, fitting), default=0)
        return {labels for labels in fitting if apart(labels) <= least * (1 + 1e-9) + 1e-18}

    def row_holds(self, row, facts):
        return all(any(self.columns[n].holds(label, v) for label in row[n]) for n, v in facts)

    def group(self, j, g):
        return [row for row in self.parts[j] if row["group"] == g]

    def candidates(self, known, facts):
        """The published persons who may be the target; None of the quasi-identifiers known: anybody."""
        fitting = None if known is None else self.classes(known)
        found = []
        for row in self.quasi:
            if fitting is not None and tuple(row[n] for n in known) not in fitting:
                continue
            held = True
            for j in range(len(self.parts)):
                mine = [f for f in facts if self.part_of(f[0]) == j]
                rows = self.group(j, row["groups"][j])
                asked = [mine] if self.of_persons else [[f] for f in mine]
                held &= all(any(self.row_holds(r, a) for r in rows) for a in asked if a)
            if held:
                found.append(row)
        return found

    def weights(self, name, known, facts):
        """The rows of an attribute's part with their weights."""
        j = self.part_of(name)
        own = [f for f in facts if self.part_of(f[0]) == j and (self.of_persons or f[0] != name)]
        groups = {row["group"] for row in self.parts[j]}
        if len(groups) == 1:
            return [(r, Fraction(1)) for r in self.parts[j] if self.row_holds(r, own)] if own else []
        found = []
        leads = [row["groups"][j] for row in self.candidates(known, facts)]
        for row in self.parts[j]:
            weight = Fraction(leads.count(row["group"]), len(self.group(j, row["group"])))
            if weight and self.row_holds(row, own):
                found.append((row, weight))
        return found

    def everybody(self, name):
        j = self.part_of(name)
        leads = [row["groups"][j] for row in self.quasi]
        return [(row, Fraction(leads.count(row["group"]), len(self.group(j, row["group"])))) for row in self.parts[j]]

    def right(self, name, weighted, rest, known):
        """How probably the best guess is among the rest of a person's values."""
        column, own = self.columns[name], {}
        for row, weight in weighted:
            for label in row[name]:
                for value, share in column.told(label).items():
                    if share * weight:
                        own[value] = own.get(value, 0) + share * weight
        score = {v: sum(w for x, w in own.items() if column.near(v, x)) for v in own}
        score = {v: s for v, s in score.items() if v not in known}
        if not score:
            return 0.0
        best = [v for v, s in score.items() if s == max(score.values())]
        return sum(any(column.near(v, r) for r in rest) for v in best) / len(best)

    def infer(self, facts_of, quasi, same):
        """For each person and attribute (success, control); None where there is nothing to guess."""
        found = []
        for person, facts in zip(self.persons, facts_of, strict=True):
            mine = {}
            for name in self.names:
                known = [v for n, v in facts if n == name]
                rest = [v for v in person["sensitive"][name] if v not in known]
                if not rest or (known and not same):
                    mine[name] = None
                    continue
                who = person["quasi"] if quasi else None
                weighted = self.weights(name, who, facts)
                if not weighted and quasi:
                    weighted = self.weights(name, who, [])
                everybody = self.everybody(name)
                mine[name] = (
                    self.right(name, weighted or everybody, rest, known),
                    self.right(name, everybody, rest, known),
                )
            found.append(mine)
        return found

    def mean(self, found):
        """Success and control of an attack, and its number of targets."""
        own = [[pair for pair in mine.values() if pair] for mine in found]
        own = [pairs for pairs in own if pairs]
        if not own:
            return 0.0, 0.0, 0
        means = [tuple(sum(p[i] for p in pairs) / len(pairs) for i in (0, 1)) for pairs in own]
        return math.fsum(m[0] for m in means) / len(own), math.fsum(m[1] for m in means) / len(own), len(own)

    def called_in(self, known, facts):
        return bool(self.candidates(known, facts))

    def called_in_by_marginals(self, known, facts):
        fits = all(any(self.columns[n].fits(row[n], v) for row in self.quasi) for n, v in known.items())
        return fits and all(
            any(self.columns[n].holds(label, v) for row in self.parts[self.part_of(n)] for label in row[n])
            for n, v in facts
        )

    def linked(self, known, population):
        """The mean over rows of 1 in the number of people that the row's class links to, its own rows at the least."""
        total = Fraction(0)
        fitting = [self.classes(person) for person in population]
        rows = [tuple(row[n] for n in known) for row in self.quasi]
        for row in rows:
            count = sum(row in labels for labels in fitting)
            least = rows.count(row) if self.of_persons else 1
            total += Fraction(1, max(count, least)) if count else 0
        return float(total / len(self.quasi))
