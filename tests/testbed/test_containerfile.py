# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`Containerfile` installs what the Makefile needs, in steps that `tests.testbed.containerfile` can run in a chroot; of
it the devcontainer is built."""

from __future__ import annotations

import json
import re
import subprocess

from tests.house.imports import REPOSITORY
from tests.testbed.containerfile import RELEASES, DevContainer, steps

STEPS = list(steps((REPOSITORY / "Containerfile").read_text()))


def test_a_chroot_can_run_each_step() -> None:
    assert STEPS[0].instruction == "FROM"
    assert STEPS[0].argument in RELEASES
    assert {s.instruction for s in STEPS[1:]} == {"RUN", "WORKDIR", "COPY", "CMD"}


def test_it_installs_the_packages_of_the_makefile() -> None:
    [wanted] = re.findall(r"^APT +:= (.+)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    installed = next(s.argument for s in STEPS if "apt-get install" in s.argument)
    assert {*wanted.split(), "python3-dev"} <= set(installed.split())


def test_the_devcontainer_is_built_of_it_and_its_command_sets_up_the_tests() -> None:
    folder = REPOSITORY / ".devcontainer"
    settings = json.loads((folder / "devcontainer.json").read_text())
    build = settings["build"]
    assert (folder / build["dockerfile"]).resolve() == REPOSITORY / "Containerfile"
    assert (folder / build["context"]).resolve() == REPOSITORY
    container = DevContainer.read()
    assert {*container.capabilities} == {"sys_admin", "net_admin"}, (
        "as docs/reference/environments.md asks for root's networks"
    )
    make, target = container.command
    test_needs = re.findall(r"^test: (\S+)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert [target.replace(".venv", "$(VENV)")] == test_needs
    subprocess.run([make, "--dry-run", target], cwd=REPOSITORY, capture_output=True, check=True, timeout=60)


def test_continued_lines_and_comments_are_one_step() -> None:
    text = '# a comment\nFROM debian:12\nRUN a \\\n && b   c \\\n && d\nCMD ["make", "run"]\n'
    assert [(s.instruction, s.argument) for s in steps(text)] == [
        ("FROM", "debian:12"),
        ("RUN", "a && b c && d"),
        ("CMD", '["make", "run"]'),
    ]
