# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The script of `netfold deploy switch` on made-up cards, and back; `netfold doctor --deploy` after it."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from netfold.controller.operator.deploy_commands import BAD_INPUT, app
from netfold.testbed import deployed_switch
from netfold.testbed.cli import doctor
from tests.controller.server_tree import CHANNELS, ICE, MLX5, VIRTIO, ServerTree, server_tree

TIMEOUT_S = 60
TOOL = """#!/bin/sh
echo "${0##*/} $*" >>"$0.calls"
case "$*" in
%s
esac
"""
FEATURES = """Features for ice0:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: on
scatter-gather: on
tcp-segmentation-offload: on
generic-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off [fixed]
rx-udp-gro-forwarding: off
tx-udp-segmentation: off
"""
PRINTED = {
    "-k ice0": FEATURES,
    "-l ice0": CHANNELS.format(most=64, now=16),
    "-g ice0": "Ring parameters for ice0:\nPre-set maximums:\nRX:\t8160\nTX:\t8160\n"
    "Current hardware settings:\nRX:\t2048\nTX:\t256\n",
    "-c ice0": "Coalesce parameters for ice0:\nAdaptive RX: on  TX: on\nrx-usecs:\t50\ntx-usecs:\t50\n",
    "-n ice0 rx-flow-hash udp4": "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n",
}
ADDRESS = "2: ice0    inet 10.0.0.5/24 brd 10.0.0.255 scope global ice0\\       valid_lft forever"
LISTENS = "0: 00000000:2557 00000000:0000 0A"
USER = pwd.getpwuid(os.geteuid()).pw_name


class Trial:
    """A deployed switch on a made-up server, whose tools write down how they are called."""

    def __init__(self, folder: Path, tree: ServerTree) -> None:
        self.tree, self.tools = tree, folder / "tools"
        self.tools.mkdir()
        self.make_tool("ethtool", PRINTED)
        self.make_tool("ip", {"-o address show dev ice0 scope global": ADDRESS})
        self.make_tool("modprobe", {})
        self.make_tool("chown", {})

    def make_tool(self, name: str, printed: dict[str, str], *lines: str) -> None:
        cases = [f"'{words}') cat <<'EOF'\n{text}\nEOF\n;;" for words, text in printed.items()]
        (self.tools / name).write_text(TOOL % "\n".join(cases) + "\n".join(lines) + "\n")
        (self.tools / name).chmod(0o755)

    def calls(self, name: str) -> list[str]:
        """Return the calls that changed something, and forget all calls."""
        file = self.tools / f"{name}.calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        shown = (
            "ethtool -k",
            "ethtool -l",
            "ethtool -g",
            "ethtool -c",
            "ethtool -n",
            "ip -o",
            "ip route show",
        )
        return [line for line in lines if not line.startswith((*shown, "ip -6 route show"))]

    def deploy(self, *arguments: object) -> None:
        """Its files are below the server's root."""
        words = ["switch", *map(str, arguments), "--out", str(self.tree.root)]
        result = CliRunner().invoke(app, words, obj=self.tree.machine)
        assert result.exit_code == 0, result.output
        script = self.tree.root / "opt/netfold/bin/netfold-switch-cards"
        text = script.read_text()
        text = re.sub(r"(?<!\w)/(sys|proc|run|dev/vfio)/", rf"{self.tree.root}/\1/", text)
        (self.tree.root / "run").mkdir(exist_ok=True)
        self.script = self.tools / "netfold-switch-cards"
        self.script.write_text(text)
        self.script.chmod(0o755)

    def set_up(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.script, *arguments],
            env={"PATH": f"{self.tools}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

    def check(self) -> Result:
        return CliRunner().invoke(doctor, ["--deploy"], obj=self.tree.machine, env={"COLUMNS": "500"})

    def problems(self) -> list[str]:
        """Names of what is not as deployed."""
        found = deployed_switch.examine_switch(self.tree.machine)
        return [finding.name for finding in found if not finding.found]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path, server_tree(tmp_path / "server"))


