# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold deploy switch` on made-up servers: what it finds, what it decides, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from netfold.controller.operator.deploy_commands import BAD_INPUT, app
from netfold.controller.operator.server_cards import ServerMachine, format_processors, parse_processors
from netfold.controller.operator.server_plan import choose_ports, estimate, huge_pages
from tests.controller.server_tree import ICE, ICE_2, MLX5, ServerTree, server_tree


@pytest.fixture
def tree(tmp_path: Path) -> ServerTree:
    return server_tree(tmp_path / "server")


def switch(tree: ServerTree, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["switch", *map(str, arguments)], obj=tree.machine)


def refused(tree: ServerTree, *arguments: object) -> str:
    result = switch(tree, *arguments)
    assert result.exit_code == BAD_INPUT, result.output
    assert "# ----" not in result.output, "no file of a switch that cannot be"
    return " ".join(result.output.split())


def test_cards_are_shown_with_what_they_can_do(tree: ServerTree):
    lines = switch(tree).output.splitlines()
    assert lines == [
        f"ice0: {ICE}, driver ice, 25 Gbit/s, NUMA node 1, 16 queues; xdp: zero copy; dpdk: by vfio-pci; free",
        f"ice1: {ICE_2}, driver ice, 25 Gbit/s, NUMA node 1, 16 queues; xdp: zero copy; dpdk: by vfio-pci; free",
        "man0: 0000:00:03.0, driver virtio_net, no link, 1 queues; xdp: copies; dpdk: by vfio-pci; "
        "has the default route",
        f"mlx0: {MLX5}, driver mlx5_core, 100 Gbit/s, NUMA node 0, 16 queues; xdp: zero copy; dpdk: beside the kernel; "
        "free",
        "processors 0-31",
    ]


def test_a_server_without_cards_shows_none(tmp_path: Path):
    assert "no network card" in switch(ServerTree(tmp_path)).output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent0"], "'absent0': no such interface: expected one of ice0 (0000:86:00.0)"),
        (["../etc"], "'../etc': no such interface"),
        (["ice0; reboot"], "no such interface"),
        (["%i"], "no such interface"),
        ([""], "no such interface"),
        (["lo"], "no such interface"),
        (["xdp:absent0"], "'xdp:absent0': no such interface"),
        (["man0"], "man0: it has the default route, so it manages this server"),
        (["dpdk:0000:00:03.0"], "man0: it has the default route"),
        (["dpdk:0000:99:00.0"], "dpdk:0000:99:00.0: no such card"),
        (["dpdk:ice0"], "dpdk:ice0: no such card: expected dpdk:0000:86:00.0"),
        (["dpdk:veth0"], "dpdk:veth0: no such card: expected a PCI address"),
        (["dpdk:../../.."], "no such card"),
        (["ice0", "xdp:ice0"], "ice0: two ports"),
        (["ice0", f"dpdk:{ICE}"], "ice0: two ports"),
        (["ice0", "--threads", "3"], "--threads 3: expected a power of two, 1..16"),
        (["ice0", "--threads", "32"], "--threads 32: expected a power of two, 1..16"),
        (["ice0", "--cpus", "30-33"], "no processor 32-33: expected of 0-31"),
        (["ice0", "--cpus", "2-3", "--threads", "4"], "2 for 4 threads: expected one for each"),
        (["ice0", "--cpus", "2;4"], "--cpus '2;4': expected processors as 2-5 or 2,4,6"),
        (["xdp:ice0", "--mtu", "9000"], "xdp:ice0: --mtu 9000: expected at most 3818"),
        ([f"dpdk:{ICE}", "--mtu", "16001"], "dpdk:ice0: --mtu 16001: expected at most 16000"),
        (["ice0", "--listen", "0.0.0.0:9559 -x"], "expected HOST:PORT"),
    ],
)
def test_what_cannot_work_is_refused_by_its_name(tree: ServerTree, words: list[str], message: str):
    assert message in refused(tree, "-i", words[0], *[w for word in words[1:] for w in option(word)])


def option(word: str) -> list[str]:
    return ["-i", word] if word.startswith(("ice", "xdp:", "dpdk:")) else [word]


