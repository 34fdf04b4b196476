# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""softswitch under BMv2's names: links to the netfold script, which looks at the name that it was called by."""

from __future__ import annotations

import sys
from pathlib import Path

NAMES = {"simple_switch_grpc": ["softswitch", "run", "--as-bmv2"], "simple_switch_CLI": ["softswitch", "cli"]}
"""What a name stands for, as arguments of netfold."""


class ShimError(Exception):
    """A link cannot be made; the message says why."""


def arguments(called: str) -> list[str]:
    """What to put before the arguments of a script that was called so; nothing for its own name."""
    return NAMES.get(Path(called).name, [])


def install(folder: Path) -> list[Path]:
    """Makes the links, and the folder; one that is there already and leads here is kept. Raises ShimError."""
    script = Path(sys.executable).with_name("netfold")
    if not script.exists():
        raise ShimError(f"{script} is not there: install netfold (pip install .) first")
    links = [folder / name for name in NAMES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for link in links:
            if not (link.is_symlink() and link.readlink() == script):
                link.symlink_to(script)
    except OSError as error:
        raise ShimError(f"{error.filename2 or error.filename}: {error.strerror}") from error
    return links
