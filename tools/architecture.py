"""Draw which part of veilmark imports which, in the layers that pyproject.toml allows.

`python tools/architecture.py` writes docs/images/architecture.svg. A test compares what is there with what would be drawn.
An arrow that follows from others is left out; all imports are listed in the picture's description.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
BOX, HIGH, ROW, WIDE = 104, 28, 62, 720
HEAD = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {{height}}" font-family="sans-serif" font-size="13">
<title>The parts of veilmark and what they import</title>
<desc>
{{imports}}
</desc>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">\
<path d="M0 0L8 4L0 8z" fill="#5b6b7a"/></marker></defs>
<rect width="100%" height="100%" fill="#fff"/>
"""
LEGEND = (
    "An arrow points at what is imported; it is left out where others imply it, and to the grey parts, which all may use.",
    "¹ loads report, ² workbench, ³ another part above it: not before a chart, a verb or a method is asked for.",
)
COMMON = {"charted", "domain", "errors", "messages", "output", "progress", "sample", "yamlfile"}
Imports = dict[str, set[str]]


def layers() -> list[list[str]]:
    """The parts, from the top layer to the lowest."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [row.replace(":", " ").replace("|", " ").split() for row in rows]


def imports() -> Imports:
    """What each part imports, without what only type checkers do."""
    graph = grimp.build_graph("veilmark", exclude_type_checking_imports=True, cache_dir=None)
    found: Imports = {}
    for module in sorted(graph.modules - {"veilmark"}):
        others = {name.split(".")[1] for name in graph.find_modules_directly_imported_by(module) if "." in name}
        found.setdefault(module.split(".")[1], set()).update(others - {module.split(".")[1]})
    return found


def below(part: str, found: Imports, rank: dict[str, int]) -> set[str]:
    """What a part imports from lower layers."""
    return {name for name in found[part] if rank[name] > rank[part]}


def implied(part: str, found: Imports, rank: dict[str, int]) -> set[str]:
    """What these import in turn, all the way down."""
    lower = below(part, found, rank)
    return set().union(*(below(name, found, rank) | implied(name, found, rank) for name in lower))


def draw() -> str:
    """The picture as SVG."""
    rows, found = layers(), imports()
    rank = {part: i for i, row in enumerate(rows) for part in row}
    place = {
        part: ((j + 1) * WIDE / (len(row) + 1), 30 + rank[part] * ROW) for row in rows for j, part in enumerate(row)
    }
    arrows, boxes = [], []
    for part, (x, y) in place.items():
        for other in sorted(below(part, found, rank) - implied(part, found, rank) - COMMON):
            arrows.append(_arrow(x, y + HIGH, *place[other]))
        beside = sorted(place[other][0] for other in found[part] if rank[other] == rank[part])
        arrows += [_line(x, y + HIGH / 2, to) for to in beside]
        up = {other for other in found[part] if rank[other] < rank[part]}
        marks = "¹" * ("report" in up) + "²" * ("workbench" in up) + "³" * bool(up - {"report", "workbench"})
        boxes.append(_box(part, x, y, marks))
    bottom = 30 + len(rows) * ROW
    texts = [f'<text x="20" y="{bottom + 20 * i}" fill="#5b6b7a">{line}</text>' for i, line in enumerate(LEGEND)]
    listed = "\n".join(f"{part}: {' '.join(sorted(of))}" for part, of in sorted(found.items()))
    head = HEAD.format(height=bottom + 20 * len(LEGEND), imports=listed)
    return head + "\n".join([*arrows, *boxes, *texts]) + "\n</svg>\n"


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    bend = (to_y - y) / 2
    path = f"M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}"
    return f'<path d="{path}" fill="none" stroke="#9aa8b5" marker-end="url(#tip)"/>'


def _line(x: float, y: float, to: float) -> str:
    side = BOX / 2 if to > x else -BOX / 2
    return f'<path d="M{x + side:.0f} {y:.0f}H{to - side:.0f}" stroke="#9aa8b5" marker-end="url(#tip)"/>'


def _box(part: str, x: float, y: float, marks: str) -> str:
    fill = "#eeeeee" if part in COMMON else "#e6f0f8"
    shape = f'<rect x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HIGH}" rx="5" fill="{fill}" stroke="#2f5d86"/>'
    return f'{shape}<text x="{x:.0f}" y="{y + 19}" text-anchor="middle" fill="#1d2b38">{part}{marks}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"Wrote {PICTURE.relative_to(ROOT)}")