def test_a_default_route_of_ipv6_manages_as_well(tree: ServerTree):
    zeros = "0" * 32
    tree.write("/proc/net/ipv6_route", f"{zeros} 00 {zeros} 00 {zeros} 00000400 1 0 00000003 ice1")
    assert "ice1: it has the default route" in refused(tree, "-i", f"dpdk:{ICE_2}", "-i", f"dpdk:{ICE}")


@pytest.mark.parametrize("word", ["ice0", "xdp:ice0", f"dpdk:{ICE}"])
def test_a_card_of_a_bridge_or_bond_is_refused(tree: ServerTree, word: str):
    tree.link("/sys/class/net/ice0/upper_bond0", "/sys/class/net/bond0")
    assert "ice0: part of bond0: expected a card that nothing uses" in refused(tree, "-i", word)


def test_more_threads_than_processors_are_refused(tmp_path: Path):
    tree = ServerTree(tmp_path)
    tree.add_processors(("0-1",), threads=1)
    tree.add_card("eth1", ICE, "ice", node=0)
    assert "--threads 4: this server has 2 processors" in refused(tree, "-i", "eth1", "--threads", 4)


def test_more_threads_than_a_card_s_queues_are_refused_where_queues_have_one_thread(tree: ServerTree):
    tree.printed["ethtool", "-l", "ice0"] = tree.printed["ethtool", "-l", "ice0"].replace("64", "2")
    assert "xdp:ice0: --threads 4: expected at most 2, its queues" in refused(
        tree, "-i", "xdp:ice0", "--threads", 4
    )
    assert switch(tree, "-i", "ice0", "--threads", 4).exit_code == 0, "the kernel deals frames to threads"


def test_dpdk_needs_its_library_an_iommu_and_a_group_of_its_own(tree: ServerTree):
    both = ["-i", f"dpdk:{ICE}", "-i", f"dpdk:{ICE_2}"]
    tree.link(f"/sys/bus/pci/devices/{ICE_2}/iommu_group", "/sys/kernel/iommu_groups/8")
    tree.link(f"/sys/kernel/iommu_groups/8/devices/{ICE_2}", f"/sys/bus/pci/devices/{ICE_2}")
    assert f"{ICE_2} is in the same group of the IOMMU" in refused(tree, *both[:2])
    assert switch(tree, *both).exit_code == 0
    del tree.printed["pkg-config", "--exists", "libdpdk"]
    assert "libdpdk is not installed" in refused(tree, *both)
    (tree.root / "sys/kernel/iommu_groups").rename(tree.root / "elsewhere")
    assert "no IOMMU: expected one" in refused(tree, *both)


def test_dpdk_s_memory_is_bounded_by_pages_at_the_card_s_node(tree: ServerTree):
    def pages(threads: int, mtu: int) -> dict[int, int]:
        ports = choose_ports(tree.machine, [f"dpdk:{ICE}", f"dpdk:{ICE_2}"], threads, mtu)
        return huge_pages(tree.machine, ports, threads, mtu)

    assert pages(1, 1500) == {1: 64 + 2 * 3}, "2,176 buffers of 2,432 bytes take 5.05 MB"
    assert pages(16, 9000) == {1: 64 + 2 * 279}


