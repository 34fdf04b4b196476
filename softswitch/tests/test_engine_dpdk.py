# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ports of DPDK on virtual devices: what is theirs alone. Tests with a `kind` hold for them as for other kinds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from softswitch.build.native import RUNTIME
from softswitch.engine.dpdk import eal
from softswitch.engine.dpdk.device import DpdkDevice, DpdkError, name_of, parse
from testnet import DEADLINE_S, Namespace, SwitchProcess, ethernet, needs_dpdk, needs_root, wait_for

HERE = Path(__file__).parent
DATA = 0x88B5
NETWORK, AND_LOCKED_MEMORY = 0x3000, 0x7000
Start = Callable[..., SwitchProcess]

pytestmark = pytest.mark.slow


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    made = Namespace(0)
    yield made
    made.close()


@pytest.fixture
def start(namespace: Namespace, start_switch: Start, tmp_path: Path) -> Start:
    def run(*ports: str) -> SwitchProcess:
        words = [word for port in ports for word in ("-i", port)]
        return start_switch(namespace, *words, folder=Path(mkdtemp(dir=tmp_path)), program="wire")

    return run


def numbered(count: int) -> list[bytes]:
    return [ethernet(DATA, number.to_bytes(4, "big") + bytes(1000)) for number in range(count)]


# ---- names ----


@pytest.mark.parametrize(
    ("interface", "device"),
    [
        ("dpdk:0000:3b:00.0", DpdkDevice("0000:3b:00.0", "0000:3b:00.0", 0)),
        ("dpdk:10000:01:00.0,mtu=9000,rx_vec=1", DpdkDevice("10000:01:00.0", "10000:01:00.0,rx_vec=1", 9000)),
        ("dpdk:net_memif0,socket=/run/a.sock", DpdkDevice("net_memif0", "net_memif0,socket=/run/a.sock", 0)),
    ],
)
def test_a_device_has_a_name_and_arguments(interface: str, device: DpdkDevice) -> None:
    assert parse(interface) == device
    assert name_of(interface) == device.name


@pytest.mark.parametrize(
    ("interface", "reason"),
    [
        ("dpdk:", "expected a PCI address such as 0000:3b:00.0"),
        ("dpdk:eth0", "expected a PCI address"),
        ("dpdk:3b:00.0", "expected a PCI address"),
        ("dpdk:net_ring/../0", "expected a PCI address"),
        ("dpdk:net_a_very_long_name", "expected a PCI address"),
        ("dpdk:net_tap0,iface", "expected KEY=VALUE"),
        ("dpdk:net_tap0,iface=a b", "expected KEY=VALUE"),
        ("dpdk:net_memif0,socket=/run/bus=pci,addr=0000:3b:00.0", "expected KEY=VALUE"),
        ("dpdk:net_tap0,mtu=67", r"expected 68\.\.16000"),
        ("dpdk:net_tap0,mtu=9000x", r"expected 68\.\.16000"),
    ],
)
def test_what_is_no_device_is_named_with_what_would_be(interface: str, reason: str) -> None:
    with pytest.raises(DpdkError, match=reason):
        parse(interface)


def test_dpdk_gets_the_cards_that_are_ports_and_one_thread() -> None:
    card, ring = parse("dpdk:0000:3b:00.0,mtu=9000,a=1"), parse("dpdk:net_ring0")
    words = eal.eal_arguments([card, ring], huge_pages=True)
    assert [word for word in words if "allow" in word or "pci" in word] == ["--allow=0000:3b:00.0,a=1"]
    assert "--in-memory" in words
    assert {"--no-pci", "--no-huge", "-m"} <= set(eal.eal_arguments([ring], huge_pages=False))


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DpdkError, match="apt-get install libdpdk-dev pkgconf"):
        eal.compiler_flags()


@pytest.mark.parametrize("answer", ["", r"printf '\377'", "exit 1"], ids=["nothing", "no text", "an error"])
def test_a_pkg_config_that_does_not_answer_is_as_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str
) -> None:
    program = tmp_path / "pkg-config"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(DpdkError, match="libdpdk is not installed"):
        eal.library(tmp_path)


# ---- C ----


