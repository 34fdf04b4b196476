# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Makes Debian's Mininet, a package of the system's interpreter, importable here, and none of Debian's other packages,
which are too old."""

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
    """Last in sys.meta_path: a mininet of the environment takes precedence."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "mininet" or not (MININET / "__init__.py").is_file():
            return None
        return spec_from_file_location(
            fullname, MININET / "__init__.py", submodule_search_locations=[str(MININET)]
        )


def make_mininet_importable() -> None:
    """Lets `import mininet` find Debian's package."""
    if not any(isinstance(finder, _DebianMininet) for finder in sys.meta_path):
        sys.meta_path.append(_DebianMininet())