SET_UP = {
    "ethtool -L ice0 combined 4": "ethtool -L ice0 combined 16",
    "ethtool -K ice0 rx-udp-gro-forwarding on": "ethtool -K ice0 rx-udp-gro-forwarding off",
    "ethtool -K ice0 tx-udp-segmentation on": "ethtool -K ice0 tx-udp-segmentation off",
    "ethtool -G ice0 rx 8160": "ethtool -G ice0 rx 2048",
    "ethtool -N ice0 rx-flow-hash udp4 sdfn": "ethtool -N ice0 rx-flow-hash udp4 sd",
    "ethtool -C ice0 adaptive-tx off": "ethtool -C ice0 adaptive-tx on",
    "ethtool -C ice0 tx-usecs 8": "ethtool -C ice0 tx-usecs 50",
}


def test_a_card_is_set_up_and_set_back_in_reverse(trial: Trial):
    tree = trial.tree
    ipv6 = tree.write("/proc/sys/net/ipv6/conf/ice0/disable_ipv6", 0)
    numbers = tree.names(f"/sys/bus/pci/devices/{ICE}/msi_irqs")
    tree.write("/sys/class/net/ice0/flags", "0x1002")
    trial.deploy("-i", "ice0", "--threads", 4, "--mtu", 4000)
    for _ in range(2):  # a restart of the service changes nothing of what is set back
        done = trial.set_up()
        assert (done.returncode, done.stdout) == (0, "")
        assert trial.calls("ethtool") == list(SET_UP)
        assert trial.calls("ip") == ["ip link set ice0 mtu 4000 up", "ip address flush dev ice0"]
        assert ipv6.read_text() == "1\n"
        places = [tree.machine.text(f"/proc/irq/{number}/smp_affinity_list") for number in numbers]
        assert places == ["8", "9", "10", "11"] * 4
    done = trial.set_up("undo")
    assert (done.returncode, done.stdout) == (0, "")
    assert trial.calls("ethtool") == list(reversed(SET_UP.values()))
    assert trial.calls("ip") == [
        "ip address add 10.0.0.5/24 dev ice0",
        "ip link set ice0 mtu 1500",
        "ip link set ice0 down",
    ]
    assert ipv6.read_text() == "0\n"
    assert {tree.machine.text(f"/proc/irq/{number}/smp_affinity_list") for number in numbers} == {"0-31"}
    assert trial.set_up("undo").returncode == 0, "once more, with nothing to do"
    assert trial.calls("ethtool") == []


def test_a_card_of_mlx5_stays_with_the_kernel_below_dpdk(trial: Trial):
    trial.deploy("-i", f"dpdk:{MLX5}", "--threads", 2, "--mtu", 9000)
    done = trial.set_up()
    assert (done.returncode, trial.calls("modprobe"), trial.calls("ethtool")) == (0, [], [])
    assert "ip link set mlx0 mtu 9000 up" in trial.calls("ip")
    unit = trial.tree.machine.text("/etc/systemd/system/netfold-switch.service") or ""
    assert f"-i 1@dpdk:{MLX5},mtu=9000" in unit
    assert (
        trial.tree.machine.text("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages")
        == "99"
    )


def bind_at_modprobe(trial: Trial, pci: str) -> None:
    """In place of the kernel, which binds the card a moment later."""
    driver = f"{trial.tree.root}/sys/bus/pci/drivers/vfio-pci"
    trial.make_tool(
        "modprobe",
        {},
        f"mkdir -p {driver}",
        f"ln -sfn {driver} {trial.tree.root}/sys/bus/pci/devices/{pci}/driver",
    )


def test_dpdk_takes_a_card_from_the_kernel_and_gives_it_back(trial: Trial):
    tree, folder = trial.tree, f"/sys/bus/pci/devices/{ICE}"
    trial.deploy("-i", f"dpdk:{ICE}")
    failed = trial.set_up()
    assert (failed.returncode, failed.stderr) == (1, f"{ICE}: vfio-pci does not take the card\n")
    assert tree.machine.text(f"{folder}/driver_override") == "vfio-pci"
    assert tree.machine.text("/sys/bus/pci/drivers_probe") == ICE
    bind_at_modprobe(trial, ICE)
    assert trial.set_up().returncode == 0
    group = tree.machine.target(f"{folder}/iommu_group")
    assert trial.calls("chown") == [f"chown netfold-switch {tree.root}/dev/vfio/{group}"]
    assert trial.set_up().returncode == 0, "as at each start of the service"
    tree.write("/sys/bus/pci/drivers_probe", "")
    assert trial.set_up("undo").stdout == ""
    assert tree.machine.text(f"{folder}/driver_override") == ""
    assert tree.machine.text("/sys/bus/pci/drivers/vfio-pci/unbind") == ICE
    assert tree.machine.text("/sys/bus/pci/drivers_probe") == ICE


