"""What a chart draws, read back from its specification."""

from __future__ import annotations


def data(chart):
    """All rows that a chart was given, list by list, from its checked specification."""
    spec = chart.to_dict()
    return [*spec.get("datasets", {}).values(), *_inline(spec)]


def _inline(part):
    if isinstance(part, dict):
        if isinstance(part.get("data"), dict) and "values" in part["data"]:
            yield part["data"]["values"]
        for key, value in part.items():
            if key != "data":
                yield from _inline(value)
    elif isinstance(part, list):
        for value in part:
            yield from _inline(value)


def rows(chart, field):
    """The rows that have a field."""
    return next(of for of in data(chart) if of and field in of[0])


def texts(part):
    """All titles and subtitles, as one text."""
    if isinstance(part, dict):
        title = part.get("title")
        if isinstance(title, dict) and "text" in title:
            yield str(title["text"])
            yield from title.get("subtitle", [])
        for value in part.values():
            yield from texts(value)
    elif isinstance(part, list):
        for value in part:
            yield from texts(value)


def words(chart):
    return " ".join(texts(chart.to_dict()))
