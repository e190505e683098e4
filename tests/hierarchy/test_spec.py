from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from hierarchy.helpers import spec_failure
from veilmark.hierarchy import HierarchySpec, parse_spec

SPECS = [
    {"intervals": [5, 10, 20]},
    {"intervals": [0.1, 2.5], "offset": 0.5, "others": "*"},
    {"mask": 5},
    {"mask": 5, "side": "left"},
    {"dates": ["month", "year"], "format": "%d.%m.%Y", "others": "*"},
    {"file": "education.csv"},
    {"file": "education.csv", "others": "*"},
    {"levels": [{"Male": "Person", "Female": "Person"}, {"Person": "Human"}]},
]


class Attribute(BaseModel):
    role: str = "quasi"
    hierarchy: HierarchySpec | None = None


@pytest.mark.parametrize("spec", SPECS)
def test_specs_are_written_as_they_were_read(spec):
    attribute = Attribute.model_validate({"hierarchy": spec})
    assert attribute.hierarchy == parse_spec(spec)
    assert attribute.model_dump(exclude_defaults=True) == {"hierarchy": spec}
    assert Attribute.model_validate(attribute.model_dump()) == attribute
    assert Attribute.model_validate_json(attribute.model_dump_json()) == attribute
    assert Attribute(hierarchy=attribute.hierarchy) == attribute


def test_no_spec_is_none():
    assert Attribute.model_validate({"hierarchy": None}).hierarchy is None


def test_specs_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        parse_spec({"mask": 5}).mask = 6


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"interval": [5]}, "'interval' is not a kind of hierarchy. Did you mean 'intervals'?"),
        ({"interval": [5], "others": "*"}, "'interval' is not a kind"),
        ({"tree": 1}, "The kinds are 'intervals', 'mask', 'dates', 'file', 'levels', 'builtin'."),
        ({"others": "*"}, "'others' is not a kind of hierarchy"),
        ({5: 1}, "'5' is not a kind of hierarchy"),
        ({"mask": 5, "intervals": [5]}, "'intervals', 'mask'. Keep one."),
        ({"intervals": [5], "ofset": 1}, "'ofset' is not an option of 'intervals'. Did you mean 'offset'?"),
        ({"intervals": [5], "side": "left"}, "'side' is not an option of 'intervals'."),
        ({}, "A hierarchy is a mapping"),
        ("education.csv", "A hierarchy is a mapping"),
        ([5, 10], "A hierarchy is a mapping"),
    ],
)
def test_wrong_keys(spec, words):
    assert words in spec_failure(spec)


def test_place_of_a_fault_in_a_study():
    with pytest.raises(ValidationError) as caught:
        Attribute.model_validate({"hierarchy": {"mask": 0}})
    assert [error["loc"] for error in caught.value.errors()] == [("hierarchy", "mask", "mask")]