@pytest.mark.parametrize("word", ["ice0", f"dpdk:{ICE}"])
def test_a_card_that_has_become_the_managing_one_is_left_alone(trial: Trial, word: str):
    """Names and addresses of cards move when a server gets another card."""
    trial.deploy("-i", word)
    trial.make_tool("ip", {"route show default": "default via 10.0.0.1 dev ice0 proto dhcp"})
    done = trial.set_up()
    assert (done.returncode, done.stderr) == (1, "ice0: has the default route: it manages this server\n")
    assert (trial.calls("ip"), trial.calls("ethtool"), trial.calls("modprobe")) == ([], [], [])


def test_memory_in_pieces_is_said(trial: Trial):
    trial.deploy("-i", f"dpdk:{ICE}")
    trial.make_tool("cat", {}, 'case "$*" in *nr_hugepages) echo 3 ;; *) exec /bin/cat "$@" ;; esac')
    done = trial.set_up()
    assert (done.returncode, done.stderr) == (
        1,
        "3 huge pages of 67: memory is in pieces: restart the server\n",
    )


def start_service(tree: ServerTree, processors: str, *, user: int = 990, rights: int = 0x3000) -> None:
    tree.write("/sys/fs/cgroup/system.slice/netfold-switch.service/cgroup.procs", "812\n813")
    tree.write(
        "/proc/812/status",
        f"Name:\tsoftswitch\nUid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{rights:016x}\n"
        f"Cpus_allowed_list:\t{processors}",
    )
    tree.write("/proc/net/tcp", f"  sl  local_address rem_address   st\n   {LISTENS} 0")


def deployed(trial: Trial) -> ServerTree:
    """As after a boot: set up, running, and everything as written."""
    tree = trial.tree
    trial.deploy("-i", "xdp:ice0", "--threads", 4, "--mtu", 3000)
    trial.set_up()
    tree.write("/sys/class/net/ice0/mtu", 3000)
    for queue in range(4, 16):
        (tree.root / f"sys/class/net/ice0/queues/rx-{queue}/rps_cpus").unlink()
        (tree.root / f"sys/class/net/ice0/queues/rx-{queue}").rmdir()
    start_service(tree, "8-11")
    tree.write("/proc/1/status", "Name:\tsystemd\nCpus_allowed_list:\t0-7,12-23,28-31")
    return tree


def test_the_check_finds_no_fault_after_a_boot(trial: Trial):
    deployed(trial)
    assert trial.problems() == []
    result = trial.check()
    assert result.exit_code == 0, result.output
    assert "As deployed. 0 settings cost speed." in result.output


@pytest.mark.parametrize(
    ("path", "text", "problem", "is_fatal"),
    [
        ("/etc/systemd/system/netfold-switch.service", "[Unit]", "files", True),
        ("/sys/class/net/ice0/carrier", 0, "port 1 (ice0): link", True),
        ("/sys/class/net/ice0/flags", "0x1002", "port 1 (ice0): link", True),
        ("/sys/class/net/ice0/mtu", 1500, "port 1 (ice0): MTU", True),
        ("/sys/class/net/ice0/queues/rx-4/rps_cpus", 0, "port 1 (ice0): queues", True),
        ("/proc/irq/200/smp_affinity_list", "0-31", "port 1 (ice0): interrupts", False),
        ("/proc/77/comm", "irqbalance", "irqbalance", False),
        ("/proc/net/tcp", LISTENS.replace("2557", "2558"), "switch: P4Runtime", True),
        ("/proc/net/tcp", LISTENS.replace("0A", "01"), "switch: P4Runtime", True),
        ("/proc/1/status", "Cpus_allowed_list:\t0-31", "other processes", False),
    ],
)
def test_the_check_names_what_is_not_as_deployed(
    trial: Trial, path: str, text: object, problem: str, is_fatal: bool
):
    deployed(trial).write(path, text)
    assert trial.problems() == [problem]
    result = trial.check()
    assert result.exit_code == is_fatal, result.output
    assert problem in result.output


