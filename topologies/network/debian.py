# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mininet is a plain Python package of Debian's, for the system's interpreter. It alone is made visible to the one that
runs, because the rest of Debian's packages is older than what netfold needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

MININET = Path("/usr/lib/python3/dist-packages/mininet")


class _DebianMininet(MetaPathFinder):
    """Asked last: a mininet that the environment has comes first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "mininet" or not (MININET / "__init__.py").is_file():
            return None
        return spec_from_file_location(
            fullname, MININET / "__init__.py", submodule_search_locations=[str(MININET)]
        )


def show_mininet() -> None:
    """From now on `import mininet` finds Debian's."""
    if not any(isinstance(finder, _DebianMininet) for finder in sys.meta_path):
        sys.meta_path.append(_DebianMininet())
