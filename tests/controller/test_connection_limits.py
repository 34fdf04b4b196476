# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Connections of strangers that send nothing keep no member from the controller."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from netfold.controller.service import metrics
from netfold.controller.service.connection_limits import ConnectionLimits, limits_of_process
from netfold.controller.service.security import Credentials, Security
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.topologies.generators import single_switch
from netfold.traffic.membership.membership import ControllerMembership
from tests.controller.deployment import ready
from tests.traffic.tls import make_certificate, reached

SPEC = "name: job\nworkers: [h1, h2]\nscheme: switchml\nrate: 20\n"
LIMITS = ConnectionLimits(connections=8, handshake_s=1.0)
FLOOD = 40
SCRAPE_THREAD = "scrape"


@contextmanager
def flooded(port: int, count: int = FLOOD) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]


def is_closed(sock: socket.socket) -> bool:
    """By the other end."""
    try:
        return sock.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_connections_of_strangers_keep_no_member_from_the_controller(tmp_path):
    tls = make_certificate(tmp_path)
    security = Security(tls.certificate.read_bytes(), tls.key.read_bytes(), frozenset({"a-token"}))
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.controller.requests.submit(SPEC, queue=False)
        service = service_of(deployment.controller)
        async with serving(service, "127.0.0.1:0", Credentials(security), LIMITS) as address:
            where = reached(address, tls, tmp_path)
            first = ControllerMembership(where, "job", "h1")
            assert await asyncio.to_thread(first.wait, 20)
            with flooded(int(address.rpartition(":")[2])) as connections:

                def refused() -> int:
                    return sum(map(is_closed, connections))

                await deployment.until(lambda: refused() > FLOOD - LIMITS.connections, "refused at once")
                assert await asyncio.to_thread(first.request_new_epoch, 1, 20), "an open stream goes on"
                await deployment.until(lambda: refused() == FLOOD, "closed without a handshake")
                second = ControllerMembership(where, "job", "h2")
                assert await asyncio.to_thread(second.wait, 20), "another member comes in"
            for member in (first, second):
                await asyncio.to_thread(member.close)


async def test_connections_of_strangers_keep_no_scrape_from_the_metrics(tmp_path, monkeypatch, capfd):
    """They send nothing, or a part of a request, or are reset."""
    monkeypatch.setattr(metrics, "REQUEST_S", 3.0)

    def threads() -> int:
        return sum(t.name == SCRAPE_THREAD for t in threading.enumerate())

    def scraped(port: int) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
            return b"netfold_switch_ready" in page.read()

    listener = metrics.listen_for_scrapes(0)
    port = listener.getsockname()[1]
    async with ready(single_switch(2), tmp_path) as deployment:
        controller = deployment.controller
        collector = metrics.ControllerCollector(controller.state, controller.switches, controller.planning)
        with metrics.metrics_server(collector, port, lambda: 0.0, listener.detach()):
            with flooded(port, 4 * metrics.CONNECTIONS_MAX) as connections:
                for connection in connections[::2]:
                    with suppress(OSError):  # it is closed by now
                        connection.sendall(b"GET /metr")
                for _ in range(5):
                    assert await asyncio.to_thread(scraped, port)

                def left() -> int:
                    return sum(not is_closed(c) for c in connections)

                assert left() <= metrics.CONNECTIONS_MAX
                await deployment.until(lambda: threads() <= metrics.CONNECTIONS_MAX, "threads are bounded")
                reset = struct.pack("ii", 1, 0)
                connections[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                connections.pop().close()
                await deployment.until(lambda: left() == 0, "closed without a request")
            await deployment.until(lambda: threads() == 0, "no thread is left")
            assert await asyncio.to_thread(scraped, port)
    assert "Traceback" not in capfd.readouterr().err


def test_connections_leave_files_for_switches_and_the_store():
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < limits_of_process().connections <= files // 2
