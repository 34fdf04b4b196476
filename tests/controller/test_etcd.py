# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Stores in etcd, with real members that are killed and stopped: commands, certificates, and whole controllers."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import grpc
import pytest

from netfold.controller.jobs import etcd_client
from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient
from netfold.controller.jobs.etcd_engine import DATA, HEAD, engine_of
from netfold.controller.jobs.store import SCHEMA_BEFORE, Store
from netfold.controller.service import store_files
from netfold.controller.service.leadership import Leadership
from tests.controller.etcd_server import DEADLINE_S, EtcdServer, etcd_server
from tests.controller.test_processes import operating
from tests.controller.test_store_files import _run as command
from tests.controller.test_store_files import store as store  # noqa: PLC0414 (a fixture)
from tests.traffic.tls import make_certificate

PATIENT = (
    "from netfold.controller.jobs import etcd_client, etcd_lease; "
    "etcd_client.ATTEMPT_S = etcd_client.CALL_S = 5.0; etcd_lease.LEASE_S = 10; "
)
"""The limits of a controller on a busy machine: etcd may answer late, and callers wait for 10 s."""


def _until_it_commits(store: Store) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            with store.change():
                store.set_number("seq", store.number("seq") + 1)
        except StoreError:
            assert time.monotonic() < deadline
            time.sleep(0.1)  # the client makes no call for a while
        else:
            return


def test_a_store_is_copied_to_etcd_and_back(store, etcd: EtcdServer, tmp_path):
    state, back = etcd.state(), tmp_path / "back.db"
    assert command("verify", state)[0] == 4
    leadership = Leadership(store)
    assert leadership.try_lead()
    assert command("copy", store.name, state)[0] == 3
    leadership.release()
    code, output = command("copy", store.name, state)
    assert (code, "2 jobs, 2 of them live" in output) == (0, True), output
    code, output = command("copy", store.name, state)
    assert (code, "name a place without a store" in output) == (4, True), output
    assert command("copy", state, back)[0] == 0
    for copied in (Store(engine_of(state), ""), Store(back, "")):
        assert copied.jobs() == store.jobs()
        assert (copied.mark, copied.key, copied.fabric) == (store.mark, store.key, store.fabric)
        copied.close()
    assert command("copy", tmp_path / "none", etcd.state())[0] == 4


def test_the_commands_take_a_store_in_etcd(store, etcd: EtcdServer, tmp_path):
    state = etcd.state()
    command("copy", store.name, state)
    leader = Store(engine_of(state), "")
    for name, *more in (("verify",), ("backup", tmp_path / "copy"), ("finalize",)):
        assert command(name, state, *more)[0] == 0
    with leader.change():
        leader.set_number("seq", 9)
    assert command("restore", tmp_path / "copy", state)[0] == 0
    with pytest.raises(StoreError, match="another one has written"), leader.change():
        leader.set_number("seq", 10)
    leader = Store(engine_of(state), "")
    assert leader.try_lead(object)
    assert command("restore", tmp_path / "copy", state)[0] == 3
    leader.close()
    assert Store(engine_of(state), "").number("seq") == store.number("seq")


def test_a_store_made_during_a_copy_is_kept(store, etcd: EtcdServer, monkeypatch):
    state = etcd.state()
    back_up = store_files.back_up

    def slow(*files):
        verdict = back_up(*files)
        Store(engine_of(state), "other").close()
        return verdict

    monkeypatch.setattr(store_files, "back_up", slow)
    code, output = command("copy", store.name, state)
    assert (code, "name a place without a store" in output) == (4, True), output
    assert Store(engine_of(state), "").fabric == "other"


def test_a_damaged_store_is_replaced(store, etcd: EtcdServer, tmp_path):
    state = etcd.state()
    command("copy", store.name, state)
    command("backup", state, tmp_path / "copy")
    client = EtcdClient(EtcdAddress.of(state))
    whole, damage = client.load(), dict.fromkeys(("a//000", "a//001", "gone//000"), b"nonsense")
    client.replace(
        HEAD, whole[HEAD], b"0:x:1", {f"{DATA}jobs/{name}": value for name, value in damage.items()}
    )
    assert command("verify", state)[0] == 4
    code, output = command("restore", tmp_path / "copy", state)
    assert code == 0, output
    found = client.load()
    assert {n: v for n, v in found.items() if n != HEAD} == {n: v for n, v in whole.items() if n != HEAD}


