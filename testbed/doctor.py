# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks for the programs and packages that netfold uses, with installation hints. Changes nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.testbed.network import p4runtime_shell
from netfold.testbed.network.debian import make_mininet_importable
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.modes import KINDS, NetworkMode, try_mode
from netfold.testbed.network.tools import ADMINISTRATOR
from netfold.testbed.roce import packages, taps


class Need(StrEnum):
    """Whether netfold works without it."""

    REQUIRED = "required"
    OPTIONAL = "optional"


@dataclass(frozen=True)
class Finding:
    """One check. `found`: version or path, None if missing; `remedy`: how to install it."""

    name: str
    need: Need
    purpose: str
    found: str | None
    remedy: str

    @property
    def ok(self) -> bool:
        return self.found is not None or self.need is Need.OPTIONAL


def verdict(findings: Sequence[Finding]) -> str:
    """Whether `netfold run` works on this machine, in a sentence."""
    missing = [finding.name for finding in findings if not finding.ok]
    if missing:
        return f"Not ready: {', '.join(missing)} missing."
    optional = sum(finding.found is None for finding in findings)
    things = "thing is" if optional == 1 else "things are"
    return f"Ready: netfold run works here. {optional} optional {things} missing."


P4LANG_PACKAGES = (
    "p4lang's packages for Debian and Ubuntu (see the READMEs of p4lang/p4c and p4lang/behavioral-model), "
    "or a build from their sources"
)


EXTRAS = {
    "controller": "netfold controller, job, plan",
    "switch": "softswitch, the default switch",
    "testbed": "netfold run, up, measure, fabric",
    "sim": "netfold simulate, reproduce",
}
"""Extras of the distribution, and the commands that need them."""

PURPOSES = {
    NetworkMode.MININET: "networks in namespaces of root's",
    NetworkMode.ROOTLESS: "networks in a user namespace",
    NetworkMode.USERLAND: "netfold run without namespaces",
}

_EXTRA_MARKER = re.compile(r"""extra == ["'](?P<extra>[a-z0-9]+)["']""")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9._-]+")


def examine() -> list[Finding]:
    """Runs all checks, in the order of first use."""
    modes = {mode: _mode(mode) for mode in PURPOSES}
    # Where no namespace is allowed, the tools of networks in namespaces are of no use.
    tools = Need.REQUIRED if any(f.found for mode, f in modes.items() if KINDS[mode]) else Need.OPTIONAL
    return [
        Finding(
            "Python",
            Need.REQUIRED,
            "everything",
            _python(),
            "install Python 3.11 or newer; PYTHON=... make setup",
        ),
        *modes.values(),
        _tool("gcc", Need.REQUIRED, "softswitch compiles P4 to native code", "apt-get install gcc libc6-dev"),
        _tool("ip", tools, "links and namespaces", "apt-get install iproute2"),
        _tool("ethtool", tools, "offloads of virtual links", "apt-get install ethtool"),
        _tool("mnexec", tools, "Mininet", "apt-get install mininet"),
        Finding("mininet (Python)", tools, "Mininet", _mininet(), "apt-get install mininet"),
        _tool("setpriv", Need.REQUIRED, "processes that end with their run", "apt-get install util-linux"),
        _tool("ping", Need.OPTIONAL, "netfold network exec h1 -- ping", "apt-get install iputils-ping"),
        _tool("route", Need.OPTIONAL, "host commands of p4lang/tutorials", "apt-get install net-tools"),
        _tool("tcpdump", Need.OPTIONAL, "netfold network pcap", "apt-get install tcpdump"),
        _tool("tshark", Need.OPTIONAL, "tests of the Wireshark dissector", "apt-get install tshark"),
        _tool("p4c-bm2-ss", Need.OPTIONAL, "make p4: compile the P4 programs again", P4LANG_PACKAGES),
        _tool(
            "p4c-barefoot",
            Need.OPTIONAL,
            "make tofino: compile for Tofino",
            "build p4lang's p4c with ENABLE_TOFINO (docs/how-to/tofino.md)",
        ),
        _tool("simple_switch_grpc", Need.OPTIONAL, "TARGET=bmv2, comparisons with BMv2", P4LANG_PACKAGES),
        _tool(
            "qemu-system-x86_64",
            Need.OPTIONAL,
            "make roce: RDMA endpoints in virtual machines",
            "apt-get install qemu-system-x86",
        ),
        _tap_device(),
        Finding(
            "RoCE packages",
            Need.OPTIONAL,
            "make roce: Debian's kernel with rdma_rxe, verbs programs",
            _path(packages.complete_mark()),
            "make roce downloads them with apt into a cache and installs nothing",
        ),
        Finding(
            "infiniband/verbs.h",
            Need.OPTIONAL,
            "netfold roce build: a RoCE worker for this machine",
            _path(Path("/usr/include/infiniband/verbs.h")),
            "apt-get install libibverbs-dev",
        ),
        *(_extra(extra, purpose) for extra, purpose in EXTRAS.items()),
        Finding(
            "torch",
            Need.OPTIONAL,
            "PyTorch backend and hook, gloo as a peer",
            _module("torch") or _beside(".venv-torch"),
            "pip install 'netfold[torch]', or make train",
        ),
        Finding(
            "p4runtime-shell",
            Need.OPTIONAL,
            "netfold network shell",
            _shell_python(),
            f"make shell-env, or {p4runtime_shell.REMEDY}",
        ),
    ]


