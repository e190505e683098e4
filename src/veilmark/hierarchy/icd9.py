"""ICD-9 codes of diseases: code, category of three digits, chapter.

    401.9  ->  401  ->  390-459 circulatory  ->  *

Codes are taken with or without the dot (401.9, 4019), V and E codes too (V22.0, E8120), and with leading zeros lost as
spreadsheets lose them, up to three digits (5 or 5.1 for 005 or 005.1).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilmark.hierarchy.levels import OFFER, Level, check_covered, level_of, spread
from veilmark.hierarchy.spec import BuiltinSpec
from veilmark.tables.domain import Domain

CHAPTERS = (
    (1, 139, "infectious and parasitic"),
    (140, 239, "neoplasms"),
    (240, 279, "endocrine, nutritional, metabolic, immunity"),
    (280, 289, "blood"),
    (290, 319, "mental"),
    (320, 389, "nervous system and sense organs"),
    (390, 459, "circulatory"),
    (460, 519, "respiratory"),
    (520, 579, "digestive"),
    (580, 629, "genitourinary"),
    (630, 679, "pregnancy and childbirth"),
    (680, 709, "skin"),
    (710, 739, "musculoskeletal"),
    (740, 759, "congenital"),
    (760, 779, "perinatal"),
    (780, 799, "symptoms and ill-defined"),
    (800, 999, "injury and poisoning"),
)
"""The first and the last category of each chapter; between them there is no gap."""
FACTORS = "V01-V91 factors influencing health"
CAUSES = "E000-E999 external causes"

_PLAIN = r"^(?P<short>[0-9]{1,3})(?:\.[0-9]{1,2})?$"
_DOTLESS = r"^(?P<long>[0-9]{3})[0-9]{1,2}$"
_FACTOR = r"^(?P<factor>V[0-9]{2})(?:\.?[0-9]{1,2})?$"
_CAUSE = r"^(?P<cause>E[0-9]{3})(?:\.?[0-9])?$"


def icd9_levels(spec: BuiltinSpec, domain: Domain, column: str) -> list[Level]:
    """The levels of categories and of chapters."""
    categories = _categories(domain.text)
    covered = np.asarray(categories.is_valid())
    if spec.others is None:
        fault = f"Column '{column}' has an ICD-9 hierarchy, but these values are not ICD-9 codes:"
        check_covered(
            domain.text, covered, fault, f"Correct them, declare codes for missing values (missing: [-1]), {OFFER}"
        )
    found = categories.drop_null()
    rows = np.arange(len(found))
    return [spread(level_of(labels, rows), covered, domain.text) for labels in (found, _chapters(found))]


def _categories(text: pa.Array) -> pa.Array:
    """The category of each code, null for what is no code."""
    text = pc.utf8_upper(pc.utf8_trim_whitespace(text))
    found = [pc.struct_field(pc.extract_regex(text, form), 0) for form in (_PLAIN, _DOTLESS, _FACTOR, _CAUSE)]
    category = pc.coalesce(pc.utf8_lpad(found[0], 3, "0"), *found[1:])
    return pc.if_else(pc.is_in(category, pa.array(["000", "V00"])), pa.scalar(None, pa.string()), category)


def _chapters(categories: pa.Array) -> pa.Array:
    """The label of each category's chapter."""
    labels = [f"{first:03}-{last} {name}" for first, last, name in CHAPTERS] + [FACTORS, CAUSES]
    number = pc.if_else(pc.match_substring_regex(categories, "^[VE]"), "0", categories).cast(pa.int64()).to_numpy()
    place = np.searchsorted([first for first, _, _ in CHAPTERS], number, "right") - 1
    place = np.where(np.asarray(pc.starts_with(categories, "V")), len(CHAPTERS), place)
    place = np.where(np.asarray(pc.starts_with(categories, "E")), len(CHAPTERS) + 1, place)
    return pa.array(labels, pa.string()).take(pa.array(place))
