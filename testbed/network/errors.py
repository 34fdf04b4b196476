# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of emulated networks. Each message is one line with the remedy."""

from __future__ import annotations

from collections.abc import Sequence


class NetworkError(Exception):
    """The network cannot be started, found or changed."""


class NotRootError(NetworkError):
    def __init__(self) -> None:
        super().__init__(
            "network namespaces and links need root: run as root or install sudo; a Python program first calls "
            "netfold.testbed.run_isolated()"
        )


class MissingToolError(NetworkError):
    """A missing program or module; `package`: its Debian package, or another remedy."""

    def __init__(self, tool: str, package: str) -> None:
        self.tool = tool
        super().__init__(f"{tool} is missing: apt-get install {package}")


class PortTakenError(NetworkError):
    def __init__(self, port: int, switch: str, holder: str) -> None:
        self.port = port
        super().__init__(f"TCP port {port} (P4Runtime of switch '{switch}') is in use by {holder}")


class AlreadyUpError(NetworkError):
    def __init__(self, name: str, fabric: str) -> None:
        super().__init__(
            f"network '{name}' is already up (fabric '{fabric}'): take it down with "
            f"`netfold network down --name {name}`, or choose another --name"
        )


class NotUpError(NetworkError):
    def __init__(self, name: str) -> None:
        super().__init__(f"network '{name}' is not up: run `netfold network up FABRIC --name {name}` first")


class NoNamespacesError(NetworkError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"network '{name}' is userland: other programs, captures and cut links need --network mininet or rootless"
        )


class UnknownElementError(NetworkError):
    def __init__(self, kind: str, given: str, known: Sequence[str]) -> None:
        shown = ", ".join(known[:16]) + (", ..." if len(known) > 16 else "")
        super().__init__(f"'{given}' is no {kind} of this network; expected one of {shown}")


class SwitchFailedError(NetworkError):
    """A switch process ended or did not answer in time. The message has the error in its log."""

    def __init__(self, switch: str, what: str, log_tail: str) -> None:
        self.switch = switch
        tail = " | ".join(line.strip() for line in log_tail.splitlines() if line.strip())
        super().__init__(f"switch '{switch}' {what}" + (f": {tail}" if tail else "; its log is empty"))


class KernelError(NetworkError):
    """A command that configures the kernel (ip, tc, ethtool) failed."""

    def __init__(self, what: str, output: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        super().__init__(f"{what}: {' | '.join(lines[-3:]) or 'no output'}")


class NamespaceError(NetworkError):
    """The shell in a host's namespace ended at its start, or did not start in time."""

    def __init__(self, host: str, command: str, output: str) -> None:
        lines = [line.strip("\x7f \r") for line in output.splitlines() if line.strip("\x7f \r")]
        super().__init__(f"host '{host}': `{command}` failed: {' | '.join(lines[-2:]) or 'no output'}")


class HostCommandError(NetworkError):
    """A host command of an exercise failed."""

    def __init__(self, host: str, command: str, output: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        output_line = lines[-1] if lines else "no output"
        remedy = (
            "; route and arp are in net-tools: apt-get install net-tools"
            if "not found" in output_line
            else ""
        )
        super().__init__(f"host '{host}': `{command}`: {output_line}{remedy}")
