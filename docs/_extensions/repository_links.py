# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Links from a page to files of the repository that are no pages: a URL if NETFOLD_REPOSITORY_URL is set, else the path
as text. A link to a file that does not exist is a warning. Pictures stay: the site has a copy of each."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^ *(`{3,}|~{3,}).*?^ *\2 *$)", re.MULTILINE | re.DOTALL)

log = logging.getLogger(__name__)


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrites `source`, the text of `page`, in place."""
    docs = Path(app.srcdir).resolve()
    folder = (docs / page).parent
    base = os.environ.get("NETFOLD_REPOSITORY_URL", "").rstrip("/")

    def replaced(found: re.Match[str]) -> str:
        text, target, _ = found.groups()
        path = (folder / target).resolve()
        if path.is_relative_to(docs):
            return found.group()
        if not path.exists():
            log.warning("no file %s, which a link names", target, location=page)
        name = path.relative_to(docs.parent).as_posix()
        if base:
            return f"[{text}]({base}/{name})"
        return f"`{name}`" if text.strip("`") in name else f"{text} (`{name}`)"

    parts = FENCE.split(source[0])
    text, fences = parts[::3], parts[1::3]
    done = [LINK.sub(replaced, part) for part in text]
    source[0] = "".join(a + b for a, b in zip(done, [*fences, ""], strict=True))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
