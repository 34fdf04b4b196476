# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The programs that switch_pps runs, the entries they need, and the frames that the hosts send."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import finsy as fy
import numpy as np
from finsy.proto import p4r
from google.protobuf import text_format
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from netfold.controller.switches import roce as connections
from netfold.controller.switches import tables
from netfold.controller.switches.entries import Codec, Encoded, Entity
from netfold.p4src.tools.p4build import PROFILES, Profile
from netfold.protocol.wire import FRAME_OVERHEAD_BYTES, Flag, Kind, Packet
from netfold.testbed.errors import RunError
from netfold.traffic.scapy_roce import send

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ROOT / "p4src" / "compiled"
BITMAP_LANES = 64
COMPILE_TIMEOUT_S = 600
WORKERS, SLOTS = 4, 1024
TREE, EPOCH, UDP_PORT = 1, 1, 0xF001
QPN = 0x100
SWITCH_MAC = "02:00:00:00:00:fe"
ETHERNET_IP_UDP = 14 + 20 + 8
SHORTEST = 60  # 64 on the wire with Ethernet's checksum


@dataclass(frozen=True)
class SwitchLoad:
    """A program, its entries, and each host's frame with the offsets of its 32-bit tag and 16-bit slot (RoCE: of the
    word with the PSN, and 0). For a chunk every host sends one frame and receives one. `bmv2`: the program in
    BMv2's own form, if there is one."""

    name: str
    config: p4r.ForwardingPipelineConfig
    updates: tuple[p4r.Update, ...]
    frames: tuple[bytes, ...]
    tag_at: int
    slot_at: int
    bmv2: p4r.ForwardingPipelineConfig | None = None


def mac(port: int) -> str:
    return f"02:00:00:00:00:{port:02x}"


def address(port: int) -> str:
    return f"10.0.0.{port}"


def _config(json: Path) -> p4r.ForwardingPipelineConfig:
    config = p4r.ForwardingPipelineConfig(p4_device_config=json.read_bytes())
    text_format.Parse(json.with_name(f"{json.stem}.p4info.txtpb").read_text(), config.p4info)
    return config


def _bmv2_config(lanes: int) -> p4r.ForwardingPipelineConfig | None:
    program = COMPILED / f"netfold-bmv2-{lanes}.json"
    return _config(program) if program.exists() else None


def _inserts(
    config: p4r.ForwardingPipelineConfig, entities: Iterable[Encoded | fy.P4TableEntry]
) -> tuple[p4r.Update, ...]:
    schema = fy.P4Schema(config.p4info)
    return tuple(p4r.Update(type=p4r.Update.INSERT, entity=entity.encode(schema)) for entity in entities)


def aggregation(
    lanes: int, *, floats: bool = False, program: Path | None = None, name: str = ""
) -> SwitchLoad:
    """The switch is the root of a tree with a host behind each port: the sum of four frames goes to all four.
    `floats`: of float32, which differ by host, in sign and in magnitude. `program`: None: the committed one."""
    config = _config(program or COMPILED / f"netfold-v1model-{lanes}.json")
    codec = Codec(fy.P4Schema(config.p4info))
    made: list[Entity] = []
    for port in range(1, WORKERS + 1):
        sender = tables.Sender(port, UDP_PORT, TREE, port - 1, EPOCH, SLOTS)
        made += tables.accumulate(sender, root=True, bit=port - 1, full=(1 << WORKERS) - 1, base=0)
        made.append(tables.to_host(port, SWITCH_MAC, mac(port), IPv4Address(address(port))))
    made += [tables.result_group(TREE, range(1, WORKERS + 1)), tables.downlink(TREE, TREE)]
    updates = _inserts(config, [codec.encode(entity) for entity in made])
    frames = tuple(_gradient(port, lanes, floats) for port in range(1, WORKERS + 1))
    at = FRAME_OVERHEAD_BYTES + 4
    name = name or f"{'float' if floats else 'netfold'}-{lanes}"
    own = None if program or floats else _bmv2_config(lanes)
    return SwitchLoad(name, config, updates, frames, at, at + 4, own)


def bitmap(bits: int, folder: Path) -> SwitchLoad:
    """`aggregation` by a program of 64 lanes whose nodes take `bits` children. One that is not committed is compiled
    into `folder`. Raises RunError without a compiler."""
    profile = Profile(BITMAP_LANES, bits)
    program = COMPILED / profile.program if profile in PROFILES else _compiled(bits, folder)
    return aggregation(BITMAP_LANES, program=program, name=f"bitmap-{bits}")


