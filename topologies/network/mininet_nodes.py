# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mininet's nodes and links, as netfold needs them. Mininet keeps the books and holds the namespaces; the
kernel is set up by `kernel`, in batches, so the classes here keep Mininet from running its own commands one
by one."""

from __future__ import annotations

import os
from typing import Any

from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch

from netfold.topologies.network.processes import SwitchProcess
from netfold.topologies.network.state import RUN_VARIABLE


class FabricHost(Host):  # type: ignore[misc]
    """A namespace with a shell in it; `run` goes to the environment of all that is started there."""

    def __init__(self, name: str, run: str, **params: Any) -> None:
        self.run = run
        super().__init__(name, **params)

    @classmethod
    def setup(cls) -> None:
        """Mininet would look for ifconfig here, which nothing needs."""

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        environment = {**(params.pop("env", None) or os.environ), RUN_VARIABLE: self.run}
        return super()._popen(cmd, env=environment, **params)


class FabricSwitch(Switch):  # type: ignore[misc]
    """A switch in the root namespace that is one process."""

    def __init__(self, name: str, run: str, process: SwitchProcess, **params: Any) -> None:
        self.run = run
        self.process = process
        super().__init__(name, dpid=f"{process.launch.device_id:016x}", **params)

    @classmethod
    def setup(cls) -> None:
        """As for hosts."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Mininet starts a shell for each node; a switch in the root namespace has no use for one."""

    def start(self, controllers: list[Any]) -> None:
        self.process.start()

    def stop(self, deleteIntfs: bool = True) -> None:
        self.process.stop()


class FabricInterface(Intf):  # type: ignore[misc]
    """An interface that `kernel` has configured."""

    def config(self, **params: Any) -> dict[str, Any]:
        return {}


class FabricLink(Link):  # type: ignore[misc]
    """A veth pair that `kernel` has made, and that goes with the network."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **params: Any) -> None:  # noqa: N802
        pass

    def stop(self) -> None:
        pass


def new_mininet() -> Any:
    """An empty Mininet of our classes, without a controller."""
    setLogLevel("error")
    return Mininet(
        controller=None,
        host=FabricHost,
        switch=FabricSwitch,
        link=FabricLink,
        intf=FabricInterface,
        build=False,
    )
