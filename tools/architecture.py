"""Draw the rooms of veilmark, one band for each layer that pyproject.toml allows.

`python tools/architecture.py` writes docs/images/architecture.svg. A test compares what is there with what would be drawn.
Imports point down, so that no arrows are needed; all imports are listed in the picture's description.
"""

from __future__ import annotations

from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
WIDE, BAND, GAP, LEFT, RIGHT = 760, 40, 10, 16, 16
BANDS = (
    ("Front doors", "#e3edf7", ("cli", "web", "services")),
    ("Verbs and pages", "#e8f1ec", ("workbench", "reproduce", "report")),
    ("Accountability", "#f6efe3", ("mark", "trace", "ledger")),
    ("Methods", "#f1eaf5", ("veil", "utility", "attack", "score", "guess", "privacy")),
    ("The study", "#e9eef2", ("study",)),
    ("Rows", "#e3edf7", ("engines",)),
    ("The one idea", "#e8f1ec", ("tables", "hierarchy")),
)
HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {{height}}" font-family="sans-serif" font-size="13">
<title>The rooms of veilmark</title>
<desc>
{{imports}}
</desc>
<rect width="100%" height="100%" fill="#fff"/>
"""
LEGEND = (
    "A room imports rooms of its own band and of the bands below it, and nothing above it. The exceptions are loaded when",
    "they are asked for: a study's verbs, a result's chart. Below all rooms are small modules that all of them share.",
)
Imports = dict[str, set[str]]


def imports() -> Imports:
    """What each part imports, without what only type checkers do."""
    graph = grimp.build_graph("veilmark", exclude_type_checking_imports=True, cache_dir=None)
    found: Imports = {}
    for module in sorted(graph.modules - {"veilmark"}):
        others = {name.split(".")[1] for name in graph.find_modules_directly_imported_by(module) if "." in name}
        found.setdefault(module.split(".")[1], set()).update(others - {module.split(".")[1]})
    return found


def draw() -> str:
    """The picture as SVG; a room that has no band is an error."""
    found = imports()
    rooms = {part for part in found if (ROOT / "src" / "veilmark" / part).is_dir()}
    placed = {room for _, _, band in BANDS for room in band}
    if rooms != placed:
        raise SystemExit(f"These rooms have no band, or are gone: {', '.join(sorted(rooms ^ placed))}.")
    parts, y = [], 16
    for title, colour, band in BANDS:
        parts.append(_band(title, colour, band, y))
        y += BAND + GAP
    shared = sorted(set(found) - rooms)
    parts.append(f'<text x="{LEFT}" y="{y + 14}" fill="#5b6b7a">Shared by all: {", ".join(shared)}</text>')
    texts = [f'<text x="{LEFT}" y="{y + 40 + 19 * i}" fill="#5b6b7a">{line}</text>' for i, line in enumerate(LEGEND)]
    listed = "\n".join(f"{part}: {' '.join(sorted(of))}" for part, of in sorted(found.items()))
    head = HEAD.format(height=y + 50 + 19 * len(LEGEND), imports=listed)
    return head + "\n".join([*parts, *texts]) + "\n</svg>\n"


def _band(title: str, colour: str, rooms: tuple[str, ...], y: int) -> str:
    """One band: its title on the left, its rooms beside each other."""
    first = 170
    width = (WIDE - first - RIGHT - GAP * (len(rooms) - 1)) / len(rooms)
    text = f'<text x="{LEFT}" y="{y + 25}" fill="#5b6b7a">{title}</text>'
    boxes = [_room(room, colour, first + i * (width + GAP), y, width) for i, room in enumerate(rooms)]
    return "\n".join([text, *boxes])


def _room(name: str, colour: str, x: float, y: int, width: float) -> str:
    shape = f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BAND}" rx="6" fill="{colour}"/>'
    return f'{shape}<text x="{x + width / 2:.0f}" y="{y + 25}" text-anchor="middle" fill="#1d2b38">{name}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"Wrote {PICTURE.relative_to(ROOT)}")
