# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the diagrams of the pages as SVG, with Mermaid in Chromium. `make diagrams` runs it.

Needs npm, which fetches Mermaid, and Chromium. The pages need neither."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))

from diagrams import FOLDER, pictures  # type: ignore[import-not-found]  # noqa: E402

VERSION = "11.12.1"
SHA256 = "198b19442f86f0b46a17e56d3abf744c3a28a3427e66fa8dada3b589a77babcc"
"""SHA-256 of the package's dist/mermaid.min.js."""

OPTIONS = "{startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: {htmlLabels: false}, handDrawnSeed: 1}"
DECIMALS = re.compile(r"(\.\d\d)\d+")
"""Two digits of a coordinate are enough."""


def script(folder: Path) -> str:
    """Mermaid's code. Raises ValueError if it is not that of VERSION."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"mermaid-{VERSION}.tgz"
    if not archive.exists():
        subprocess.run(["npm", "pack", "--silent", f"mermaid@{VERSION}"], cwd=folder, check=True)
    with tarfile.open(archive) as package:
        member = package.extractfile("package/dist/mermaid.min.js")
        assert member is not None
        code = member.read()
    if (found := hashlib.sha256(code).hexdigest()) != SHA256:
        raise ValueError(f"{archive}: mermaid.min.js has SHA-256 {found}; expected {SHA256}")
    return code.decode()


def main() -> None:
    wanted = dict(pictures(DOCS))
    folder = DOCS / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        if old.relative_to(DOCS) not in wanted:
            old.unlink()
    code = script(DOCS.parent / "out/diagrams")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content("<!doctype html><body></body>")
        page.add_script_tag(content=code)
        page.evaluate(f"mermaid.initialize({OPTIONS})")
        for path, source in wanted.items():
            svg = page.evaluate(
                "([id, text]) => mermaid.render(id, text).then(r => "
                "new XMLSerializer().serializeToString(new DOMParser().parseFromString(r.svg, 'text/html')"
                ".querySelector('svg')))",
                [path.stem, source],
            )
            (DOCS / path).write_text(DECIMALS.sub(r"\1", svg) + "\n")
        browser.close()


if __name__ == "__main__":
    main()