def _compiled(bits: int, folder: Path) -> Path:
    compiler = shutil.which("p4c-bm2-ss")
    if compiler is None:
        raise RunError(f"bitmap-{bits}: no committed program has {bits} bits; expected p4c-bm2-ss on PATH")
    program = folder / f"bitmap-{bits}.json"
    command = [compiler, "--std", "p4-16", "--Wdisable=unsupported", f"-DCHILDREN={bits}"]
    command += [f"p4src/programs/v1model_{BITMAP_LANES}.p4", "-o", str(program)]
    command += ["--p4runtime-files", str(program.with_suffix(".p4info.txtpb"))]
    try:
        subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{' '.join(command)}: {error}; {error.stderr!s}") from error
    return program


def roce(lanes: int) -> SwitchLoad:
    """A load of RoCE: each host sends RC SENDs of one packet to the next host's QP and receives the sums in this form.
    The switch checks the ICRC of each packet that it receives and computes that of each packet that it sends."""
    config = _config(COMPILED / f"netfold-v1model-{lanes}.json")
    codec = Codec(fy.P4Schema(config.p4info))
    root = int(IPv4Address("10.0.0.254"))
    made: list[Entity] = []
    for port in range(1, WORKERS + 1):
        sender = tables.Sender(connections.ROCE_SIDE + port, UDP_PORT, TREE, port - 1, EPOCH, SLOTS)
        made += tables.accumulate(sender, root=True, bit=port - 1, full=(1 << WORKERS) - 1, base=0)
        made.append(tables.to_host(port, SWITCH_MAC, mac(port), IPv4Address(address(port))))
        after = port % WORKERS + 1
        own, theirs = (int(IPv4Address(address(p))) for p in (port, after))
        connection = connections.RoceConnection(
            UDP_PORT, TREE, SLOTS, port, own, after, theirs, QPN + after, first_psn=0
        )
        made.append(connections.contributions(connection, child=port - 1, epoch=EPOCH, root=root))
        made.append(connections.sums(connection))
    made += [tables.result_group(TREE, range(1, WORKERS + 1)), tables.downlink(TREE, TREE)]
    updates = _inserts(config, [codec.encode(entity) for entity in made])
    frames = tuple(_send(port, lanes) for port in range(1, WORKERS + 1))
    return SwitchLoad(f"roce-{lanes}", config, updates, frames, ETHERNET_IP_UDP + 8, 0, _bmv2_config(lanes))


def _send(port: int, lanes: int) -> bytes:
    after = port % WORKERS + 1
    ip = IP(src=address(port), dst=address(after), flags="DF") / UDP(sport=0xC000, dport=4791, chksum=0)
    return bytes(Ether(src=mac(port), dst=SWITCH_MAC) / ip / send(QPN + after, 0, 0, _values(lanes)))


def _values(lanes: int) -> tuple[int, ...]:
    return tuple(range(-lanes // 2, lanes - lanes // 2))


def _floats(port: int, lanes: int) -> tuple[int, ...]:
    random = np.random.default_rng(port)
    values = random.standard_normal(lanes) * 10.0 ** random.uniform(-3, 3, lanes)
    return tuple(values.astype(np.float32).view(np.int32).tolist())


def _gradient(port: int, lanes: int, floats: bool) -> bytes:
    ip = IP(src=address(port), dst="10.0.0.254", flags="DF") / UDP(sport=UDP_PORT, dport=UDP_PORT, chksum=0)
    values = _floats(port, lanes) if floats else _values(lanes)
    packet = Packet(Kind.GRADIENT, TREE, EPOCH, 0, 0, port - 1, values, Flag.FLOATS if floats else Flag(0))
    return bytes(Ether(src=mac(port), dst=SWITCH_MAC) / ip / Raw(packet.pack()))


def router() -> SwitchLoad:
    """IPv4: longest prefix, next hop, TTL and both checksums; the shortest frames, from each host to the next."""
    config = _config(ROOT / "softswitch" / "tests" / "programs" / "router.json")
    entries = []
    for port in range(1, WORKERS + 1):
        route = fy.P4TableAction("route", nexthop=port, count=1)
        entries.append(fy.P4TableEntry("routes", match=fy.Match(dst=f"{address(port)}/32"), action=route))
        hop = fy.P4TableAction("forward", port=port, dst=int(mac(port).replace(":", ""), 16))
        entries.append(fy.P4TableEntry("nexthops", match=fy.Match(nexthop=port), action=hop))
    frames = tuple(_datagram(port) for port in range(1, WORKERS + 1))
    return SwitchLoad(
        "router", config, _inserts(config, entries), frames, ETHERNET_IP_UDP, ETHERNET_IP_UDP + 4
    )


def _datagram(port: int) -> bytes:
    ip = IP(src=address(port), dst=address(port % WORKERS + 1), flags="DF") / UDP(sport=9, dport=9, chksum=0)
    return bytes(Ether(src=mac(port), dst=SWITCH_MAC) / ip / Raw(bytes(SHORTEST - ETHERNET_IP_UDP)))
