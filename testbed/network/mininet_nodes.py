# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mininet's nodes and links for netfold. Mininet owns the namespaces; `kernel` configures the kernel in batches, so the
classes here keep Mininet from running its own commands one by one."""

from __future__ import annotations

import os
from typing import Any

from mininet.cli import CLI
from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch

from netfold.testbed.network import kernel
from netfold.testbed.network.processes import SwitchProcess
from netfold.testbed.network.state import RUN_VARIABLE


def run_environment(run: str, params: dict[str, Any]) -> dict[str, str]:
    """The environment of a run's process; removes `env` from `params`."""
    return {**(params.pop("env", None) or os.environ), RUN_VARIABLE: run}


class FabricHost(Host):  # type: ignore[misc]
    """A namespace with a shell; `run`: marks the environment of its processes."""

    def __init__(self, name: str, run: str, **params: Any) -> None:
        self.run = run
        super().__init__(name, **params)

    @classmethod
    def setup(cls) -> None:
        """Mininet would look for ifconfig here, which nothing needs."""

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        return super()._popen(cmd, env=run_environment(self.run, params), **params)


class FabricSwitch(Switch):  # type: ignore[misc]
    """A switch in the root namespace: one process."""

    def __init__(self, name: str, run: str, process: SwitchProcess, **params: Any) -> None:
        self.run = run
        self.process = process
        super().__init__(name, dpid=f"{process.launch.device_id:016x}", **params)

    @classmethod
    def setup(cls) -> None:
        """Like FabricHost.setup."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        """Deferred to the first command: a switch in the root namespace rarely needs a shell."""

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        if self.shell is None:
            super().startShell()
        super().sendCmd(*args, **kwargs)

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        return super()._popen(cmd, env=run_environment(self.run, params), **params)

    def start(self, controllers: list[Any]) -> None:
        self.process.start()

    def stop(self, deleteIntfs: bool = True) -> None:
        self.process.stop()


class FabricInterface(Intf):  # type: ignore[misc]
    """An interface that `kernel` configured; Mininet would read and change it through ifconfig."""

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
        """Links are cut at the switch's end; a host's end has the same state."""
        if isinstance(self.node, FabricHost):
            return True
        return kernel.is_up(self.name)

    def status(self) -> str:
        """For Mininet's command `links`."""
        return "OK" if self.isUp() else "DOWN"

    def ifconfig(self, *args: str) -> str:
        """For Mininet's command `link A B down`, which prints the result as an error."""
        if args in (("up",), ("down",)) and isinstance(self.node, FabricSwitch):
            kernel.set_link(self.name, up=args == ("up",))
        return ""


class FabricLink(Link):  # type: ignore[misc]
    """A veth pair that `kernel` created; it is removed with the network."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **params: Any) -> None:  # noqa: N802
        pass

    def stop(self) -> None:
        pass


def new_mininet() -> Any:
    """An empty Mininet of these classes, without a controller."""
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
    """Run the prompt `mininet>` until `exit` or the end of input."""
    setLogLevel("output")
    try:
        CLI(mininet)
    finally:
        setLogLevel("error")
