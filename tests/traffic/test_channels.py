# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which of several addresses a caller reaches, and a connection that is accepted and stays silent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from netfold.protocol import channels
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_aio_channel, open_channel
from netfold.protocol.connection import Connection
from netfold.protocol.unreachable import unreachable_reason
from netfold.traffic.membership.membership import ControllerMembership
from tests.traffic.scripted_controller import Controller, assignment, controller
from tests.traffic.tls import Tls, reached


class SilentAtFirst:
    """Accepts connections at `path`: the first `silent` of them stay without an answer, the others lead to `target`."""

    def __init__(self, path: Path, target: str, silent: int) -> None:
        self.accepted: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._target, self._silent = target.removeprefix("unix:"), silent
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            caller, _ = self._listener.accept()
            self.accepted.append(caller)
            if len(self.accepted) > self._silent:
                other = socket.socket(socket.AF_UNIX)
                other.connect(self._target)
                for ends in ((caller, other), (other, caller)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):  # an end was closed
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "FIRST_S", 0.2)


@pytest.mark.usefixtures("impatient")
def test_a_member_gives_up_a_connection_that_stays_silent(tmp_path: Path) -> None:
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        way = SilentAtFirst(tmp_path / "c", target, silent=2)
        member = ControllerMembership(f"unix:{tmp_path}/c", "j", "h1")
        assert member.wait(60).epoch == 1
        member.close()
    assert len(way.accepted) == 3


@pytest.mark.usefixtures("impatient")
async def test_a_command_gives_up_a_connection_that_stays_silent(tmp_path: Path) -> None:
    with controller() as (servicer, target):
        servicer.job = pb.Job(name="j")
        SilentAtFirst(tmp_path / "c", target, silent=2)
        async with open_aio_channel(Connection(f"unix:{tmp_path}/c")) as channel:
            assert (await rpc.ControllerStub(channel).GetJob(pb.JobName(name="j"))).name == "j"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("is_silent", [True, False])
def test_the_reason_is_named_where_none_answers(is_silent: bool, tmp_path: Path) -> None:
    if is_silent:
        SilentAtFirst(tmp_path / "c", "", silent=1000)
    with (
        pytest.raises(grpc.RpcError) as refused,
        open_channel(Connection(f"unix:{tmp_path}/c"), 1.0),
    ):
        pass
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert ("no answer within 1 s" if is_silent else "No such file") in refused.value.details()


def test_a_short_time_is_for_all_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(channels, "FIRST_S", 6.0)
    with site(tmp_path) as own:
        own.start(1, leads=True, on_check=lambda _: time.sleep(0.2))  # an answer takes its time
        SilentAtFirst(tmp_path / "a", "", silent=1000)
        with open_channel(own.where, 6.0) as channel:
            assert rpc.ControllerStub(channel).GetJob(pb.JobName()).name == own.addresses[1]


def test_a_caller_that_waits_gets_the_leader_and_no_standby(tmp_path: Path) -> None:
    with site(tmp_path) as own:
        own.start(1, leads=False, on_check=lambda number: number == 3 and own.start(0, leads=True))
        with open_channel(own.where, 60.0, wait_for_ready=True) as channel:
            assert rpc.ControllerStub(channel).GetJob(pb.JobName()).name == own.addresses[0]


class Checks(health.HealthServicer):
    """Counts the health checks."""

    def __init__(self, on_check: Callable[[int], object]) -> None:
        super().__init__()
        self._on_check, self._count = on_check, 0

    def Check(self, request, context) -> HealthCheckResponse:  # noqa: N802
        self._count += 1
        self._on_check(self._count)
        return super().Check(request, context)


class Site:
    """Controllers at two addresses, of which one may lead. Each answers with its own address."""

    def __init__(self, folder: Path) -> None:
        self.addresses = [f"unix:{folder}/{name}" for name in "ab"]
        self.where = Connection(",".join(self.addresses))
        self._servers: dict[str, grpc.Server] = {}

    def start(self, number: int, *, leads: bool, on_check: Callable[[int], object] = int) -> None:
        server = grpc.server(ThreadPoolExecutor(4))
        servicer, state = Controller(), Checks(on_check)
        servicer.job = pb.Job(name=self.addresses[number])
        status = HealthCheckResponse.SERVING if leads else HealthCheckResponse.NOT_SERVING
        state.set("netfold.v1.Controller", status)
        add_HealthServicer_to_server(state, server)
        rpc.add_ControllerServicer_to_server(servicer, server)
        server.add_insecure_port(self.addresses[number])
        server.start()
        self._servers[self.addresses[number]] = server

    def stop(self, number: int) -> None:
        self._servers.pop(self.addresses[number]).stop(0).wait()

    def reached(self) -> int:
        """The one that answers a thread, and asyncio too."""
        with open_channel(self.where) as channel:
            name = rpc.ControllerStub(channel).GetJob(pb.JobName()).name
        assert asyncio.run(self._reached()) == name
        return self.addresses.index(name)

    async def _reached(self) -> str:
        async with open_aio_channel(self.where) as channel:
            return str((await rpc.ControllerStub(channel).GetJob(pb.JobName())).name)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    found = Site(folder)
    try:
        yield found
    finally:
        for address in [*found._servers]:
            found.stop(found.addresses.index(address))


@pytest.mark.parametrize("leader", [0, 1])
def test_the_leader_is_reached_wherever_it_is_in_the_list_and_moves_to(leader: int, tmp_path: Path) -> None:
    other = 1 - leader
    with site(tmp_path) as own:
        own.start(leader, leads=True)
        assert own.reached() == leader  # nothing is at the other
        own.start(other, leads=False)
        assert own.reached() == leader
        own.stop(leader)
        assert own.reached() == other  # a standby answers reads
        own.stop(other)
        own.start(other, leads=True)
        assert own.reached() == other
        own.start(leader, leads=False)
        assert own.reached() == other
        own.stop(other)
        own.stop(leader)
        own.start(leader, leads=True)
        own.start(other, leads=False)
        assert own.reached() == leader


def test_a_token_goes_to_no_address_with_a_certificate_for_another_name(tls: Tls, tmp_path: Path) -> None:
    with controller(tls) as (own, target), controller(tls) as (other, named):
        own.job = other.job = pb.Job(name="j")
        where = reached(target, tls, tmp_path)
        several = replace(where, address=f"{named},{target}", server_name="another.test")
        with pytest.raises(grpc.RpcError) as refused, open_channel(several):
            pass
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        reason = unreachable_reason(several, refused.value.details())
        assert f"{named}: its certificate is not for 'another.test'" in reason
        with open_channel(replace(several, server_name=where.server_name)) as channel:
            assert rpc.ControllerStub(channel).GetJob(pb.JobName(name="j")).name == "j"
