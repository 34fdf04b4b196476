# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reference pages that are read from the sources: commands, environment
variables, metrics, the service, the C headers, the switch program.
Their text is written to docs/reference/generated before Sphinx looks for pages, and is in no commit; the page of the
same name includes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sphinx.application import Sphinx

from . import c_headers, commands, metrics, service, switch_program, variables

PAGES: dict[str, Callable[[Path], str]] = {
    "commands": commands.page,
    "metrics": metrics.page,
    "service": service.page,
    "c-headers": c_headers.page,
    "switch-program": switch_program.page,
    "variables": variables.page,
}
"""By file name without suffix: from the repository's root to Markdown."""


def write(app: Sphinx) -> None:
    """Writes each page whose text has changed."""
    docs = Path(app.srcdir)
    folder = docs / "reference/generated"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        path, text = folder / f"{name}.md", page(docs.parent)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