def _tool(name: str, need: Need, purpose: str, remedy: str) -> Finding:
    path = f"{os.environ.get('PATH', os.defpath)}:{ADMINISTRATOR}"
    return Finding(name, need, purpose, shutil.which(name, path=path), remedy)


def _mininet() -> str | None:
    make_mininet_importable()
    return _module("mininet")


def _module(name: str) -> str | None:
    spec = importlib.util.find_spec(name)
    return None if spec is None else str(spec.origin or "a namespace package")


def _extra(extra: str, purpose: str) -> Finding:
    """The Python packages of netfold[extra]."""
    missing = [name for name in sorted(_packages(extra)) if not _is_installed(name)]
    found = None if missing else "all packages"
    remedy = f"pip install 'netfold[{extra}]' (missing: {', '.join(missing)})"
    return Finding(f"netfold[{extra}]", Need.OPTIONAL, purpose, found, remedy)


def _packages(extra: str) -> set[str]:
    """Distributions that an extra requires on this machine, with those of the extras that it includes."""
    found: set[str] = set()
    for text in importlib.metadata.requires("netfold") or []:
        requirement, _, marker = text.partition(";")
        match = _EXTRA_MARKER.fullmatch(marker.strip())
        name = _DISTRIBUTION.match(requirement)
        if match is None or match["extra"] != extra or name is None:
            continue
        if name[0] == "netfold":
            included = requirement.removeprefix("netfold[").rstrip("] ").split(",")
            found.update(*map(_packages, included))
        else:
            found.add(name[0])
    return found


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _beside(environment: str) -> str | None:
    """Python of another virtual environment of this checkout."""
    return _path(Path(sys.prefix).parent / environment / "bin/python")


def _shell_python() -> str | None:
    named = os.environ.get(Variable.P4RT_SHELL)
    try:
        return str(p4runtime_shell.shell_python(Path(named) if named else None))
    except NetworkError:
        return None


def _path(path: Path) -> str | None:
    return str(path) if path.exists() else None


def _python() -> str | None:
    return sys.version.split()[0] if sys.version_info >= (3, 11) else None


def _tap_device() -> Finding:
    obstacle = taps.find_obstacle()
    found = str(taps.TUN) if obstacle is None else None
    return Finding(
        f"{taps.TUN}", Need.OPTIONAL, "make roce: links of the virtual machines", found, obstacle or ""
    )


def _mode(mode: NetworkMode) -> Finding:
    """Whether networks of this mode work here; the remedy names what forbids them."""
    name, purpose = f"--network {mode}", PURPOSES[mode]
    if mode is NetworkMode.MININET and os.geteuid() != 0:
        found = f"through sudo ({sudo})" if (sudo := shutil.which("sudo")) else None
        return Finding(name, Need.OPTIONAL, purpose, found, "run as root, or install sudo")
    reason = try_mode(mode)
    return Finding(name, Need.OPTIONAL, purpose, "works" if reason is None else None, reason or "")