def test_the_check_names_a_switch_that_does_not_run_or_has_more_rights(trial: Trial):
    tree = deployed(trial)
    start_service(tree, "0-31", user=0, rights=0x1FFFFFFFFFF)
    assert trial.problems() == ["switch: rights", "switch: processors"]
    (tree.root / "proc/812/status").unlink()
    assert trial.problems() == ["switch"]


def test_the_check_names_an_address_and_a_card_that_is_gone(trial: Trial):
    tree = deployed(trial)
    tree.printed["ip", "-o", "address", "show", "dev", "ice0"] = ADDRESS
    assert trial.problems() == ["port 1 (ice0): addresses"]
    assert "10.0.0.5/24: expected none" in trial.check().output
    (tree.root / "sys/class/net/ice0").rename(tree.root / "gone")
    assert trial.problems() == ["port 1 (ice0)"]


def test_the_check_of_dpdk_reads_driver_group_and_pages(trial: Trial, monkeypatch: pytest.MonkeyPatch):
    trial.deploy("-i", f"dpdk:{ICE}")
    wrong = [f"port 1 (ice0): {what}" for what in ("driver", "IOMMU")]
    assert trial.problems() == ["files", *wrong, "huge pages of node 1", "switch"][1:]
    bind_at_modprobe(trial, ICE)
    trial.set_up()
    monkeypatch.setattr(deployed_switch, "USER", USER)
    start_service(trial.tree, "8")
    trial.tree.write("/proc/1/status", "Cpus_allowed_list:\t0-7,9-23,25-31")
    assert trial.problems() == []


def test_the_check_of_a_server_without_a_switch_or_with_a_damaged_record(trial: Trial):
    result = trial.check()
    assert (result.exit_code, "no switch is deployed on this server" in result.output) == (BAD_INPUT, True)
    trial.deploy("-i", "ice0")
    record = trial.tree.root / "etc/netfold/switch.json"
    written = json.loads(record.read_text())
    for damaged in (
        "",
        "[]",
        "{}",
        "null",
        '"x"',
        json.dumps({**written, "mtu": "x"}),
        json.dumps({**written, "x": 1}),
    ):
        record.write_text(damaged)
        result = trial.check()
        assert result.exit_code == BAD_INPUT, damaged
        assert "/etc/netfold/switch.json: " in result.output


def test_undo_removes_every_file(trial: Trial, tmp_path: Path):
    out = tmp_path / "out"
    words = ["switch", "-i", "ice0", "--threads", "4", "--out", str(out)]
    assert CliRunner().invoke(app, words, obj=trial.tree.machine).exit_code == 0
    assert [path for path in out.rglob("*") if path.is_file()]
    undone = CliRunner().invoke(app, ["switch", "--undo", "--out", str(out)])
    assert undone.exit_code == 0, undone.output
    assert [path for path in out.rglob("*") if path.is_file()] == []
    again = CliRunner().invoke(app, ["switch", "--undo", "--out", str(out)])
    assert (again.exit_code, "no switch is deployed there" in again.output) == (BAD_INPUT, True)
    assert CliRunner().invoke(app, ["switch", "--undo"]).exit_code == BAD_INPUT


def test_a_virtio_card_s_interrupts_are_those_of_its_device(trial: Trial):
    tree = trial.tree
    tree.write("/proc/net/route", "Iface")
    tree.write(f"/sys/devices/pci0000:00/{VIRTIO}/msi_irqs/900", "msix")
    tree.write("/proc/irq/900/smp_affinity_list", "0-31")
    trial.deploy("-i", "man0", "--cpus", "3")
    trial.set_up()
    assert tree.machine.text("/proc/irq/900/smp_affinity_list") == "3"
