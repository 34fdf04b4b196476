# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds p4runtime-shell. It pins an old protobuf, so it has an environment of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.testbed.network.errors import NetworkError

REMEDY = f"python3 -m venv DIR && DIR/bin/pip install p4runtime-shell; then set {Variable.P4RT_SHELL}=DIR"


def shell_python(named: Path | None) -> Path:
    """The interpreter of an environment, or `named` itself if it is one; None: of the environment beside this one's, as
    a checkout has it. Raises NetworkError if it is missing."""
    environment = named or Path(sys.prefix).parent / ".venv-p4rt-shell"
    python = environment if environment.is_file() else environment / "bin/python"
    if not python.is_file():
        raise NetworkError(f"p4runtime-shell is not installed in {environment}: {REMEDY}")
    return python.absolute()
