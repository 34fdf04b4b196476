# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands and code of README, tutorials and guides run as they stand, page by page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.docs.blocks import blocks, script
from tests.docs.outputs import matches, printed_by_line, renew, shown_outputs
from tests.house.imports import REPOSITORY

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs/tutorials").glob("*.md")),
    *sorted((REPOSITORY / "docs/how-to").glob("*.md")),
    REPOSITORY / "docs/reference/testbed.md",
]
TIMEOUT_S = 600
RENEW = "RENEW_OUTPUTS"
"""Variable by which `make docs-outputs` has outputs renewed, in place of compared."""
WITH_QUICK_BLOCKS = [page for page in PAGES if script(page, network=False)]
WITH_NETWORK_BLOCKS = [page for page in PAGES if script(page, network=True)]


def page_name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def run(page: Path, folder: Path, network: bool) -> None:
    """Runs the page's script in `folder`, with the repository's examples, and netfold's commands on PATH. The outputs
    that the page shows have to be those of the commands."""
    folders = {
        name: str(folder / "home") for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
    }
    (folder / "home").mkdir(mode=0o700)
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **folders, "PATH": path, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "100"}
    process = subprocess.Popen(
        ["bash", "-c", script(page, network)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what a page that failed left in the background
        if network:
            subprocess.run(["netfold", "network", "down"], env=environment, check=False, capture_output=True)
    assert process.returncode == 0, f"{page_name(page)}:\n{output[-4000:]}"
    printed = printed_by_line(output)
    if os.environ.get(RENEW):
        renew(page, printed)
    for command, shown in shown_outputs(page):
        if command.line in printed:  # else the block needs a network
            assert matches(shown, printed[command.line]), (
                f"{page_name(page)}, line {shown.line}, differs; make docs-outputs renews it. Printed:\n"
                f"{printed[command.line]}"
            )


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_each_block_is_run_or_marked(page: Path):
    assert [fault for block in blocks(page) if (fault := block.fault())] == []


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_QUICK_BLOCKS, ids=page_name)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path):
    run(page, tmp_path, network=False)


@pytest.mark.long
@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.parametrize("page", WITH_NETWORK_BLOCKS, ids=page_name)
def test_the_blocks_of_a_page_run_in_a_network(page: Path, tmp_path: Path):
    run(page, tmp_path, network=True)


def test_a_block_that_fails_names_its_line(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n<!-- file: a.txt -->\n```yaml\na: 1\n```\n\n```bash\ncat a.txt\nfalse\n```\n"
    )
    done = subprocess.run(
        ["bash", "-c", script(page, network=False)],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert done.stdout == "a: 1\n"
    assert done.stderr.splitlines()[-1] == "## the block at line 8"


def test_a_block_without_a_mark_that_cannot_run_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("```yaml\na: 1\n```\n\n```bash\ntrue\n```\n\n<!-- run: soon -->\n```bash\ntrue\n```\n")
    assert [block.fault() for block in blocks(page)] == [
        "line 1: a block of 'yaml' is neither a file nor run nor marked",
        "",
        "line 10: run: is 'soon'; expected network",
    ]


PAGE_WITH_OUTPUT = """# A page

```bash
printf 'one 1\\ntwo 22\\nthree\\n'
```

<!-- output{mark} -->
```text
{shown}
```

The end.
"""


@pytest.mark.parametrize(
    ("mark", "shown", "fits"),
    [
        ("", "one 1\ntwo 22\nthree", True),
        ("", "one 1\n...\nthree", True),
        ("", "...\nthree", True),
        ("", "one 1\n...", True),
        ("", "one 1\n...\ntwo 22\nthree", True),
        ("", "one 1\ntwo 22", False),
        ("", "one 1\ntwo 3\nthree", False),
        (": numbers vary", "one 9\ntwo  3\nthree", True),
        (": numbers vary", "one 9\ntwo x\nthree", False),
    ],
)
def test_a_shown_output_is_compared_and_renewed(tmp_path: Path, mark: str, shown: str, fits: bool):
    page = tmp_path / "page.md"
    page.write_text(PAGE_WITH_OUTPUT.format(mark=mark, shown=shown))
    done = subprocess.run(
        ["bash", "-c", script(page, network=False) + "echo more >&2"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed = printed_by_line(done.stdout.removesuffix("more\n"))
    [(command, block)] = shown_outputs(page)
    assert matches(block, printed[command.line]) is fits
    renew(page, printed)
    expected = shown if fits else printed[command.line]
    assert page.read_text() == PAGE_WITH_OUTPUT.format(mark=mark, shown=expected)


def test_an_unknown_mark_of_an_output_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("<!-- output: some -->\n```text\na\n```\n")
    assert [block.fault() for block in blocks(page)] == [
        "line 2: output: is 'some'; expected nothing or numbers vary"
    ]
