# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Trust of the controller and its users: in switches by their certificates, in the default socket by its folder's
owner, in the state by its place. Defaults of the controller are tested, too."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from netfold.controller.operator import controller_commands
from netfold.controller.service.listening import ListenError
from netfold.controller.service.server import serving
from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.devices import Device, SwitchTarget, best_lanes
from netfold.controller.switches.endpoint import Tls
from netfold.protocol import connection as api
from netfold.protocol.netfold_pb2_grpc import ControllerServicer
from netfold.protocol.runtime import is_only_user
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import leaf_spine, single_switch
from netfold.topologies.yaml_locations import SpecError
from tests.controller.deployment import Deployment
from tests.controller.test_tofino import chips
from tests.traffic.tls import make_certificate


@pytest.fixture(scope="module")
def pki(tmp_path_factory) -> Path:
    """A key and a certificate of its own for each of `switch` and `controller`."""
    folder = tmp_path_factory.mktemp("pki")
    for name in ("switch", "controller"):
        (folder / name).mkdir()
        make_certificate(folder / name, name)
    return folder


@asynccontextmanager
async def _mutual(pki: Path, folder: Path, server_name: str) -> AsyncIterator[Deployment]:
    """A deployment without its controller. Its switch takes only a controller that shows the right certificate."""
    fabric = single_switch(2)
    (folder / "switches.yaml").write_text(
        f"defaults: {{tls_ca: {pki}/switch/cert, tls_cert: {pki}/controller/cert, tls_key: {pki}/controller/key}}\n"
        f"switches: {{s1: {{tls_server_name: {server_name}}}}}\n"
    )
    deployment = Deployment(fabric, folder, devices=read_devices(folder / "switches.yaml", fabric, 32))
    switch = deployment.switches["s1"]
    pair = ((pki / "switch/key").read_bytes(), (pki / "switch/cert").read_bytes())
    switch.credentials = grpc.ssl_server_credentials([pair], (pki / "controller/cert").read_bytes(), True)
    await switch.start()
    try:
        yield deployment
    finally:
        await deployment.kill()
        await switch.stop()


async def _is_refused(deployment: Deployment) -> None:
    deployment.start()
    health = deployment.controller.switches.fleet.health("s1")
    await deployment.until(lambda: "no connection" in health.error, "refused")


async def test_a_switch_is_spoken_to_by_tls_and_in_the_clear_it_is_not(pki, tmp_path):
    async with _mutual(pki, tmp_path, "switch") as deployment:
        switch = deployment.switches["s1"]
        deployment.start()
        await deployment.settled_exactly()
        await deployment.kill()
        await switch.stop()  # with what it was still asked
        await switch.start()
        reads = switch.reads
        deployment.devices = {}
        await _is_refused(deployment)
        assert switch.reads == reads


async def test_a_switch_with_another_certificate_is_not_read(pki, tmp_path):
    async with _mutual(pki, tmp_path, "another") as deployment:
        await _is_refused(deployment)
        assert deployment.switches["s1"].reads == 0


def test_the_switches_file_wants_all_that_tls_needs(tmp_path):
    file, fabric = tmp_path / "switches.yaml", single_switch(2)
    for text, message in (
        ("defaults: {tls_server_name: a}\n", "needs tls_ca in addition to its other tls options"),
        ("defaults: {tls_ca: none.pem}\n", "the tls_ca of 's1' is missing"),
        ("defaults: {tls_ca: switches.yaml, tls_key: switches.yaml}\n", "needs both of tls_cert and tls_key"),
    ):
        file.write_text(text)
        with pytest.raises(SpecError, match=message):
            read_devices(file, fabric, 32)
    file.write_text("defaults: {tls_ca: switches.yaml}\n")
    assert read_devices(file, fabric, 32)["s1"].tls == Tls(file)


@pytest.fixture
def default_socket(tmp_path, monkeypatch) -> Path:
    """The default socket of a user without a runtime folder."""
    socket = tmp_path / "netfold-1000" / "netfold" / "controller.sock"
    monkeypatch.setattr(api, "default_socket", lambda: f"unix:{socket}")
    monkeypatch.setattr("netfold.controller.service.server.default_socket", lambda: f"unix:{socket}")
    monkeypatch.delenv("NETFOLD_CONTROLLER", raising=False)
    return socket


def give_away(folder: Path) -> None:
    os.chown(folder, 4242, 4242)


def replace_by_link(folder: Path) -> None:
    moved = folder.rename(folder.with_suffix(".moved"))
    folder.symlink_to(moved)


@pytest.mark.root
@pytest.mark.parametrize("spoil", [give_away, lambda f: f.chmod(0o777), replace_by_link])
@pytest.mark.parametrize("upper", [False, True])
def test_a_default_socket_in_a_folder_of_another_user_is_not_used(spoil, upper, default_socket):
    if spoil is give_away and is_only_user():
        pytest.skip("SKIPPED: needs root, and other users")
    default_socket.parent.mkdir(parents=True)
    assert api.connection().address.endswith("controller.sock")
    spoil(default_socket.parent.parent if upper else default_socket.parent)
    with pytest.raises(api.ConnectError, match="is not to be trusted"):
        api.connection()

    async def serve() -> None:
        async with serving(ControllerServicer(), f"unix:{default_socket}", None):
            pass

    with pytest.raises(ListenError, match="is not to be trusted"):
        asyncio.run(serve())


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_a_unix_socket_is_open_to_its_user_alone_whatever_the_umask_is(umask, tmp_path):
    socket = tmp_path / "controller.sock"

    async def mode() -> int:
        async with serving(ControllerServicer(), f"unix:{socket}", None):
            return stat.S_IMODE(socket.stat().st_mode)

    before = os.umask(umask)
    try:
        assert asyncio.run(mode()) == 0o600
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


def test_the_state_is_in_one_place_from_wherever_the_controller_starts(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        "netfold.protocol.runtime._user_map", lambda: [(0, 0, 1 << 32)]
    )  # that of the machine
    assert controller_commands.default_state("fab") == Path("/var/lib/netfold/fab.db")
    with monkeypatch.context() as named:
        named.setenv("NETFOLD_NAME", "two")  # a second network of the fabric, with a controller of its own
        assert controller_commands.default_state("fab") == Path("/var/lib/netfold/two-fab.db")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", "/home/u/state")
    assert controller_commands.default_state("fab") == Path("/home/u/state/netfold/fab.db")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    assert controller_commands.default_state("fab") == Path("/home/u/.local/state/netfold/fab.db")


def test_the_default_lanes_are_the_most_that_all_switches_have():
    fabric = leaf_spine(2, 2, 2)
    assert best_lanes(fabric, {}) == 256 == Testbed(fabric).lanes
    one_chip = chips()
    assert best_lanes(one_chip, {"leaf1": Device(SwitchTarget.TOFINO)}) == 32
    assert best_lanes(one_chip, {}) == 256, "programs, whatever chip the fabric gives them"
