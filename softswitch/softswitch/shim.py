# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch under BMv2's names: links to the softswitch script, which reads the name of the link."""

from __future__ import annotations

import sys
from pathlib import Path

NAMES = {"simple_switch_grpc": ["run", "--as-bmv2"], "simple_switch_CLI": ["cli"]}
"""Arguments of softswitch by name of the link."""


class ShimError(Exception):
    """A link cannot be created."""


def arguments(called: str) -> list[str]:
    """Arguments to insert for a script called by this name; none for softswitch."""
    return NAMES.get(Path(called).name, [])


def install(folder: Path) -> list[Path]:
    """Creates the links and the folder; keeps correct links. Raises ShimError."""
    script = Path(sys.executable).with_name("softswitch")
    if not script.exists():
        raise ShimError(f"{script} is missing: install softswitch first")
    links = [folder / name for name in NAMES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for link in links:
            if not (link.is_symlink() and link.readlink() == script):
                link.symlink_to(script)
    except OSError as error:
        raise ShimError(f"{error.filename2 or error.filename}: {error.strerror}") from error
    return links
