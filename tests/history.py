# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Versions before this one, built from the history."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

WITHOUT_TARGETS = "5cd2f5adb0816106a9ba8c87f660d7285e2e4b11"
"""The last revision whose members do not know targets."""


def tree_of(revision: str, tree: Path) -> Path:
    """Fills a folder with that revision, its stubs and its engine."""
    git = ["git", "-C", str(REPOSITORY)]
    known = subprocess.run([*git, "cat-file", "-e", revision], capture_output=True, check=False)
    if known.returncode:
        pytest.skip(f"SKIPPED: upgrades: the history has no revision {revision[:8]} (git fetch --unshallow)")
    archive = subprocess.run([*git, "archive", revision], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
    for step in (["stubs"], ["build_ext", "--inplace"]):
        built = subprocess.run(
            [sys.executable, "-W", "ignore", "setup.py", "--quiet", *step],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stdout + built.stderr
    return tree
