# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files of the repository as pages of the site, if a page links to them: Markdown as text, other files as code. Links
in that Markdown are followed, too, and its pictures are copied. A link to a file that does not exist is a warning."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pygments.lexers import find_lexer_class_for_filename
from sphinx.application import Sphinx
from sphinx.util import logging

FOLDER = "repository"
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
PICTURE = re.compile(r"!\[[^\]\n]*\]\(([^)\s:]+)\)")
FENCE = re.compile(r"(^ *(`{3,}|~{3,}).*?^ *\2 *$)", re.MULTILINE | re.DOTALL)
PAGE_TYPES = (".md", ".ipynb")
LANGUAGES = {"": "text", "p4": "c", "mermaid": "text"}
"""Languages that Pygments knows, in place of those that it does not."""

Highlight = Callable[[str, str], str]
"""HTML of code in a language."""

log = logging.getLogger(__name__)


class RepositoryPages:
    """The files that pages link to. `docs` is the folder of the site's own pages."""

    def __init__(self, docs: Path) -> None:
        self.docs = docs.resolve()
        self.root = self.docs.parent

    def link(self, start: str, file: Path) -> str:
        """The way from the page `start` to the page of a file or folder."""
        if file.is_relative_to(self.docs):
            name = file.relative_to(self.docs).with_suffix(".html").as_posix()
        else:
            name = f"{self.page(file)}.html"
        return os.path.relpath(name, Path(start).parent)

    def page(self, file: Path) -> str:
        return f"{FOLDER}/{file.relative_to(self.root).as_posix()}"

    def linked_from(self, file: Path) -> list[Path]:
        """The targets of a Markdown file's or notebook's links, or a folder's files, without the site's own pages."""
        if file.is_dir():
            return sorted(f for f in file.iterdir() if f.is_file() and not f.name.startswith("."))
        if file.suffix not in PAGE_TYPES:
            return []
        text = FENCE.sub("", file.read_text())
        targets = ((file.parent / target).resolve() for _, target, _ in LINK.findall(text))
        return [t for t in targets if t.exists() and not t.is_relative_to(self.docs)]

    def all_linked(self, pages: Iterator[Path]) -> list[Path]:
        found: dict[Path, None] = {}
        waiting = list(pages)
        while waiting:
            for target in self.linked_from(waiting.pop()):
                if target not in found:
                    found[target] = None
                    waiting.append(target)
        return sorted(found)

    def pictures_of(self, file: Path) -> list[Path]:
        """The files of a Markdown file's pictures."""
        return [
            (file.parent / target).resolve() for target in PICTURE.findall(FENCE.sub("", file.read_text()))
        ]

    def copy_picture(self, file: Path, site: Path) -> None:
        """Copies to where the pages of the repository refer to it: they keep the places of their files."""
        copy = site / FOLDER / file.relative_to(self.root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)

    def markdown(self, file: Path, highlight: Highlight) -> str:
        """A Markdown file as HTML whose links lead to pages, and that looks as the site's own pages do."""
        parser = MarkdownIt("commonmark").enable("table")
        rules = parser.renderer.rules
        rules["fence"] = lambda tokens, i, *_: highlight(tokens[i].content, known(tokens[i].info.strip()))
        rules["table_open"] = lambda *_: '<div class="table-wrapper docutils"><table class="docutils">'
        rules["table_close"] = lambda *_: "</table></div>"
        tokens = parser.parse(file.read_text())
        for token in (child for parent in tokens for child in parent.children or ()):
            if token.type == "code_inline":
                token.attrs["class"] = "docutils literal"
            target, _, anchor = str(token.attrs.get("href", "")).partition("#")
            if target and ":" not in target:
                way = self.link(self.page(file), (file.parent / target).resolve())
                token.attrs["href"] = f"{way}#{anchor}" if anchor else way
        return str(parser.renderer.render(tokens, parser.options, {}))


def rewrite_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Has links of `source`, the text of `page`, lead to pages of the repository."""
    pages = RepositoryPages(Path(app.srcdir))
    folder = (pages.docs / page).parent

    def replaced(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        path = (folder / target).resolve()
        if path.is_relative_to(pages.docs):
            return found.group()
        if not path.exists():
            log.warning("no file %s, which a link names", target, location=page)
        # Single quotes: the text may be a notebook's JSON.
        return f"<a href='{pages.link(page, path)}{anchor or ''}'>{text}</a>"

    parts = FENCE.split(source[0])
    text, fences = parts[::3], parts[1::3]
    done = [LINK.sub(replaced, part) for part in text]
    source[0] = "".join(a + b for a, b in zip(done, [*fences, ""], strict=True))


def collect_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    pages = RepositoryPages(Path(app.srcdir))
    highlight = partial(app.builder.highlighter.highlight_block, force=True)  # type: ignore[attr-defined]
    sources = (Path(app.env.doc2path(name)) for name in sorted(app.env.found_docs))
    for file in pages.all_linked(sources):
        name = file.relative_to(pages.root).as_posix()
        if file.is_dir():
            rows = (
                f"<li><a href='{pages.link(pages.page(file), f)}'>{f.name}</a></li>"
                for f in pages.linked_from(file)
            )
            body = f"<h1>{name}</h1><ul>{''.join(rows)}</ul>"
        elif file.suffix == ".md":
            body = pages.markdown(file, highlight)
            for picture in pages.pictures_of(file):
                if picture.is_file():
                    pages.copy_picture(picture, Path(app.outdir))
                else:
                    log.warning("no picture %s", picture, location=name)
        else:
            code = highlight(file.read_text(), language(file))
            body = f"<h1>{name}</h1>{code}"
        yield pages.page(file), {"title": name, "body": body}, "page.html"


def language(file: Path) -> str:
    lexer = find_lexer_class_for_filename(file.name)
    return lexer.aliases[0] if lexer and lexer.aliases else known(file.suffix.removeprefix("."))


def known(name: str) -> str:
    return LANGUAGES.get(name, name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite_links)
    app.connect("html-collect-pages", collect_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
