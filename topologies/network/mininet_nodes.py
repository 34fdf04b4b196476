# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mininet's nodes and links, as netfold needs them. Mininet keeps the books and holds the namespaces; the
kernel is set up by `kernel`, in batches, so the classes here keep Mininet from running its own commands one
by one."""

from __future__ import annotations

import os
from typing import Any

from mininet.cli import CLI
from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch

from netfold.topologies.network import kernel
from netfold.topologies.network.processes import SwitchProcess
from netfold.topologies.network.state import RUN_VARIABLE


def marked(run: str, params: dict[str, Any]) -> dict[str, str]:
    """The environment of a run's process; takes the one asked for out of `params`."""
    return {**(params.pop("env", None) or os.environ), RUN_VARIABLE: run}


class FabricHost(Host):  # type: ignore[misc]
    """A namespace with a shell in it; `run` goes to the environment of all that is started there."""

    def __init__(self, name: str, run: str, **params: Any) -> None:
        self.run = run
        super().__init__(name, **params)

    @classmethod
    def setup(cls) -> None:
        """Mininet would look for ifconfig here, which nothing needs."""

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        return super()._popen(cmd, env=marked(self.run, params), **params)


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
        """Mininet starts a shell for each node; a switch in the root namespace has no use for one until it is asked."""

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        if self.shell is None:
            super().startShell()
        super().sendCmd(*args, **kwargs)

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        return super()._popen(cmd, env=marked(self.run, params), **params)

    def start(self, controllers: list[Any]) -> None:
        self.process.start()

    def stop(self, deleteIntfs: bool = True) -> None:
        self.process.stop()


class FabricInterface(Intf):  # type: ignore[misc]
    """An interface that `kernel` has configured; Mininet would ask and change it through ifconfig."""

    def config(self, **params: Any) -> dict[str, Any]:
        return {}

    def updateIP(self) -> str | None:  # noqa: N802
        ip: str | None = self.ip
        return ip

    def updateMAC(self) -> str | None:  # noqa: N802
        mac: str | None = self.mac
        return mac

    def updateAddr(self) -> tuple[str | None, str | None]:  # noqa: N802
        return self.ip, self.mac

    def isUp(self, setUp: bool = False) -> bool:  # noqa: N802
        """A host's end is as its switch's: a link is cut there."""
        if isinstance(self.node, FabricHost):
            return True
        return kernel.is_up(self.name)

    def status(self) -> str:
        """Of `links`."""
        return "OK" if self.isUp() else "DOWN"

    def ifconfig(self, *args: str) -> str:
        """Of `link A B down`: what Mininet prints of it is an error."""
        if args in (("up",), ("down",)) and isinstance(self.node, FabricSwitch):
            kernel.set_link(self.name, up=args == ("up",))
        return ""


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


def prompt(mininet: Any) -> None:
    """`mininet>`, until `exit` or the end of input."""
    setLogLevel("output")
    try:
        CLI(mininet)
    finally:
        setLogLevel("error")
