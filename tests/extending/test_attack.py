"""An example: an attack of one's own. The function belongs in a module of `attack/`."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from people import people
from veilmark.attack.compatible import fitting_classes
from veilmark.attack.harness import result
from veilmark.attack.view import view_of_persons


def homogeneity(view, persons, attribute):
    """A neighbour knows the target's quasi-identifiers, and is told a value only where all in the one class that fits
    share it. The control names the commonest value."""
    part = view.parts[view.part_of(attribute)]
    values = part.columns[attribute].values
    starts = part.starts[:-1]
    alike = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
    known = {name: column.values for name, column in persons.quasi.items()}
    sets = fitting_classes(view, known, len(persons))
    single = (np.diff(sets.starts) == 1)[sets.of]
    success = single & alike[sets.members[sets.starts[sets.of]]]
    common = np.bincount(values).argmax()
    return result(success, persons.sensitive[attribute].values == common, attribute=attribute)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"), st.sampled_from("xyz")), min_size=1, max_size=30)
)
def test_classes_that_are_alike_tell(rows):
    cities, sexes, ills = (list(column) for column in zip(*rows, strict=True))
    made = people({"city": cities, "sex": sexes}, {"ill": [[ill] for ill in ills]})
    found = homogeneity(view_of_persons(made.persons, made.levels), made.persons, "ill")
    alike = {q for q in {row[:2] for row in rows} if len({row[2] for row in rows if row[:2] == q}) == 1}
    assert found.success == np.mean([row[:2] in alike for row in rows])
    assert found.control == Counter(ills).most_common(1)[0][1] / len(rows)
    assert found.interval[0] <= found.success <= found.interval[1]
