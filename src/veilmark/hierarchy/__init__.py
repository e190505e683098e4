"""Hierarchies: how the values of a column become coarser, level by level, up to `*`.

What a study file holds under `hierarchy:`, one kind at a time:

    {intervals: [5, 10, 20]}                          numbers in bins of nested widths
    {mask: 5}                                         one more character hidden a level
    {dates: [month, year, decade]}                    coarser and coarser units of time
    {file: education.csv}                             ARX's form, value;level1;level2;…
    {levels: [{Male: Person, Female: Person}]}        maps from the labels of the level below
    {builtin: icd9}                                   codes of diseases: category, chapter

`resolve` turns one of them into the `Levels` of a domain. Level 0 is the value, the last level is one label
for all. A missing value is a category of its own below the top.
"""

from veilmark.hierarchy.arx import write_arx
from veilmark.hierarchy.levels import TOP, Levels
from veilmark.hierarchy.resolve import resolve
from veilmark.hierarchy.spec import (
    BuiltinSpec,
    DateSpec,
    FileSpec,
    HierarchySpec,
    IntervalSpec,
    MapSpec,
    MaskSpec,
    parse_spec,
)

__all__ = [
    "TOP",
    "BuiltinSpec",
    "DateSpec",
    "FileSpec",
    "HierarchySpec",
    "IntervalSpec",
    "Levels",
    "MapSpec",
    "MaskSpec",
    "parse_spec",
    "resolve",
    "write_arx",
]