def test_a_store_of_the_version_before_is_not_copied_to_etcd(store, etcd: EtcdServer):
    with store.change():
        store.set_number("schema", SCHEMA_BEFORE)
    code, output = command("copy", store.name, etcd.state())
    shown = " ".join(output.split())
    assert (code, "no version before reads a store there" in shown) == (4, True), output
    assert f"finalize {store.name} first" in shown


def test_certificates_of_both_sides(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    own, other = make_certificate(tmp_path, "localhost"), make_certificate(tmp_path / "other", "localhost")
    with etcd_server(tmp_path, tls=own) as server:
        state = server.state()
        Store(engine_of(state), "f").close()
        assert Store(engine_of(state), "g").fabric == "f"
        for limit in ("LOAD_S", "LOAD_ATTEMPT_S"):
            monkeypatch.setattr(etcd_client, limit, 1.0)
        for wrong in (
            state.replace(str(own.certificate), str(other.certificate)).replace(str(own.key), str(other.key)),
            state.partition("&cert=")[0],
            state.partition("?")[0],
        ):
            with pytest.raises(StoreError, match="no member of etcd answers"):
                Store(engine_of(wrong), "f")


def test_files_without_certificates_are_named(tmp_path):
    """gRPC takes the system's authorities in place of an empty file."""
    (tmp_path / "other").mkdir()
    own, other = make_certificate(tmp_path, "localhost"), make_certificate(tmp_path / "other", "localhost")
    (tmp_path / "empty").touch()
    (tmp_path / "junk").write_text("junk")
    for ca, certificate, key, wrong in (
        ("empty", own.certificate, own.key, "empty has no certificate"),
        ("junk", own.certificate, own.key, "junk has no certificate"),
        (own.certificate, "junk", own.key, "are no certificate with its key"),
        (own.certificate, own.certificate, "junk", "are no certificate with its key"),
        (own.certificate, own.certificate, other.key, "are no certificate with its key"),
    ):
        files = f"ca={tmp_path / ca}&cert={tmp_path / certificate}&key={tmp_path / key}"
        with pytest.raises(StoreError, match=wrong):
            engine_of(f"etcd://localhost/a?{files}")


@pytest.mark.usefixtures("_short_limits")
def test_a_certificate_that_has_expired_is_named(tmp_path):
    made = make_certificate(tmp_path, "localhost")
    expired = tmp_path / "expired"
    command = [
        "openssl",
        "x509",
        "-in",
        made.certificate,
        "-signkey",
        made.key,
        "-days",
        "0",
        "-out",
        expired,
    ]
    subprocess.run(command, check=True, capture_output=True)
    time.sleep(1.1)  # it is valid for the second in which it was made
    pair = made.key.read_bytes(), expired.read_bytes()
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([pair]))
    server.start()
    with (
        closing(EtcdClient(EtcdAddress.of(f"etcd://localhost:{port}/a?ca={expired}"))) as client,
        pytest.raises(StoreError, match=f"localhost:{port}: its certificate has expired"),
    ):
        client.load_few(HEAD)
    server.stop(None)


@pytest.fixture
def _short_limits(monkeypatch):
    """Set the product's limits again, which the server of other tests may have lengthened."""
    for limit, seconds in (("ATTEMPT_S", 0.5), ("CALL_S", 2.0), ("SHORT_CALL_S", 0.3)):
        monkeypatch.setattr(etcd_client, limit, seconds)


@pytest.mark.usefixtures("_short_limits")
def test_a_change_is_refused_in_time_while_etcd_is_away(tmp_path):
    with etcd_server(tmp_path) as server:
        store = Store(engine_of(server.state()), "f")
        _until_it_commits(store)
        for is_hung in (True, False):
            if is_hung:
                server.pause(0)
            else:
                server.kill(0)
            before, began = store.number("seq"), time.monotonic()
            with pytest.raises(StoreError, match="no member of etcd answers"), store.change():
                store.set_number("seq", 100)
            assert time.monotonic() - began < etcd_client.CALL_S + DEADLINE_S / 2
            assert store.number("seq") == before
            if is_hung:
                server.resume(0)
            else:
                server.start(0)
            _until_it_commits(store)
            assert store.number("seq") == before + 1


