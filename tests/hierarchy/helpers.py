"""What the tests of all kinds of hierarchy share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from veilmark.errors import HierarchyError
from veilmark.hierarchy import Levels, parse_spec, resolve
from veilmark.tables.domain import Domain


def domain(*values: Any) -> Domain:
    return Domain.of(pa.array(values) if values else pa.array([], pa.string()))


def levels_of(spec: dict[str, Any] | None, *values: Any, folder: Path | None = None) -> Levels:
    return resolve(spec and parse_spec(spec), domain(*values), "col", folder)


def paths(levels: Levels) -> dict[str | None, list[str | None]]:
    """Value -> its labels from level 1 to the top."""
    columns = [levels.of_values(level).to_pylist() for level in range(levels.height + 1)]
    return {value: above for value, *above in map(list, zip(*columns, strict=True))}


def failure(spec: dict[str, Any], *values: Any, folder: Path | None = None) -> str:
    with pytest.raises(HierarchyError) as caught:
        levels_of(spec, *values, folder=folder)
    return str(caught.value)


def spec_failure(spec: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        parse_spec(spec)
    assert isinstance(caught.value, ValueError)
    errors = caught.value.errors()
    assert len(errors) == 1
    return errors[0]["msg"]


def check_sound(levels: Levels, domain: Domain) -> None:
    """Of every hierarchy: distinct and used labels, every value labelled, nesting, one label at the top."""
    assert levels.labels[0] is domain.text
    assert len(levels.labels[-1]) == 1
    assert set(levels.labels[-1][0].as_py()) == {"*"}
    for level in range(levels.height + 1):
        labels, codes = levels.labels[level].to_pylist(), levels.codes[level]
        assert codes.dtype == np.int32
        assert len(codes) == len(domain)
        assert len(set(labels)) == len(labels)
        assert len(domain) == 0 or set(codes.tolist()) == set(range(len(labels)))
        assert levels.leaves(level).sum() == len(domain)
        for upper in range(level, levels.height + 1):
            up = levels.up(level, upper)
            assert len(up) == len(labels)
            assert (up[codes] == levels.codes[upper]).all()
