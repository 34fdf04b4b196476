# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch without links and a controller: fixtures and helpers of the tests of Write and Read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import Mock

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc
from p4runtime_client import Client, write_errors
from softswitch.p4runtime.device import Device
from softswitch.p4runtime.service import P4RuntimeService
from testnet import SwitchProcess

C = grpc.StatusCode


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    process = SwitchProcess(None, tmp_path_factory.mktemp("switch"), "--log-level", "debug")
    yield process
    process.kill()


@asynccontextmanager
async def served() -> AsyncIterator[tuple[P4RuntimeService, str]]:
    """The service of a switch without a program, in this process, and its address."""
    server = grpc.aio.server()
    service = P4RuntimeService(Device(Mock(), Path("/nonexistent")), 1, Mock(), Mock())
    p4r_grpc.add_P4RuntimeServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield service, f"127.0.0.1:{port}"
    finally:
        service.close_streams()
        await server.stop(0.2)


async def refusals(client: Client, *updates: p4r.Update) -> list[tuple[int, str]]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.write(*updates)
    assert caught.value.code() is C.UNKNOWN, caught.value
    errors = write_errors(caught.value)
    assert len(errors) == len(updates)
    return [(error.canonical_code, error.message) for error in errors]


async def expect(client: Client, update: p4r.Update, code: grpc.StatusCode, words: str = "") -> None:
    ((got, message),) = await refusals(client, update)
    assert got == code.value[0], (got, message)
    assert words in message, message


def entries(entities: list[p4r.Entity]) -> list[p4r.TableEntry]:
    return [entity.table_entry for entity in entities]