@pytest.mark.usefixtures("_short_limits")
def test_a_store_outlives_each_member_of_etcd(tmp_path):
    with etcd_server(tmp_path, members=3) as server:
        state = server.state()
        store = Store(engine_of(state), "f")
        for number in server.numbers:
            server.kill(number)
            _until_it_commits(store)
            server.start(number)
            _until_it_commits(store)
        assert Store(engine_of(state), "f").number("seq") == store.number("seq") == 2 * len(server.numbers)


@pytest.mark.usefixtures("_short_limits")
def test_members_are_shown_without_a_majority(tmp_path):
    with etcd_server(tmp_path) as server:
        store = Store(engine_of(server.state()), "f")
        store.stand_by("a", object)
        users = store.engine.users()
        assert (users.standbys, [member.fault for member in users.members]) == (("a",), [""])
        server.kill(0)
        users = store.engine.users()
        assert (users.standbys, [bool(member.fault) for member in users.members]) == ((), [True])
        store.close()


@pytest.mark.slow
async def test_a_standby_leads_with_the_store_and_the_leader_before_stands_by(etcd: EtcdServer, tmp_path):
    """The leader is stopped for longer than its lease, goes on, and leads again once the other one is dead."""
    state = etcd.state()
    async with (
        operating(tmp_path) as operator,
        operator.controller("--state", state, prelude=PATIENT) as first,
    ):
        await operator.serves(first)
        first_address = operator.address
        assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
        second_address = operator.address = f"unix:{operator.folder}/d.sock"
        async with operator.controller("--state", state, prelude=PATIENT) as second:
            await operator.says(second, f"the primary is at {first_address}")
            code, out, _ = await operator.run("controller", "members", "--json")
            shown = json.loads(out)
            assert (code, shown["leader"], shown["standbys"]) == (0, first_address, [second_address])
            assert [(member["leads"], member["fault"]) for member in shown["members"]] == [(True, "")]
            first.send_signal(signal.SIGSTOP)
            await operator.serves(second)
            code, out, _ = await operator.run("job", "show", "job", "--json")
            assert (code, json.loads(out)["state"]) == (0, "running")
            assert (await operator.run("fabric", "cordon", "h4"))[0] == 0
            first.send_signal(signal.SIGCONT)
            await operator.says(first, "stands by")
            await operator.says(first, f"the primary is at {second_address}")
            operator.address = first_address
            code, _, errors = await operator.run("fabric", "cordon", "h1")
            assert (code, f"the primary serves at {second_address}" in " ".join(errors.split())) == (4, True)
            second.kill()
            await operator.serves(first)
            code, out, _ = await operator.run("fabric", "status", "--json")
            assert (code, "h4" in out) == (0, True), "what the other one has committed"
            assert (await operator.run("job", "cancel", "job"))[0] == 0


@pytest.mark.slow
async def test_changes_are_refused_as_a_whole_while_etcd_is_away(tmp_path):
    """As with a lost disk (test_lost_disk.py). The controller stands by, and leads again once etcd is back."""
    async with operating(tmp_path) as operator:
        (tmp_path / "etcd").mkdir()
        with etcd_server(tmp_path / "etcd") as server:
            async with operator.controller("--state", server.state(), prelude=PATIENT) as leader:
                await operator.serves(leader)
                assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
                held = operator.switch.entries()
                server.kill(0)
                code, _, errors = await operator.run("job", "cancel", "job")
                assert (code, "no member of etcd answers" in errors) == (4, True), errors
                await operator.says(leader, "standby at")
                assert (await operator.run("fabric", "cordon", "h1"))[0] == 4
                for read in (("fabric", "status"), ("controller", "status"), ("job", "explain", "job")):
                    assert (await operator.run(*read))[0] == 0
                code, out, _ = await operator.run("job", "show", "job", "--json")
                assert (code, json.loads(out)["state"]) == (0, "running")
                assert operator.switch.entries() == held
                assert leader.returncode is None
                server.start(0)
                await operator.serves(leader)
                assert (await operator.run("job", "cancel", "job"))[0] == 0
