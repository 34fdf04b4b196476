# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The services of docs/how-to/operate.md and of `netfold deploy` under a systemd, by the page's own commands."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controller.systemd_box import BoxError, SystemdBox, systemd_box
from tests.docs.blocks import blocks
from tests.house.imports import REPOSITORY

pytestmark = [
    pytest.mark.long,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root for a systemd in namespaces"),
]

BLOCKS = list(blocks(REPOSITORY / "docs/how-to/operate.md"))
CLUSTER_BLOCKS = list(blocks(REPOSITORY / "docs/how-to/another-machine.md"))
UNIT = "netfold-controller"
STANDBY = "netfold-standby"
UNITS = "/etc/systemd/system"
OPERATOR = (
    "env",
    "NETFOLD_CONTROLLER=ctl:9600",
    "NETFOLD_TLS_CA=/etc/netfold/cert.pem",
    "NETFOLD_TOKEN_FILE=/etc/netfold/token",
    "netfold",
)
OPERATOR_AT = (
    "env",
    "NETFOLD_CONTROLLER=ctl1:9600,ctl2:9600,ctl3:9600",
    "NETFOLD_TLS_SERVER_NAME=ctl",
    *OPERATOR[2:],
)
TIMEOUT_S = 90.0
WATCHDOG_S = 10
"""In place of the page's minute."""
START_BURST = 5
"""Starts within ten seconds after which systemd leaves a unit failed by default."""


LINKS = """
for name in eth1 eth2; do
  if [ ! -e /sys/class/net/$name ]; then
    ip link add $name type veth peer name peer-$name
    ip link set peer-$name mtu 2000 up
  fi
done
"""

MACHINES = """
ip link add middle type bridge
ip link set middle up
for n in 1 2 3; do
  ip netns add ctl$n
  ip link add ctl$n type veth peer name eth0 netns ctl$n
  ip link set ctl$n master middle up
  ip -n ctl$n address add 10.7.0.$n/24 dev eth0
  ip -n ctl$n link set eth0 up
  ip -n ctl$n link set lo up
  echo 10.7.0.$n ctl$n >> /etc/hosts
  own=/etc/netfold/ctl$n
  install -d -o netfold $own
  install -o netfold -m 640 etcd-ca.pem $own
  install -o netfold -m 640 ctl$n.pem $own/etcd.pem
  install -o netfold -m 640 ctl$n-key.pem $own/etcd-key.pem
  netfold deploy controller --members ctl1,ctl2,ctl3 --member ctl$n --out machine$n
  cp machine$n/etc/sysusers.d/* /etc/sysusers.d
  for unit in netfold-etcd netfold-controller; do
    sed "s,/etc/netfold/etcd,$own/etcd,g; s,^StateDirectory=.*,&-$n,; s,/var/lib/netfold-etcd,&-$n,
      s,XDG_STATE_HOME=/var/lib,&/netfold-$n,; /^.Service/a NetworkNamespacePath=/run/netns/ctl$n" \\
      machine$n/etc/systemd/system/$unit.service > /etc/systemd/system/$unit-$n.service
  done
done
systemd-sysusers
systemctl daemon-reload
"""
"""Three machines are namespaces of the network. Their files have places of their own."""


def page(part: str) -> str:
    """The page's block that has `part`."""
    (found,) = [block.text for block in BLOCKS if part in block.text and not block.mark.startswith("file")]
    return found


def wait_until(condition: Callable[[], bool], box: SystemdBox, *units: str) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, box.run("journalctl", "--no-pager", *(f"--unit={u}" for u in units))
        time.sleep(0.2)  # what is waited for is of processes in the box


@pytest.fixture(scope="module")
def installed() -> Iterator[SystemdBox]:
    """The page's commands have run. The standby has a network of its own, as on a second machine."""
    with ExitStack() as stack:
        try:
            box = stack.enter_context(systemd_box())
        except BoxError as error:
            pytest.skip(f"SKIPPED: {error}")
        for block in BLOCKS:
            if block.mark == "file":
                box.write(f"/tmp/{block.value}", block.text + "\n")
        users = [line for line in page("useradd").splitlines() if "useradd" in line or "install -d" in line]
        box.shell("\n".join(users))
        box.shell("echo 127.0.0.1 ctl >> /etc/hosts; mkdir /var/backups")
        box.shell(page("openssl req"))
        box.write(f"{UNITS}/{UNIT}.service.d/trial.conf", f"[Service]\nWatchdogSec={WATCHDOG_S}\n")
        box.shell(page("systemctl enable").replace("journalctl", "journalctl --no-pager"))
        box.shell(f"cp {UNITS}/{UNIT}.service {UNITS}/{STANDBY}.service")
        box.write(f"{UNITS}/{STANDBY}.service.d/machine.conf", "[Service]\nPrivateNetwork=yes\n")
        box.run("systemctl", "daemon-reload")
        yield box


