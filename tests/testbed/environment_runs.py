# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands of netfold in the environments of environments.py, with files of their own below a folder."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from softswitch.build import native

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import is_only_user, is_root
from netfold.testbed.network.modes import NetworkMode, try_mode
from netfold.testbed.network.targets import installed_command
from tests.testbed.environments import Environment

DEADLINE_S = 240
PAIR = "name: pair\nunit: Mbit/s\ngenerate: {single_switch: {hosts: 2, rate: 100}}\n"
SMALL = [
    "pair.yaml",
    "--target",
    "softswitch",
    "--lanes",
    "64",
    "--epochs",
    "1",
    "--size",
    "4096",
]
SMALL += ["--iterations", "1", "--no-ring"]
"""A run of two workers: whether it works does not depend on their number, how long it takes does."""

MARKS = [
    pytest.mark.root,
    pytest.mark.mininet,
    pytest.mark.skipif(
        not is_root() or is_only_user(), reason="SKIPPED: needs the machine's root, to become others"
    ),
    pytest.mark.skipif(
        any(shutil.which(t) is None for t in ("gcc", "mnexec", "setpriv")),
        reason="SKIPPED: needs gcc and Mininet",
    ),
]


def may_run(environment: Environment) -> None:
    """Skips where this machine or the place of this checkout cannot make the environment."""
    if environment is not Environment.ROOT and try_mode(NetworkMode.ROOTLESS) is not None:
        pytest.skip("SKIPPED: user namespaces are forbidden here")
    if environment.uid and not _reaches(sys.executable):
        pytest.skip("SKIPPED: other users cannot reach this Python")


def _reaches(program: str) -> bool:
    tried = subprocess.run(
        [*Environment.USER.prefix(), program, "-c", "import netfold"], capture_output=True, check=False
    )
    return tried.returncode == 0


@contextmanager
def home_of(environment: Environment) -> Iterator[Path]:
    """A folder that the environment's user owns and reaches, with the fabric of SMALL."""
    with tempfile.TemporaryDirectory(prefix="netfold-") as folder:
        os.chown(folder, environment.uid, environment.uid)
        home = Path(folder)
        (home / "pair.yaml").write_text(PAIR)
        yield home


@functools.cache
def _own_cache(uid: int) -> tempfile.TemporaryDirectory[str]:
    """Compiled programs of a user other than root, for all tests of this process: only the first run compiles."""
    folder = tempfile.TemporaryDirectory(prefix="netfold-cache-")
    os.chown(folder.name, uid, uid)
    return folder


def _compiled_programs(environment: Environment) -> str:
    """The folder of the environment's user. Root's is the one of the tests."""
    return _own_cache(environment.uid).name if environment.uid else str(native.default_cache_dir())


def start(
    environment: Environment, home: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """The command, which has its output in pipes and ends by itself."""
    hidden = (Variable.NAMESPACE, Variable.RUN_DIR, Variable.NAME, Variable.NETWORK_MODE, "XDG_CACHE_HOME")
    own = {k: v for k, v in os.environ.items() if k not in hidden}
    own |= {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), Variable.RUN_DIR: str(home / "run")}
    own |= {"SOFTSWITCH_CACHE": _compiled_programs(environment)}
    return subprocess.Popen(
        [*environment.prefix(), installed_command("netfold"), *arguments],
        cwd=home,
        env=own | dict(variables or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(environment: Environment, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return finish(start(environment, home, *arguments))


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    with process:
        try:
            out, err = process.communicate(timeout=DEADLINE_S)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