@needs_dpdk
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_library_compiles_without_a_warning(compiler: str) -> None:
    if subprocess.run(["which", compiler], capture_output=True, check=False).returncode:
        pytest.skip(f"SKIPPED: {compiler} is not installed")
    strict = ["-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}"]
    command = [compiler, *strict, *eal.compiler_flags(), *map(str, eal.sources())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr


@needs_dpdk
def test_the_queue_is_the_descriptors_that_a_card_has_not_sent(tmp_path: Path) -> None:
    """Frames are handed over at 1, 2, ... ns, and the queue is read at 1,000 ns."""
    flags = [
        "-std=gnu11",
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-pthread",
    ]
    includes = [*eal.compiler_flags(), f"-I{RUNTIME}"]
    sources = [HERE / "dpdk_depth.c", *eal.sources()]
    program = tmp_path / "depth"
    subprocess.run(["gcc", *flags, *includes, "-o", program, *sources, *eal.linker_flags()], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True, timeout=DEADLINE_S).stdout
    queues = [tuple(map(int, line.split())) for line in printed.splitlines()]
    assert queues == [(used, 1000 - (11 - used) if used else 0) for used in range(10, -1, -1)]


# ---- processes ----

WITHOUT_PROCESSORS = """
from softswitch.build.native import default_cache_dir
from softswitch.engine.dpdk import eal
from softswitch.engine.dpdk.device import DpdkError
eal.eal_arguments = lambda devices, huge_pages: ["test", "--no-huge", "--no-shconf", "--lcores=0@(4000)"]
for _ in range(2):
    try:
        eal.start(default_cache_dir(), [])
    except DpdkError as error:
        print(error)  # the test reads it from the process's output
"""


@needs_dpdk
def test_an_environment_that_fails_is_an_error_at_each_use() -> None:
    """DPDK is initialized once a process, also where that failed."""
    command = [sys.executable, "-c", WITHOUT_PROCESSORS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    first, second = re.findall("DPDK cannot start.*", done.stdout)  # DPDK's own text may end within a line
    assert first == second
    assert re.search(r"invalid.*: expected free huge pages, or none at all", first)


@needs_dpdk
def test_a_process_without_such_ports_loads_nothing_of_dpdk(start_switch) -> None:
    switch = start_switch(None, program="wire")
    assert "librte" not in Path(f"/proc/{switch.process.pid}/maps").read_text()


@needs_dpdk
@needs_root[1]
@pytest.mark.root
def test_frames_cross_two_switches_over_shared_memory_and_the_link_comes_back(
    start: Start, namespace: Namespace, tmp_path: Path
) -> None:
    memif = f"dpdk:net_memif0,socket={tmp_path}/memif.sock,socket-abstract=no,role="
    first = start("1@dpdk:net_tap0,iface=h1", f"2@{memif}server")
    assert not first.port(2)["oper_up"]
    one, frames = namespace.host(1), numbered(300)
    for _ in range(2):
        second = start(f"1@{memif}client", "2@dpdk:net_tap0,iface=h2")
        wait_for(
            lambda s=second: first.port(2)["oper_up"] and s.port(1)["oper_up"], "the link of the switches"
        )
        two = namespace.host(2)
        for frame in frames:
            one.send(frame)
        assert two.receive_many(len(frames)) == frames
        for frame in frames:
            two.send(frame)
        assert one.receive_many(len(frames)) == frames
        assert second.port(1)["link"]["rx_packets"] == second.port(1)["link"]["tx_packets"] == len(frames)
        two.close()
        second.kill()
        wait_for(lambda: not first.port(2)["oper_up"], "the link is down")


@needs_dpdk
@needs_root[1]
@pytest.mark.root
def test_frames_that_the_driver_does_not_take_wait_and_then_are_dropped(
    start: Start, namespace: Namespace, tmp_path: Path
) -> None:
    """Nothing is at the other end of the second link."""
    memif = f"net_memif0,role=server,socket={tmp_path}/memif.sock,socket-abstract=no"
    switch = start("1@dpdk:net_tap0,iface=h1", f"2@dpdk:{memif}")
    one = namespace.host(1)
    for frame in numbered(300):
        one.send(frame)
    wait_for(lambda: switch.port(1)["link"]["rx_packets"] == 300, "the frames")
    link = switch.port(2)["link"]
    assert (link["tx_packets"], link["tx_dropped"]) == (0, 300 - 256)


@needs_dpdk
@needs_root[1]
@pytest.mark.root
def test_all_threads_have_the_rights_of_the_network_only(start: Start) -> None:
    switch = start("1@dpdk:net_ring0", "2@dpdk:net_ring1")
    tasks = list(Path(f"/proc/{switch.process.pid}/task").iterdir())
    assert any("eal" in (task / "comm").read_text() for task in tasks)
    for task in tasks:
        rights = [line.split()[1] for line in (task / "status").read_text().splitlines() if "CapEff" in line]
        assert int(rights[0], 16) in (NETWORK, AND_LOCKED_MEMORY)


@needs_dpdk
@needs_root[1]
@pytest.mark.root
@pytest.mark.parametrize(
    ("port", "reason"),
    [
        ("net_tap0,mtu=9000", "the device carries a smaller MTU"),
        ("net_nothing0", "DPDK's driver refuses the device"),
        ("net_af_packet0,iface=lo,framesz=no", "DPDK's driver refuses the device"),
    ],
)
def test_what_a_device_cannot_do_is_an_error_at_the_start(start: Start, port: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        start(f"1@dpdk:{port}")


@needs_dpdk
@needs_root[1]
@pytest.mark.root
def test_ports_are_added_and_removed_at_run_time_in_bounded_memory(start: Start) -> None:
    switch = start("1@dpdk:net_ring0")

    def resident_kb() -> int:
        text = Path(f"/proc/{switch.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0])

    with switch.control() as control:
        sizes = []
        for number in (*(1,) * 12, *range(2, 12)):
            control.request("add-port", port=2, interface=f"dpdk:net_ring{number}")
            control.request("remove-port", port=2)
            sizes.append(resident_kb())
    assert sizes[-1] - sizes[3] < 4096