@pytest.fixture
def box(installed: SystemdBox) -> SystemdBox:
    """The controller runs. It leads, unless the standby runs and does."""
    installed.run("systemctl", "start", UNIT)
    return installed


@pytest.mark.parametrize("unit", ["netfold-controller.service", "softswitch.service"])
def test_systemd_finds_no_fault_in_the_units_of_the_page(unit: str, installed: SystemdBox):
    assert installed.run("systemd-analyze", "verify", "--man=no", f"/tmp/{unit}") == ""


def test_the_service_is_active_when_it_serves(box: SystemdBox):
    assert box.show(UNIT, "StatusText") == "serving at 0.0.0.0:9600"
    assert box.show(UNIT, "UnitFileState") == "enabled"
    status = json.loads(box.run(*OPERATOR, "controller", "status", "--json"))
    assert (status["primary"], status["primary_address"]) == (True, "trial:9600"), "the host's name"
    owners = box.shell("stat --format '%U %a' /var/lib/netfold/*")
    assert set(owners.splitlines()) == {"netfold 600"}
    member = [word.replace("netfold/token", "netfold/member-token") for word in OPERATOR]
    code, output = box.result(*member, "controller", "status")
    assert code != 0, output


def test_a_stopped_process_is_killed_and_its_standby_leads(box: SystemdBox):
    box.run("systemctl", "start", STANDBY)
    assert box.show(STANDBY, "StatusText") == "standby at 0.0.0.0:9600; the primary is at trial:9600"
    stopped = box.show(UNIT, "MainPID")
    box.run("kill", "-STOP", stopped)
    wait_until(lambda: box.show(STANDBY, "StatusText").startswith("serving at"), box, UNIT, STANDBY)
    wait_until(lambda: box.show(UNIT, "StatusText").startswith("standby"), box, UNIT, STANDBY)
    assert (box.show(UNIT, "NRestarts"), box.show(STANDBY, "NRestarts")) == ("1", "0")
    assert "Failed with result 'watchdog'" in box.run("journalctl", "--no-pager", f"--unit={UNIT}")


def test_a_stop_ends_with_exit_code_0(box: SystemdBox):
    box.run("systemctl", "start", STANDBY)
    box.run("kill", "-STOP", box.show(STANDBY, "MainPID"))
    box.run("systemctl", "stop", STANDBY, UNIT)
    for unit in (STANDBY, UNIT):
        ended = [box.show(unit, name) for name in ("ActiveState", "Result", "ExecMainStatus")]
        assert ended == ["inactive", "success", "0"]


def test_a_service_that_cannot_start_is_tried_again(installed: SystemdBox):
    """As its card, its folder or the other controller may be there later."""
    installed.shell(LINKS + "netfold deploy switch -i eth1 -i eth2 --threads 2 --out /; systemd-sysusers")
    installed.shell("netfold deploy ps -i eth1 --controller ctl:9600 --threads 2 --out /")
    installed.shell(f"cp /tmp/softswitch.service {UNITS}; systemctl stop {UNIT} {STANDBY}")
    files = (UNIT, "softswitch", "netfold-switch", "netfold-ps@")
    for file in files:
        fails = "[Service]\nExecStartPre=\nExecStart=\nExecStart=/bin/false\n"
        installed.write(f"{UNITS}/{file}.service.d/fails.conf", fails)
    installed.run("systemctl", "daemon-reload")
    units = [f"{file}digits" if file.endswith("@") else file for file in files]
    try:
        installed.run("systemctl", "start", "--no-block", *units)
        for unit in units:
            wait_until(
                lambda unit=unit: int(installed.show(unit, "NRestarts")) > START_BURST, installed, unit
            )
    finally:
        installed.shell(
            f"systemctl stop {' '.join(units)}; rm {UNITS}/*.d/fails.conf; systemctl daemon-reload"
        )


def test_a_deployed_switch_runs_without_root_and_is_undone(installed: SystemdBox):
    installed.shell(LINKS + "ip address add 10.9.0.1/24 dev eth2")
    installed.shell("netfold deploy switch -i eth1 -i eth2 --mtu 1600 --out / && systemd-sysusers")
    code, output = installed.result("netfold", "doctor", "--deploy")
    assert (code, "Not as deployed" in output, "does not run" in output) == (1, True, True), output
    installed.shell("systemctl daemon-reload; systemctl start netfold-switch")
    wait_until(lambda: installed.result("netfold", "doctor", "--deploy")[0] == 0, installed, "netfold-switch")
    assert "switch: rights" in installed.run("netfold", "doctor", "--deploy")
    installed.run("netfold", "deploy", "switch", "--undo", "--out", "/")
    assert installed.show("netfold-switch", "ActiveState") == "inactive"
    shown = installed.shell("ip -o link show eth2; ip -o -4 address show eth2; cat /sys/class/net/eth1/mtu")
    assert "10.9.0.1/24" in shown
    assert shown.splitlines()[-1] == "1500"
    installed.shell("! ls /etc/systemd/system/netfold-switch.service /opt/netfold/bin/netfold-switch-cards")
    code, output = installed.result("netfold", "doctor", "--deploy")
    assert (code, "no switch is deployed" in output) == (2, True), output


