# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member's way to its controller: by TCP with certificate and token, and where there is none, or not for a while."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import ConnectError, Connection, connection
from netfold.protocol.unreachable import unreachable_reason
from netfold.traffic.errors import ControllerUnreachableError, JobFailedError
from netfold.traffic.membership.base import Stats
from netfold.traffic.membership.membership import ControllerMembership
from tests.traffic.scripted_controller import Controller, assignment, controller, serve
from tests.traffic.tls import reached


def test_a_member_reaches_a_controller_by_tcp_with_its_certificate_and_token(tls, tmp_path):
    with controller(tls) as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(reached(target, tls, tmp_path), "j", "h1")
        assert member.wait(10).epoch == 1
        member.close()


def test_certificate_token_and_name_are_found_in_the_environment(tls, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("a-token\n")
    monkeypatch.setenv("NETFOLD_TLS_CA", str(tls.certificate))
    monkeypatch.setenv("NETFOLD_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("NETFOLD_TLS_SERVER_NAME", "controller.test")
    with controller(tls) as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).epoch == 1
        member.close()


def test_a_wrong_token_is_refused_at_once(tls, tmp_path):
    with controller(tls) as (_, target):
        member = ControllerMembership(reached(target, tls, tmp_path, "another"), "j", "h1")
        with pytest.raises(
            JobFailedError, match=f"controller at {target} refused h1: a token of this controller"
        ):
            member.wait(10)
        member.close()


@pytest.mark.parametrize("wrong", ["certificate", "name"])
def test_a_controller_that_cannot_be_trusted_is_not_talked_to(wrong, tls, tmp_path, monkeypatch):
    monkeypatch.setattr(ControllerMembership, "DEFAULT_LEASE_S", 0.5)
    with controller(tls) as (servicer, target):
        good = reached(target, tls, tmp_path)
        where = {
            "certificate": Connection(target, None, good.token, good.server_name),
            "name": Connection(target, good.certificate, good.token, "another.test"),
        }[wrong]
        member = ControllerMembership(where, "j", "h1")
        with pytest.raises(ControllerUnreachableError, match=f"no controller at {target}"):
            member.wait(20)
        member.close()
        assert servicer.heard.empty()


def test_what_cannot_be_read_of_the_way_to_the_controller_is_named(tmp_path):
    with pytest.raises(ConnectError, match="nowhere: No such file"):
        connection("localhost:1", tmp_path / "nowhere")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConnectError, match="empty: it is empty; a token is needed"):
        connection("localhost:1", None, tmp_path / "empty")
    assert "secret" not in repr(Connection("localhost:1", token="secret"))


def test_a_proxy_for_the_web_is_not_asked_for_the_controller(tls, tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with controller(tls) as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=3000))
        member = ControllerMembership(reached(target, tls, tmp_path), "j", "h1")
        assert member.wait(10).epoch == 1
        member.close()


def test_a_broken_stream_is_opened_again():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=5000))
        servicer.notices.put(None)
        member = ControllerMembership(target, "j", "h1")
        assert member.wait(10).epoch == 1
        woken = threading.Event()
        member.on_change(woken.set)
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=3)))
        assert woken.wait(10)
        assert member.current().epoch == 3
        member.close()


def test_no_controller_for_too_long_is_an_error_that_names_its_address():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=300))
        member = ControllerMembership(target, "j", "h1", reconnect_timeout_s=0.3)
        member.wait(10)
        woken = threading.Event()
        member.on_change(woken.set)
    assert woken.wait(20)
    with pytest.raises(ControllerUnreachableError, match=f"no controller at {target} for 0.3 s"):
        member.current()
    member.close()


