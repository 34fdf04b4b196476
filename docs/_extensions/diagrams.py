# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mermaid's fences as committed pictures: the site needs no script and no network. `make diagrams` draws them."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = Path("images/diagrams")  # in docs
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def picture(page: str, source: str) -> Path:
    """Where the picture of a diagram is, relative to docs. Its name changes with the source."""
    text = textwrap.dedent(source).strip()
    return FOLDER / f"{Path(page).name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.svg"


def pictures(docs: Path) -> Iterator[tuple[Path, str]]:
    """Picture and source of each diagram of the pages."""
    for path in sorted(docs.rglob("*.md")):
        for source in FENCE.findall(path.read_text()):
            yield picture(path.stem, source), source.strip()


class MermaidDirective(SphinxDirective):
    """The picture of a fence. GitHub draws the fence itself."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        source = "\n".join(self.content)
        path = picture(self.env.docname, source)
        if not (Path(self.env.app.srcdir) / path).exists():
            raise self.error(f"{path} is missing: make diagrams")
        kind = source.split(maxsplit=1)[0]
        return [
            nodes.image(uri=f"/{path}", alt=f"{kind} of {Path(self.env.docname).name}", classes=["diagram"])
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", MermaidDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
