# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Measures one tenant's GetJob alone and while another tenant calls without a pause, in turns.

python -m netfold.evaluation.speed.call_flood [--limits 0,20] [--parallel 64] [--rounds 10]
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import grpc
import numpy as np
import typer
from rich.table import Table

from netfold.controller.service.identities import digest_of
from netfold.evaluation.core.command import Integers, integers, run_command
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel, open_channel
from netfold.protocol.connection import Connection

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

FABRIC = "leaf-spine-2x2"
JOB = "name: {}\nworkers: [{}]\nscheme: switchml\nrate: 5\nlease_ms: 600000\njoin_s: 600\n"
TOKENS = {"vision": "the-token-of-vision", "speech": "the-token-of-speech"}
PAUSE_S = 0.02
"""Seconds between two calls of the tenant whose calls are measured."""
SETTLE_S = 0.5
"""Seconds at the beginning of each turn that count for nothing: a tenant may make a second's calls at once."""


@dataclass(frozen=True)
class FloodRow(Row):
    """`limit`: calls a second of the tenant that floods; 0: unlimited. `flood_s`: its calls a second, answered or
    refused."""

    limit: int
    alone_p50_ms: float
    alone_p99_ms: float
    flood_p50_ms: float
    flood_p99_ms: float
    flood_s: float

    @property
    def ratio(self) -> float:
        return self.flood_p99_ms / self.alone_p99_ms


COLUMNS = (
    Column[FloodRow]("limit", lambda r: r.limit or None, "d"),
    Column[FloodRow]("flood's calls/s", lambda r: r.flood_s, ",.0f"),
    Column[FloodRow]("alone p50 ms", lambda r: r.alone_p50_ms, ".3g"),
    Column[FloodRow]("p99 ms", lambda r: r.alone_p99_ms, ".3g"),
    Column[FloodRow]("flood p50 ms", lambda r: r.flood_p50_ms, ".3g"),
    Column[FloodRow]("p99 ms", lambda r: r.flood_p99_ms, ".3g"),
    Column[FloodRow]("p99 ratio", lambda r: r.ratio, ".2f"),
)


@dataclass(frozen=True)
class CallFlood(Experiment[FloodRow]):
    """Time of one tenant's GetJob while another tenant calls without a pause.

    The controller, the flood and the measured caller are three processes. Turns with and without the flood alternate,
    so that what else the machine does hits both alike."""

    name = "bench-call-flood"
    limits: Annotated[Integers, integers("Calls a second of the tenant that floods; 0: unlimited.")] = (
        Integers((20, 100, 0))
    )
    parallel: Annotated[int, typer.Option(help="Calls of the flood in progress.")] = 64
    rounds: Annotated[int, typer.Option(help="Turns with the flood, and as many without.")] = 10
    turn_s: Annotated[float, typer.Option(help="Seconds of a turn.")] = 2.0

    def rows(self, notify: Notify) -> Iterator[FloodRow]:
        for limit in self.limits:
            notify(f"limit {limit or 'none'}")
            with tempfile.TemporaryDirectory() as folder, controller(Path(folder), limit) as where:
                yield self._row(limit, where)

    def _row(self, limit: int, where: Connection) -> FloodRow:
        context = multiprocessing.get_context("spawn")
        is_on, ended, calls = context.Event(), context.Event(), context.Value("q", 0)
        flooding = context.Process(
            target=flood, args=(_of(where, "speech"), self.parallel, is_on, ended, calls), daemon=True
        )
        flooding.start()
        alone, flooded = list[float](), list[float]()
        try:
            with open_channel(_of(where, "vision")) as channel:
                stub = pb_grpc.ControllerStub(channel)
                self._turn(stub)  # connections are made
                for _ in range(self.rounds):
                    alone += self._turn(stub)
                    is_on.set()
                    flooded += self._turn(stub)
                    is_on.clear()
        finally:
            ended.set()
            flooding.join()
        p50, p99, flood_p50, flood_p99 = (
            1e3 * float(np.percentile(times, p)) for times in (alone, flooded) for p in (50, 99)
        )
        calls_s = calls.value / (self.rounds * (self.turn_s + SETTLE_S))
        return FloodRow(limit, p50, p99, flood_p50, flood_p99, calls_s)

    def _turn(self, stub: pb_grpc.ControllerStub) -> list[float]:
        # a tenant's burst at the start of a turn counts for nothing, and its end has no event
        time.sleep(SETTLE_S)
        found, end = list[float](), time.monotonic() + self.turn_s
        while time.monotonic() < end:
            since = time.perf_counter()
            stub.GetJob(pb.JobName(name="of-vision"), timeout=30)
            found.append(time.perf_counter() - since)
            # the pace of a caller that watches its job
            time.sleep(PAUSE_S)
        return found

    def tables(self, rows: Sequence[FloodRow]) -> Iterable[Table]:
        return [table(f"GetJob beside {self.parallel} calls of another tenant in progress", COLUMNS, rows)]


def _of(where: Connection, tenant: str) -> Connection:
    return Connection(where.address, where.certificate, TOKENS[tenant])


@contextlib.contextmanager
def controller(folder: Path, limit: int) -> Iterator[Connection]:
    """A controller over TLS with a job of each tenant. Its switches are away, which costs it little."""
    openssl = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    names = [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(folder / "key.pem"),
        "-out",
        str(folder / "cert.pem"),
    ]
    subprocess.run([*openssl, *names], check=True, capture_output=True)
    with socket.create_server(("localhost", 0)) as unused:
        address = f"localhost:{unused.getsockname()[1]}"
    lines = [f"{t} {t} user {digest_of(token.encode())}" for t, token in TOKENS.items()]
    (folder / "identities").write_text("\n".join([*lines, f"limits speech calls={limit or 'unlimited'}", ""]))
    (folder / "identities").chmod(0o600)
    options = {
        "state": folder / "state.db",
        "listen": address,
        "tls-cert": folder / "cert.pem",
        "tls-key": folder / "key.pem",
        "identities": folder / "identities",
    }
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    run = [sys.executable, "-P", "-m", "netfold", "controller", "run", FABRIC, *words]
    with subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            where = Connection(address, (folder / "cert.pem").read_bytes())
            for tenant, hosts in (("vision", "h1, h2"), ("speech", "h3, h4")):
                with open_channel(_of(where, tenant), 60, wait_for_ready=True) as channel:
                    text = JOB.format(f"of-{tenant}", hosts)
                    request = pb.SubmitJobRequest(spec_yaml=text, queue=True)
                    pb_grpc.ControllerStub(channel).SubmitJob(request, timeout=60)
            yield where
        finally:
            process.terminate()


def flood(where: Connection, parallel: int, is_on: Event, ended: Event, calls: object) -> None:
    """Call while `is_on` is set, each time as soon as the answer or the refusal is there. `calls`: counts them."""

    async def call(stub: pb_grpc.ControllerStub) -> None:
        while not ended.is_set():
            if not is_on.is_set():
                await asyncio.sleep(0.01)
                continue
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stub.GetJob(pb.JobName(name="of-speech"), timeout=30)
            calls.value += 1  # type: ignore[attr-defined]  # multiprocessing has no type for it

    async def run() -> None:
        async with open_aio_channel(where) as channel:
            stub = pb_grpc.ControllerStub(channel)
            await asyncio.gather(*(call(stub) for _ in range(parallel)))

    asyncio.run(run())


if __name__ == "__main__":
    run_command(CallFlood)