def test_a_waiting_member_outlives_a_controller_that_is_away_for_longer_than_a_lease(tmp_path):
    target = f"unix:{tmp_path}/s"
    queued, running = Controller(), Controller()
    first = serve(queued, target)
    queued.notices.put(pb.ControllerUpdate(lease_ms=300))
    member = ControllerMembership(target, "j", "h1")
    queued.heard.get(timeout=10)
    time.sleep(0.2)  # the update with the lease arrives
    queued.notices.put(None)
    first.stop(0).wait()
    time.sleep(1)
    second = serve(running, target)
    running.notices.put(pb.ControllerUpdate(assignment=assignment(), lease_ms=300))
    assert member.wait(20).epoch == 1
    running.notices.put(None)
    member.close()
    second.stop(0).wait()


def test_a_member_that_ends_while_the_controller_is_away_leaves_when_it_is_back(tmp_path, caplog):
    target = f"unix:{tmp_path}/s"
    before, after = Controller(), Controller()
    first = serve(before, target)
    before.notices.put(pb.ControllerUpdate(assignment=assignment(epoch=4), lease_ms=300))
    member = ControllerMembership(target, "j", "h1")
    member.wait(10)
    first.stop(0).wait()  # breaks the stream; one that the controller ends would count as left
    before.notices.put(None)
    member.report(Stats(next_call=9))
    closing = threading.Thread(target=member.close)
    closing.start()
    closing.join(member.CLOSE_TIMEOUT_S + 0.5)
    assert closing.is_alive(), "it did not wait for the controller"
    assert f"waits up to 600 s for the controller at {target}" in caplog.text
    second = serve(after, target)
    last = after.heard.get(timeout=20)
    assert (last.leave, last.epoch, last.report.next_call) == (True, 4, 9)
    closing.join(20)
    assert not closing.is_alive()
    second.stop(0).wait()


def test_a_member_that_never_took_part_does_not_wait_for_a_controller_to_leave(tmp_path):
    member = ControllerMembership(f"unix:{tmp_path}/none", "j", "h1")
    started = time.monotonic()
    member.close()
    assert time.monotonic() - started < member.LEAVE_TIMEOUT_S / 10


def test_a_member_that_waits_in_vain_for_a_controller_names_its_address():
    with controller() as (servicer, target):
        servicer.notices.put(pb.ControllerUpdate(lease_ms=300))
        member = ControllerMembership(target, "j", "h1")
        servicer.heard.get(timeout=10)
        time.sleep(0.2)  # the update with the lease arrives
    with pytest.raises(ControllerUnreachableError, match=f"no controller at {target}"):
        member.wait(1)
    member.close()


def test_a_controller_that_is_not_there_is_told_at_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(ControllerMembership, "DEFAULT_LEASE_S", 0.5)
    member = ControllerMembership(f"unix:{tmp_path}/none", "j", "h1")
    with pytest.raises(ControllerUnreachableError):
        member.wait(60)
    member.close()
    first = caplog.messages[0]
    assert first.startswith(f"job j: no controller at unix:{tmp_path}/none (")
    assert first.endswith("; h1 retries for 0.5 s")
    assert len(caplog.messages) == 1


TCP = Connection("ctl.example:9600")
SIGNED = Connection("ctl.example:9600", b"-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("where", "details", "expected"),
    [
        (SIGNED, "SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: self signed", "not signed by an authority of --tls-ca"),
        (TCP, "SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: self signed", "of this system; name its own with --tls-ca"),
        (SIGNED, "UNAUTHENTICATED: Hostname Verification Check failed.", "not for 'ctl.example'; .* --tls-server-name"),
        (TCP, "ipv4:1.2.3.4:5: Failed to connect to remote host: Connection refused", "no process listens"),
        (TCP, "connect failed: Network is unreachable", "no route to it; a host of an emulated network"),
        (Connection("unix:/x"), "connect failed: No such file or directory", "no such socket"),
        (TCP, "something else", "something else"),
        (TCP, None, "no reason is known"),
    ],
)  # fmt: skip
def test_a_reason_names_what_would_be_right(where: Connection, details: str | None, expected: str):
    assert re.search(expected, unreachable_reason(where, details))


def test_a_file_without_a_certificate_is_refused_before_the_call(tmp_path: Path):
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(ConnectError, match="ca: no certificate is in it"):
        connection("ctl.example:9600", tmp_path / "ca")
