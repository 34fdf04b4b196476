# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch without links and a controller: fixtures and helpers of the tests of Write and Read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import grpc
import pytest
from finsy.proto import p4r
from kinds import (
    config,
)
from p4runtime_client import Client, write_errors
from testnet import SwitchProcess

C = grpc.StatusCode
Case = Callable[[Client], Awaitable[None]]


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwitchProcess]:
    process = SwitchProcess(None, tmp_path_factory.mktemp("switch"), "--log-level", "debug")
    yield process
    process.kill()


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Client]:
    async with Client(address) as client:
        await client.become_primary()
        await client.push(config())
        yield client


Case = Callable[[Client], Awaitable[None]]


@pytest.fixture
def run(switch: SwitchProcess) -> Callable[[Case], None]:
    def run_case(case: Case) -> None:
        async def inside() -> None:
            async with connected(switch.address) as client:
                await case(client)

        asyncio.run(inside())

    return run_case


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