def test_a_copy_of_the_store_is_restored(box: SystemdBox):
    box.run("systemctl", "stop", STANDBY)
    wait_until(lambda: box.show(UNIT, "StatusText").startswith("serving at"), box, UNIT)
    box.write("/tmp/job.yaml", "name: digits\nworkers: 2\n")
    box.run(*OPERATOR, "job", "submit", "--queue", "/tmp/job.yaml")
    box.shell(page("controller backup"))
    box.shell("systemctl kill --signal=KILL netfold-controller; rm /var/lib/netfold/fabric.db")
    box.run("systemctl", "stop", UNIT)
    box.shell("cd /var/lib/netfold; sudo -u netfold netfold controller restore backup-*.db fabric.db")
    box.run("systemctl", "start", UNIT)
    jobs = json.loads(box.run(*OPERATOR, "job", "list", "--all", "--json"))
    assert [job["name"] for job in jobs] == ["digits"]


def test_a_unit_of_a_cluster_manager_does_not_start_without_its_disk(installed: SystemdBox):
    """It would make a new store, and empty the switches."""
    (mounted,) = [block.text for block in CLUSTER_BLOCKS if block.value == "mounted.conf"]
    file = f"{UNITS}/{UNIT}.service.d/mounted.conf"
    installed.run("systemctl", "stop", UNIT, STANDBY)
    installed.write(file, mounted + "\n")
    installed.run("systemctl", "daemon-reload")
    try:
        code, output = installed.result("systemctl", "start", UNIT)
        assert code != 0, output
        assert installed.show(UNIT, "ActiveState") == "inactive"
        installed.shell("mount -t tmpfs store /var/lib/netfold")
        installed.run("systemctl", "start", UNIT)
        assert installed.show(UNIT, "StatusText").startswith("serving at")
        assert installed.shell("stat --format %U /var/lib/netfold/fabric.db").strip() == "netfold"
        installed.run("systemctl", "stop", UNIT)
        installed.run("umount", "/var/lib/netfold")
    finally:
        installed.shell(f"rm {file}; systemctl daemon-reload")


@pytest.mark.skipif(not Path("/usr/bin/etcd").exists(), reason="SKIPPED: needs Debian's etcd-server")
def test_three_machines_hold_the_controller(installed: SystemdBox):
    """Units of `netfold deploy controller` start them with the page's certificates, and the leader's machine ends."""
    (certificates,) = [block.text for block in CLUSTER_BLOCKS if "etcd-ca-key.pem -out" in block.text]
    installed.run("systemctl", "stop", UNIT, STANDBY)
    installed.shell(certificates)
    installed.shell("mkdir -p /etc/sysusers.d" + MACHINES)
    etcds, controllers = ([f"netfold-{name}-{n}" for n in (1, 2, 3)] for name in ("etcd", "controller"))
    installed.run("systemctl", "start", *etcds)
    installed.run("systemctl", "start", *controllers)

    def leaders() -> list[str]:
        return [unit for unit in controllers if installed.show(unit, "StatusText").startswith("serving")]

    wait_until(lambda: len(leaders()) == 1, installed, *controllers)
    wait_until(
        lambda: sum(installed.show(u, "StatusText").startswith("standby") for u in controllers) == 2,
        installed,
        *controllers,
    )
    for name, unit in (("netfold-etcd", etcds[0]), ("netfold", controllers[0])):
        user = installed.run("stat", "--format=%U", f"/proc/{installed.show(unit, 'MainPID')}").strip()
        assert user == name
    (leader,) = leaders()
    number = leader[-1]
    command = f"ip netns exec ctl{number} {' '.join(OPERATOR_AT)}"
    shown = installed.shell(f"{command} controller members")
    assert shown.count("follows") == 2, shown
    assert shown.count("stands by") == 2, shown
    installed.shell(f"{command} fabric cordon h1")
    assert "rack.db.events" in installed.shell(f"ls /var/lib/netfold-{number}/netfold"), "it has no home"
    installed.run("systemctl", "kill", "--signal=KILL", leader, etcds[int(number) - 1])
    wait_until(lambda: any(u != leader for u in leaders()), installed, *controllers)
    installed.run("systemctl", "stop", *controllers, *etcds)
