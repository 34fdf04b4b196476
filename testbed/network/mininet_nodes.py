# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mininet's nodes and links for netfold. Mininet owns the namespaces; `kernel` configures the kernel in batches, so the
classes here keep Mininet from running its own commands one by one."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterator
from typing import Any

from mininet.cli import CLI
from mininet.link import Intf, Link
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Switch

from netfold.protocol.environment import Variable
from netfold.testbed.network import kernel
from netfold.testbed.network.errors import NamespaceError
from netfold.testbed.network.processes import SwitchProcess


def run_environment(run: str, params: dict[str, Any]) -> dict[str, str]:
    """The environment of a run's process; removes `env` from `params`."""
    return {**(params.pop("env", None) or os.environ), Variable.NETWORK: run}


SHELL_START_S = 30.0
"""Until a host's shell has its prompt: a namespace and a bash, on a busy machine."""


class ShellEndedError(Exception):
    """The shell of a node ended, or is late. Mininet would wait for its next byte for ever: it keeps the other end of
    the terminal open (mininet issue 529)."""


class FabricHost(Host):  # type: ignore[misc]
    """A namespace with a shell; `run`: marks the environment of its processes. Raises NamespaceError if the shell ends
    before its prompt, as it does where namespaces are forbidden."""

    def __init__(self, name: str, run: str, **params: Any) -> None:
        self.run = run
        self._output = ""
        self._deadline: float | None = time.monotonic() + SHELL_START_S
        try:
            super().__init__(name, **params)
        except (OSError, IndexError, ShellEndedError) as error:
            with contextlib.suppress(OSError):  # the other end is closed
                self.terminate()
            raise NamespaceError(name, " ".join(self.command), self._output or str(error)) from error
        self._deadline = None
        self._output = ""

    def read(self, size: int = 1024) -> str:
        """Like Mininet's, which would not return once the shell has ended."""
        if not self.readbuf:
            with self._shell_end() as shell_end:
                self._wait_for_output(shell_end)
        data: str = super().read(size)
        if self._deadline is not None:
            self._output += data
        return data

    @contextlib.contextmanager
    def _shell_end(self) -> Iterator[int | None]:
        """A descriptor that is readable once the shell has ended; None: it has ended, and was waited for."""
        try:
            descriptor = os.pidfd_open(self.shell.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _wait_for_output(self, shell_end: int | None) -> None:
        terminal = self.stdout.fileno()
        waiting = [terminal] if shell_end is None else [terminal, shell_end]
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        ready, _, _ = select.select(waiting, [], [], 0.0 if shell_end is None else left)
        if terminal in ready:
            return
        if ready and select.select([terminal], [], [], 0.0)[0]:  # its last words
            return
        raise ShellEndedError(
            "it ended" if ready or shell_end is None else f"no prompt in {SHELL_START_S:g} s"
        )

    @classmethod
    def setup(cls) -> None:
        """Mininet would look for ifconfig here, which nothing needs."""

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        self.command = cmd
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