def test_too_little_memory_or_a_kernel_without_huge_pages_is_refused(tree: ServerTree):
    tree.write("/sys/devices/system/node/node1/meminfo", "Node 1 MemFree: 204800 kB")
    words = ["-i", f"dpdk:{ICE}", "--mtu", 9000, "--threads", 16]
    assert "more than half of the 200 MB that NUMA node 1 has free" in refused(tree, *words)
    for node in (0, 1):
        (tree.root / f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages").unlink()
        (tree.root / f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB").rmdir()
    assert "this kernel has no huge pages of 2 MB" in refused(tree, *words)


def test_threads_get_cores_at_the_card_and_the_rest_of_the_server_gets_the_others(
    tree: ServerTree, tmp_path: Path
):
    assert switch(tree, "-i", "ice0", "-i", "ice1", "--threads", 4, "--out", tmp_path / "out").exit_code == 0
    units = tmp_path / "out/etc/systemd"
    assert "CPUAffinity=8-11\n" in (units / "system/netfold-switch.service").read_text()
    others = (units / "system.conf.d/90-netfold-switch.conf").read_text()
    assert others == "[Manager]\nCPUAffinity=0-7,12-23,28-31\n", "not at the other half of a core either"


def test_the_first_cores_are_left_to_the_kernel(tree: ServerTree):
    assert "CPUAffinity=2\n" in switch(tree, "-i", "mlx0").output
    assert "CPUAffinity=2-9\n" in switch(tree, "-i", "mlx0", "--threads", 8).output, "six are near"
    tree.write("/sys/devices/system/node/node1/cpulist", "12-15,28-31")
    assert "CPUAffinity=2-5,12-15\n" in switch(tree, "-i", "ice0", "--threads", 8).output, (
        "the near ones first"
    )


def test_a_later_deployment_leaves_nothing_of_the_first(tree: ServerTree, tmp_path: Path):
    """A server has lost processors in between, for example."""
    words = ["-i", "ice0", "--threads", 4, "--out", tmp_path / "out"]
    assert switch(tree, *words).exit_code == 0
    tree.write("/sys/devices/system/cpu/online", "0-3")
    assert switch(tree, *words).exit_code == 0
    left = (tmp_path / "out/etc/systemd/system.conf.d/90-netfold-switch.conf").read_text()
    assert left == "[Manager]\n"


def test_what_costs_is_a_warning(tree: ServerTree):
    assert "NUMA nodes [0, 1] (mlx0 at 0, ice0 at 1)" in switch(tree, "-i", "mlx0", "-i", "ice0").output
    assert (
        "processors 8 are not at the cards' NUMA node 0" in switch(tree, "-i", "mlx0", "--cpus", "8").output
    )
    shared = switch(tree, "-i", "mlx0", "--cpus", "2,18", "--threads", 2).output
    assert "processors 2,18 share cores" in shared
    assert "veth0: its driver veth copies frames of AF_XDP" in switch(tree, "-i", "xdp:veth0").output


def rate(tree: ServerTree, *arguments: object) -> str:
    return next(line for line in switch(tree, *arguments).output.splitlines() if line.startswith("rate: "))


def test_the_rate_is_that_of_processors_links_or_slots(tree: ServerTree):
    two = ["-i", "ice0", "-i", "ice1"]
    slow = rate(tree, *two, "--threads", 4, "--us-per-packet", 0.8)
    assert "44.2 of 50 Gbit/s in packets of 256 lanes (5 M/s), bound by the processors" in slow
    assert "the links' rate takes 4.5 cores" in slow
    assert "50 of 50 Gbit/s" in rate(tree, *two, "--threads", 16)
    for pci in (ICE, ICE_2):
        tree.write(f"/sys/bus/pci/devices/{pci}/current_link_width", 2)
    assert "26.8 of 50 Gbit/s" in rate(tree, *two, "--threads", 16), "both ports share a slot"
    assert "man0" not in rate(tree, "-i", "mlx0")


def test_a_card_without_a_link_has_no_rate_until_one_is_given(tree: ServerTree):
    tree.write("/sys/class/net/ice0/speed", -1)
    assert rate(tree, "-i", "ice0") == "rate: ice0 has no link now: --rate-gbps gives its rate"
    assert "of 10 Gbit/s" in rate(tree, "-i", "ice0", "--rate-gbps", 10)


def test_the_estimate_counts_every_byte_of_the_wire(tree: ServerTree):
    """256 lanes: 1,024 bytes, headers of 58, and 24 that only the wire has."""
    ports = choose_ports(tree.machine, ["mlx0", "ice0"], 16, 1500)
    found = estimate(ports, [100, 100], lanes=256, threads=16, us_per_packet=0.8)
    packets_per_s = 2 * 100e9 / 8 / (1024 + 58 + 24)
    assert found.cores == pytest.approx(packets_per_s * 0.8e-6)
    assert found.packets_per_s == pytest.approx(16 / 0.8e-6)


def test_processors_are_written_as_the_kernel_does():
    for text in ("0", "0-3", "0-1,4,6-7"):
        assert format_processors(parse_processors(text)) == text
    for text in ("", "a", "1-", "-1", "1,,2", "1-2-3", "٣"):
        with pytest.raises(ValueError, match="expected processors"):
            parse_processors(text)


def test_a_server_whose_files_cannot_be_read_has_nothing(tmp_path: Path):
    machine = ServerMachine(tmp_path / "absent", lambda *_: None)
    assert (machine.cards(), machine.online(), machine.managed_by()) == ([], [], set())
