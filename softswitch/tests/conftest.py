# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the switch's tests, and the event loop of each `async def test`."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
from kinds import config
from p4runtime_client import Client, connected
from softswitch.build.native import default_cache_dir
from testnet import Host, Namespace, SwitchProcess, dpdk_problem, xdp_problem

StartSwitch = Callable[..., SwitchProcess]
_LOOP = asyncio.Runner()


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Compiled programs are kept between runs: the key covers all that goes into them."""
    return default_cache_dir()


@pytest.fixture(params=["packet", "xdp", pytest.param("dpdk", marks=pytest.mark.slow)])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of a switch's ports on interfaces."""
    name: str = request.param
    if name == "xdp" and (problem := xdp_problem()):
        pytest.skip(f"SKIPPED: no AF_XDP: {problem}")
    if name == "dpdk" and (problem := dpdk_problem()):
        pytest.skip(f"SKIPPED: needs libdpdk-dev: {problem}")
    return name


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace()
    yield made
    made.close()


@pytest.fixture
def hosts(namespace: Namespace) -> list[Host]:
    """The far ends of both links."""
    return [namespace.host(number) for number in (1, 2)]


@pytest.fixture
def start_switch(tmp_path: Path) -> Iterator[StartSwitch]:
    """A function that takes a namespace and what SwitchProcess takes after its folder. The processes end with the
    test."""
    with ExitStack() as started:

        def start(
            namespace: Namespace | None, *arguments: object, folder: Path = tmp_path, **options: Any
        ) -> SwitchProcess:
            process = SwitchProcess(namespace, folder, *arguments, **options)
            started.callback(process.kill)
            return process

        yield start


@pytest.fixture
def client(switch: SwitchProcess) -> AbstractAsyncContextManager[Client]:
    """The primary controller of a module's `switch`, which runs kinds.p4 anew."""
    return connected(switch.address, config())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run an `async def test` in the loop of this process, which enters its asynchronous contexts, too. The loop
    is never closed: gRPC has one queue of events for all loops of a process, and stops at those of a closed one."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return

    async def inside(arguments: dict[str, Any]) -> None:
        async with AsyncExitStack() as contexts:
            for name, argument in arguments.items():
                if isinstance(argument, AbstractAsyncContextManager):
                    arguments[name] = await contexts.enter_async_context(argument)
            await test(**arguments)

    pyfuncitem.obj = lambda **arguments: _LOOP.run(inside(arguments))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Root of a container may be refused network namespaces: tests that need them are skipped."""
    marked = [i for i in items if i.get_closest_marker("root") and Path(__file__).parent in i.path.parents]
    if not marked or os.geteuid() != 0:
        return
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return
    for item in marked:
        reason = f"SKIPPED: no network namespaces: {tried.stderr.strip()}"
        item.add_marker(pytest.mark.skip(reason=reason), append=False)
