"""A Markdown extension for the site: a code block after `<!-- file: NAME -->` gets NAME as its title.

The comment is what the tests go by when they write the block to a file; readers should see the name too.
"""

from __future__ import annotations

import re

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

COMMENT = re.compile(r"<!-- file: (\S+) -->\n```(\w+)\n")


class _Titles(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return COMMENT.sub(r'```\2 title="\1"' + "\n", "\n".join(lines)).split("\n")


class FileNames(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Markdown's name for it
        md.preprocessors.register(_Titles(md), "file-names", 26)  # before code blocks are taken out, at 25


def makeExtension(**options: object) -> FileNames:  # noqa: N802
    return FileNames(**options)
