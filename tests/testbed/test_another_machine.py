# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller goes on at another machine, as a cluster manager moves it (docs/how-to/another-machine.md).

The store's file and a floating address come along, and no call of a job fails."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from netfold.controller.service.store_files import verify
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import connection
from netfold.protocol.environment import Variable
from netfold.protocol.wire import mtu_for
from netfold.testbed.controller_process import RTT_MS
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.targets import Launch, Softswitch, installed_command
from netfold.testbed.network.tools import tool
from netfold.topologies.spec import load_fabric
from tests.testbed.counting_ranks import ranks_of, stop_file, until_more_calls
from tests.testbed.test_scenarios import until
from tests.traffic.tls import Tls, make_certificate

log = logging.getLogger(__name__)

pytestmark = [pytest.mark.slow, pytest.mark.mininet, pytest.mark.timeout(600)]

FABRIC = "leaf-spine-2x2"
LANES = 64
HOSTS = ("h1", "h2", "h5", "h6")
JOB, LATER = "moved", "later"
CALLS = 30
"""Calls in each part of the test."""
NET = "192.168.230"
PORT = 9600
FLOATING = f"{NET}.10:{PORT}"
NAME = "ctl"
"""The certificate has the name of the service, and none of a machine."""

ANNOUNCE = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
    sock.bind(("eth0", 0))
    mac, address = sock.getsockname()[4], socket.inet_aton(sys.argv[1])
    answer = bytes.fromhex("0001080006040002") + mac + address + mac + address
    sock.send(bytes([255] * 6) + mac + bytes.fromhex("0806") + answer)
