# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch with three links and a controller: fixtures and helpers of the tests in which packets run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from finsy.proto import p4r
from testnet import Host, Namespace, SwitchProcess, ethernet

DATA, LEARN, MEASURE, TAGGED = 0x1234, 0x88B5, 0x88B6, 0x4242


@pytest.fixture(scope="module")
def namespace() -> Iterator[Namespace]:
    made = Namespace(3)
    yield made
    made.close()


@pytest.fixture(scope="module")
def switch(namespace: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    ports = [part for number in (1, 2, 3) for part in ("-i", f"{number}@sw{number}")]
    process = SwitchProcess(namespace, tmp_path_factory.mktemp("switch"), *ports)
    yield process
    process.kill()


@pytest.fixture
def hosts(namespace: Namespace) -> Iterator[list[Host]]:
    made = [namespace.host(number) for number in (1, 2, 3)]
    yield made
    for host in made:
        host.close()


async def arrival(host: Host) -> bytes | None:
    """The next frame at a host, while the client's loop goes on."""
    return await asyncio.to_thread(host.receive)


def learn_frame(source: int) -> bytes:
    return ethernet(LEARN, bytes(46), dst=5, src=source)


def learned(message: p4r.StreamMessageResponse) -> list[tuple[int, int]]:
    assert message.WhichOneof("update") == "digest", message
    rows = [[member.bitstring for member in data.struct.members] for data in message.digest.data]
    return [(int.from_bytes(source, "big"), int.from_bytes(port, "big")) for source, port in rows]
