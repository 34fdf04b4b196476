# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A capture of a link of a testbed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from netfold.testbed.managed import ManagedResource
from netfold.testbed.network.errors import NetworkError, NoNamespacesError
from netfold.testbed.network.network import Network


class Capture(ManagedResource):
    """The frames of a link in both directions, in the pcap file `file`; a context manager, which ends the capture."""

    def __init__(self, net: Network, link: str, file: Path) -> None:
        super().__init__()
        if not net.state().has_namespaces:
            raise NoNamespacesError(net.name)
        self.file = file
        self._net = net
        self._interface = net.link(link).root_interface

    def packets(self) -> list[Any]:
        """The frames so far, as scapy packets; netfold's have the layer `Netfold`."""
        from scapy.utils import rdpcap  # noqa: PLC0415 (its import takes a second)

        import netfold.traffic.scapy_netfold  # noqa: F401, PLC0415 (binds the layer to its ports)

        return list(rdpcap(str(self.file)))

    def _bring_up(self) -> None:
        command = [sys.executable, "-P", "-m", "netfold.testbed.network.capture", self._interface, self.file]
        process = self._net.popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._open.callback(_end, process)
        assert process.stderr is not None
        if not (line := process.stderr.readline()).startswith("listening"):
            last = (line + process.stderr.read()).strip().splitlines()[-1:]
            raise NetworkError(f"the capture of {self._interface} ended: {''.join(last) or 'without output'}")


def _end(process: subprocess.Popen[str]) -> None:
    with process:
        process.terminate()
