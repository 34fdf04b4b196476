# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Controllers of one store as processes, with a caller of each that makes one change after the other."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.testbed.errors import RunError

FABRIC = "name: takeover\ngenerate: {single_switch: {hosts: 8, rate: 100}}\n"
PAUSE_S = 0.02
"""Seconds between two changes of a caller."""
CALL_S = 5.0
READY_S = 90.0
STEADY_S = 0.5
"""Seconds of changes without a gap, after which the controllers count as settled."""
AFTER_S = 1.0
"""Time after a fault in which it may begin to be felt."""
CHANNEL = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 100)]


class Relay:
    """Carries the bytes of connections to a port of loopback, until it is cut: then they wait, as behind a broken link,
    and so do those of new connections."""

    def __init__(self) -> None:
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._tasks = set[asyncio.Task[None]]()

    async def listen(self, target: int) -> int:
        """Return the port at which connections to `target` are taken."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", target)
                for source, sink in ((reader, back), (there, writer)):
                    task = asyncio.create_task(self._carry(source, sink))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                return
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                await self._is_whole.wait()
                sink.write(data)
                await sink.drain()
        sink.close()

    def cut(self) -> None:
        self._is_whole.clear()

    def mend(self) -> None:
        self._is_whole.set()


class Controllers:
    """Controllers with the stores `states` name, one each. `changes`: when a change was acknowledged, and by which
    controller. Each caller cordons a host of its own and gives it back, so that each of its changes is a commit."""

    def __init__(
        self, folder: Path, states: Sequence[str], fabric: str = FABRIC, more: Sequence[str] = ()
    ) -> None:
        self._folder, self._states, self._more = folder, states, more
        self.changes: list[tuple[float, int]] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._switch = socket.socket()
        self._switch.bind(("127.0.0.1", 0))  # nothing listens there: the switch is away
        (folder / "fabric.yaml").write_text(fabric)
        self._stubs = [
            pb_grpc.ControllerStub(grpc.aio.insecure_channel(self._address(number), CHANNEL))
            for number in self.numbers
        ]

    @property
    def numbers(self) -> Sequence[int]:
        return range(len(self._states))

    @property
    def primary(self) -> int:
        """The controller that made the last change."""
        return self.changes[-1][1]

    def _address(self, number: int) -> str:
        return f"unix:{self._folder}/{number}.sock"

    def start(self, number: int) -> None:
        command = [sys.executable, "-P", "-m", "netfold", "controller", "run", "fabric.yaml", "--lanes", "32",
                   "--listen", self._address(number), "--state", self._states[number],
                   "--first-grpc-port", str(self._switch.getsockname()[1]), *self._more]  # fmt: skip
        with (self._folder / f"controller{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)

    def kill(self, number: int) -> None:
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def pause(self, number: int) -> None:
        self._processes[number].send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        self._processes[number].send_signal(signal.SIGCONT)

    async def step_down(self) -> None:
        await self._stubs[self.primary].StepDown(pb.StepDownRequest(), timeout=CALL_S)

    @contextlib.asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        """Start all controllers, and change the store all the time. The end kills them."""
        for number in self.numbers:
            self.start(number)
        calls = [asyncio.create_task(self._call(number)) for number in self.numbers]
        try:
            yield
        finally:
            for task in calls:
                task.cancel()
            for number in list(self._processes):
                self.kill(number)
            self._switch.close()

    async def _call(self, number: int) -> None:
        stub, host = self._stubs[number], f"h{number + 1}"
        for is_free in itertools.cycle((True, False)):
            while not await self._changed(stub, host, is_free=is_free):
                await asyncio.sleep(PAUSE_S)
            self.changes.append((time.monotonic(), number))
            await asyncio.sleep(PAUSE_S)

    async def _changed(self, stub: pb_grpc.ControllerStub, host: str, *, is_free: bool) -> bool:
        try:
            if is_free:
                request = pb.WithdrawElementsRequest(elements=[host], intent=pb.CORDON)
                await stub.WithdrawElements(request, timeout=CALL_S)
            else:
                await stub.GiveBackElements(pb.GiveBackElementsRequest(elements=[host]), timeout=CALL_S)
        except grpc.aio.AioRpcError:
            return False
        return True

    async def until_whole(self, members: int | None = None, steady_s: float = 0.0) -> None:
        """Wait until one leads, all others answer, and so many `members` of etcd, and until changes have had no gap for
        `steady_s`. Raises RunError."""
        since = time.monotonic()
        end = since + READY_S
        while time.monotonic() < end:
            if lack := await self._lack(members):
                since = time.monotonic()
            elif not steady_s or (time.monotonic() - since > steady_s and self._gap(since) < steady_s):
                return
            await asyncio.sleep(0.1)  # what is waited for is of other processes
        raise RunError(
            f"the controllers are not whole within {READY_S:g} s: {lack or 'no change'}; {self._logs()}"
        )

    async def _lack(self, members: int | None = None) -> str:
        """Name what is missing, also of so many members of etcd; "": nothing."""
        if not self.changes:
            return "no change was made"
        try:
            for stub in self._stubs:
                await stub.GetStatus(pb.StatusRequest(), timeout=CALL_S)
            if members is None:
                return ""
            request = pb.ListControllersRequest()
            found = await self._stubs[self.primary].ListControllers(request, timeout=CALL_S)
        except grpc.aio.AioRpcError as error:
            return str(error.details())
        answering = sum(not member.fault for member in found.members)
        if answering != members or (members and len(found.standbys) != len(self.numbers) - 1):
            return f"found only {found}"
        return ""

    async def first_change(self, since: float) -> float:
        """Seconds until a change. Raises RunError."""
        while time.monotonic() < since + READY_S:
            if self.changes and self.changes[-1][0] > since:
                return next(at for at, _ in self.changes if at > since) - since
            await asyncio.sleep(PAUSE_S)
        raise RunError(f"no change within {READY_S:g} s: {self._logs()}")

    def _logs(self) -> str:
        return "\n".join((self._folder / f"controller{n}.log").read_text()[-500:] for n in self.numbers)

    async def gap_after(self, since: float) -> float:
        """The longest time without a change after `since`, once changes go on. Raises RunError."""
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            await asyncio.sleep(0.1)  # changes have no event
            if time.monotonic() - since > AFTER_S and self._gap(time.monotonic() - STEADY_S) < STEADY_S:
                return self._gap(since)
        raise RunError(f"no change within {READY_S:g} s")

    def _gap(self, since: float) -> float:
        times = [since, *(at for at, _ in self.changes if at > since), time.monotonic()]
        return max(b - a for a, b in itertools.pairwise(times))
