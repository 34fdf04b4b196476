# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a running network, by cause. Each message is one line that a user can act on."""

from __future__ import annotations

from collections.abc import Sequence


class NetworkError(Exception):
    """The network cannot be built, found or changed."""


class NotRootError(NetworkError):
    def __init__(self) -> None:
        super().__init__("network namespaces and links need root: run this as root, or install sudo")


class MissingToolError(NetworkError):
    """A program or module that is not on this machine; `package` is what apt calls it (or another remedy)."""

    def __init__(self, tool: str, package: str) -> None:
        self.tool = tool
        super().__init__(f"{tool} is missing: apt-get install {package}")


class PortTakenError(NetworkError):
    def __init__(self, port: int, switch: str, holder: str) -> None:
        self.port = port
        super().__init__(f"TCP port {port}, for P4Runtime of switch '{switch}', is taken by {holder}")


class AlreadyUpError(NetworkError):
    def __init__(self, name: str, fabric: str, pid: int) -> None:
        super().__init__(
            f"a network '{name}' is up already (fabric '{fabric}', process {pid}): `netfold down` first"
        )


class NotUpError(NetworkError):
    def __init__(self, name: str) -> None:
        super().__init__(f"no network '{name}' is up: `netfold up SPEC` first")


class UnknownElementError(NetworkError):
    def __init__(self, kind: str, given: str, known: Sequence[str]) -> None:
        shown = ", ".join(known[:16]) + (", ..." if len(known) > 16 else "")
        super().__init__(f"'{given}' is no {kind} of this network; known are {shown}")


class SwitchFailedError(NetworkError):
    """A switch process ended, or did not answer in time. The message carries the end of its log."""

    def __init__(self, switch: str, what: str, log_tail: str) -> None:
        self.switch = switch
        tail = " | ".join(line.strip() for line in log_tail.splitlines() if line.strip())
        super().__init__(f"switch '{switch}' {what}" + (f": {tail}" if tail else ", and its log is empty"))


class KernelError(NetworkError):
    """A command that sets up the kernel (ip, tc, ethtool) failed."""

    def __init__(self, what: str, output: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        super().__init__(f"{what}: {' | '.join(lines[-3:]) or 'failed without a word'}")


class HostCommandError(NetworkError):
    """A command of an exercise's file failed in its host."""

    def __init__(self, host: str, command: str, output: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        said = lines[-1] if lines else "it failed without a word"
        remedy = "; route and arp are in net-tools: apt-get install net-tools" if "not found" in said else ""
        super().__init__(f"host '{host}': `{command}`: {said}{remedy}")
