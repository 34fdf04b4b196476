# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A command that lacks the packages of an extra ends with one line that names the extra."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exit_if_missing(command: str, extra: str) -> Iterator[None]:
    """Within, `command` is imported and run. `extra`: what of netfold[...] it needs; "" for nothing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not extra or (error.name or "netfold").partition(".")[0] == "netfold":
            raise
        sys.exit(
            f"netfold: `{command}` needs the Python package '{error.name}', which is not installed; "
            f"it comes with: pip install 'netfold[{extra}]'"
        )
