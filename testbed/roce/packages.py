# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Debian packages, those of the machines first: downloaded with apt into a cache and unpacked there, not installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from netfold.testbed.errors import RunError

KERNEL = "linux-image-amd64"
PACKAGES = (
    "busybox-static",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "libibumad3",
    "libibverbs-dev",
    "libibverbs1",
    "libnl-3-200",
    "libnl-route-3-200",
    "libpci3",
    "librdmacm1",
    "perftest",
)
"""Packages besides the kernel. The C library and others are this machine's, as listed by ldd."""

QEMU = "qemu-system-x86_64"
APT_TIMEOUT_S = 600.0

CACHE = Path("/var/cache/netfold/roce")
"""Cache of packages for all users, which root fills."""

_COMPLETE = "complete"
"""The file that is created last: marks a complete cache."""


def cache_folder() -> Path:
    """CACHE where it is complete or this user may fill it, else `$XDG_CACHE_HOME/netfold/roce`."""
    above = next(folder for folder in (CACHE, *CACHE.parents) if folder.exists())
    if (CACHE / _COMPLETE).exists() or os.access(above, os.W_OK):
        return CACHE
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "netfold" / "roce"


def complete_mark() -> Path:
    """The file that a complete cache has."""
    return cache_folder() / _COMPLETE


def unpacked(on_step: Callable[[str], None]) -> Path:
    """The folder with all packages unpacked, by this or an earlier run. Raises RunError."""
    folder = cache_folder()
    if complete_mark().exists():
        return folder / "root"
    if shutil.which("apt-cache") is None:
        raise RunError("'apt-cache' is missing: the machines consist of Debian packages")
    names = [_kernel_package(), *PACKAGES]
    on_step(f"downloading {len(names)} packages into {folder} (70 MB; unpacked there, not installed)")
    return unpack(folder, names)


def unpack(folder: Path, names: Sequence[str]) -> Path:
    """Fill a folder with packages, and return the one below it that is their root. Raises RunError."""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise RunError(f"'{program}' is missing: it brings Debian packages")
    root = folder / "root"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "debs").mkdir(parents=True)
        # apt's sandbox user cannot write here and would warn
        fetch = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *names]
        _run(fetch, folder / "debs")
        for package in sorted((folder / "debs").glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(root)], folder)
        shutil.rmtree(folder / "debs")
        (folder / _COMPLETE).touch()
    except OSError as error:
        raise RunError(f"cannot write packages to {folder}: {error.strerror}") from error
    return root


def _kernel_package() -> str:
    """The package of the newest kernel, on which KERNEL depends."""
    listed = _run(["apt-cache", "depends", KERNEL], Path("/"))
    found = re.search(r"Depends: (linux-image-\S+)", listed)
    if found is None:
        raise RunError(f"apt has no package {KERNEL}: the machines need Debian's kernel (try apt-get update)")
    return found[1]


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=APT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{command[0]} did not end within {APT_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        raise RunError(f"{' '.join(command[:2])} failed: {lines[-1]}")
    return done.stdout