"""
"""An ARP answer to all. Scapy would load for longer than a busy machine gives it."""


class ReachableSwitch(Softswitch):
    """It serves at all addresses: the controller is on another machine."""

    def command(self, launch: Launch) -> list[str]:
        own = super().command(replace(launch, grpc_address=f"0.0.0.0:{launch.grpc_port}"))
        return [*own, "--insecure-remote"]


def _ip(*words: object) -> None:
    subprocess.run([tool("ip"), *(str(w) for w in words)], check=True, timeout=30)


class Machine:
    """A namespace at the management network, which runs the controller if the cluster manager has it do so."""

    def __init__(self, net: EmulatedNetwork, name: str, number: int, files: Path) -> None:
        self._net = net
        self._files = files
        self.interface = f"{net.name}-{name}"
        self.log = files / f"{name}.log"
        self.log.touch()
        holder = net.popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        holder.stdout.readline()  # the namespace is there
        self._pid = holder.pid
        _join(net, self.interface, "eth0", self._pid, f"{NET}.{number}")
        self._run("ip", "link", "set", "lo", "up")
        self._controller: subprocess.Popen[Any] | None = None

    def start(self, *options: object) -> None:
        """Take the address, and start the service."""
        address = FLOATING.partition(":")[0]
        self._run("ip", "address", "add", f"{address}/24", "dev", "eth0")
        self._run(sys.executable, "-I", "-S", "-c", ANNOUNCE, address)
        with self.log.open("a") as log:
            self._controller = self._popen(
                installed_command("netfold"), "controller", "run", FABRIC, *options, stdout=log, stderr=log
            )

    def end_service(self) -> None:
        """As `kill -9`, and a cluster manager that takes the address away."""
        self._kill()
        self._run("ip", "address", "del", f"{FLOATING.partition(':')[0]}/24", "dev", "eth0")

    def power_off(self) -> None:
        """As a fence does: nothing of it reaches the network any more, not even the ends of its connections."""
        _ip("link", "set", self.interface, "down")
        self._kill()

    def check(self) -> None:
        assert self._controller is not None
        assert self._controller.poll() is None, self.log.read_text()

    def _kill(self) -> None:
        assert self._controller is not None
        self._controller.kill()
        self._controller.wait()

    def _run(self, *command: str) -> None:
        assert self._popen(*command).wait(300) == 0, command

    def _popen(self, *command: object, **options: Any) -> subprocess.Popen[Any]:
        return self._net.popen([tool("mnexec"), "-a", self._pid, *command], **options)


def _join(net: EmulatedNetwork, interface: str, inner: str, pid: int, address: str) -> None:
    """Join a namespace to the management network."""
    _ip("link", "add", interface, "type", "veth", "peer", "name", inner, "netns", pid)
    _ip("link", "set", interface, "master", f"{net.name}-m", "up")
    for words in (["address", "add", f"{address}/24", "dev", inner], ["link", "set", inner, "up"]):
        subprocess.run([tool("mnexec"), "-a", str(pid), tool("ip"), *words], check=True, timeout=30)


@contextmanager
def _management(net: EmulatedNetwork) -> Iterator[None]:
    """A management network for switches, hosts and machines."""
    bridge = f"{net.name}-m"
    _ip("link", "add", bridge, "type", "bridge")
    try:
        _ip("address", "add", f"{NET}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, host in enumerate(HOSTS):
            _join(net, f"{bridge}{number}", "mgmt", net.hosts[host].pid, f"{NET}.{100 + number}")
        yield
    finally:
        _ip("link", "delete", bridge)


def _leads(tls: Tls) -> bool:
    """The health check of grpc.health.v1, at the floating address."""
    trusted = grpc.ssl_channel_credentials(tls.certificate.read_bytes())
    options = [("grpc.ssl_target_name_override", NAME)]
    with grpc.secure_channel(FLOATING, trusted, options=options) as channel:
        try:
            request = HealthCheckRequest(service="netfold.v1.Controller")
            answer = HealthStub(channel).Check(request, timeout=5)
        except grpc.RpcError:
            return False
    return bool(answer.status == HealthCheckResponse.SERVING)


def test_the_controller_goes_on_at_another_machine_and_no_call_fails(tmp_path):
    state, tls, token = (
        tmp_path / "shared" / "fabric.db",
        make_certificate(tmp_path, NAME),
        tmp_path / "token",
    )
    token.write_text("a-token-of-operators\n")
    where = connection(FLOATING, tls.certificate, token, NAME)
    fabric = load_fabric(FABRIC)

    def call(method: str, request: Any) -> Any:
        """An operator's call, at the floating address."""
        with open_channel(where, 60.0, wait_for_ready=True) as channel:
            return getattr(pb_grpc.ControllerStub(channel), method)(request, timeout=60)

    def job(name: str) -> pb.Job:
        return call("GetJob", pb.JobName(name=name))

    def submit(name: str, *hosts: str) -> None:
        text = yaml.safe_dump({"name": name, "workers": list(hosts), "scheme": "switchml", "join_s": 3600})
        call("SubmitJob", pb.SubmitJobRequest(spec_yaml=text))
        until(lambda: job(name).state == pb.RUNNING, f"running job {name}", 120.0)

    def start_at(machine: Machine) -> None:
        began = time.monotonic()
        machine.start(*options)

        def leads() -> bool:
            machine.check()
            return _leads(tls)

        until(leads, "health check that succeeds", 300.0)
        log.info("it leads %.1f s after its start", time.monotonic() - began)

    with ExitStack() as stack:
        net = stack.enter_context(
            EmulatedNetwork(
                fabric, target=ReachableSwitch(), name="away", first_grpc_port=9730, mtu=mtu_for(LANES)
            )
        )
        stack.enter_context(_management(net))
        net.environment.update(
            {
                Variable.TLS_CA: str(tls.certificate),
                Variable.TLS_SERVER_NAME: NAME,
                Variable.TOKEN_FILE: str(token),
            }
        )
        switches = {
            s.name: {"address": f"{NET}.1:{s.grpc_address.rpartition(':')[2]}"} for s in net.switches.values()
        }
        (tmp_path / "switches.yaml").write_text(yaml.safe_dump({"switches": switches}))
        options = (
            *("--switches", tmp_path / "switches.yaml", "--state", state, "--listen", f"0.0.0.0:{PORT}"),
            *("--tls-cert", tls.certificate, "--tls-key", tls.key, "--tokens", token),
            *("--lanes", LANES, "--scale", 1, "--host-rtt-ms", RTT_MS),
        )
        first, second = (Machine(net, f"ctl{n}", 10 + n, tmp_path) for n in (1, 2))
        start_at(first)
        submit(JOB, *HOSTS)
        ranks = stack.enter_context(ranks_of(net, FLOATING, JOB, HOSTS, tmp_path))
        until_more_calls(tmp_path, [JOB], CALLS, first.check)
        epoch = job(JOB).epoch

        first.end_service()
        until_more_calls(tmp_path, [JOB], CALLS, lambda: None)  # without a controller
        start_at(second)
        until_more_calls(tmp_path, [JOB], CALLS, second.check)
        assert (job(JOB).state, job(JOB).epoch) == (pb.RUNNING, epoch)
        submit(LATER, "h3", "h7")  # switches follow the other machine

        second.power_off()
        until_more_calls(tmp_path, [JOB], CALLS, lambda: None)
        start_at(first)
        until_more_calls(tmp_path, [JOB], CALLS, first.check)
        until(
            lambda: all(m.connected for m in job(JOB).members if not m.parameter_server), "returned members"
        )
        assert (job(JOB).state, job(JOB).epoch) == (pb.RUNNING, epoch)
        assert job(LATER).state == pb.RUNNING
        stop_file(tmp_path).touch()
        results = ranks.wait(120.0, first.check)
        assert verify(state).faults == ()
    log.info("the longest call took %.1f s", max(r["longest_s"] for r in results.values()))
    assert {h: r["wrong"] for h, r in results.items()} == {h: [] for h in HOSTS}
    for machine in (first, second):
        assert "Traceback" not in machine.log.read_text()
