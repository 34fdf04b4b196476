# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The program with one thing of RoCE wrong: random connections and attackers have to find each."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.dataplane.bench import Bench, Tally
from tests.dataplane.device import SoftDevice
from tests.dataplane.mutants import proofs
from tests.dataplane.rc_world import RcWorld
from tests.dataplane.test_roce_isolation import RoceSiege

LANES, EVENTS, BURSTS = 64, 3000, 30
ROCE = "transport/roce"
IN, OUT, BOTH = f"{ROCE}/roce_to_gradient.p4", f"{ROCE}/result_to_roce.p4", f"{ROCE}/transport.p4"
# ResultToRoce's look at the kind is no mutant here: gradients leave by no port that roce_receivers has.
MUTANTS = [
    ("any ICRC is right", IN, "ICRC_BYTES(crc) == hdr.icrc.crc", "true"),
    ("a resent result goes to its sender", IN, "meta.reply_port = next_worker;", ""),
    ("the whole circle is ahead", IN, "(chunk[23:23] == 0 ? epoch : 0)", "epoch"),
    (
        "a round is of another length",
        IN,
        "(bit<20>)(chunk >> log2_slots)",
        "(bit<20>)(chunk >> log2_slots >> 1)",
    ),
    ("a worker's own form is admitted too", IN, "meta.ingress_port | ROCE_SIDE", "meta.ingress_port"),
    ("queue pairs receive from any port", IN, "meta.ingress_port != peer_port || ", ""),
    ("queue pairs receive from any address", IN, " || hdr.ipv4.src != peer_address", ""),
    ("a packet without a QPN passes", IN, "qpn = 0;", "qpn = 1;"),
    ("SENDs with immediate data pass", IN, "hdr.bth.opcode <= MAX_SEND_OPCODE || ", ""),
    ("SENDs that invalidate pass", IN, " || hdr.bth.opcode & INVALIDATE_MASK == SEND_INVALIDATE", ""),
    ("ack requests are lost", IN, "1w1 ++ hdr.bth.ack_request", "1w1 ++ 1w0"),
    (
        "congestion is not sent",
        OUT,
        "hdr.netfold.flags & FLAG_CONGESTION == 0 ? ECN_ECT0 : ECN_CE",
        "ECN_ECT0",
    ),
    ("PSNs forget the round", OUT, "((psn_t)hdr.netfold.tag[19:0] << log2_slots)", "0"),
    ("the DSCP stays", OUT, "hdr.ipv4.dscp = 0;", ""),
    ("the TTL stays", OUT, "hdr.ipv4.ttl = 64;", ""),
    ("nodes drop the BTH bits", BOTH, "hdr.netfold.reserved & BTH_PRESENT != 0", "false"),
    ("a padded packet is taken", f"{ROCE}/roce_parser.p4", "(SEND_ONLY,   0, 0)", "(SEND_ONLY,   _, 0)"),
]


def explore(program: Path) -> None:
    """Two leaves and a node above them, then one leaf that is the root."""
    devices = [SoftDevice(program, cache=program.parent) for _ in range(3)]
    tally = Tally()
    for shape in ([2, 3], [4]):
        random = Random(len(shape))
        for device in devices:
            device.clear()
        benches = [Bench(device, LANES, tally, "mutant") for device in devices[: 3 if len(shape) > 1 else 1]]
        world = RcWorld(benches, shape, [True] * len(shape), random)
        siege = RoceSiege(world, random)
        for number in range(EVENTS):
            world.happen(loss=0.03, repeats=0.05)
            if world.done:
                world.begin()
            if number % (EVENTS // BURSTS) == 0:
                siege.attack(20)
        world.finish()


test_a_mutant_is_another_program, test_the_program_as_it_is_passes, test_a_mutant_is_found = proofs(
    MUTANTS, explore, lanes=LANES
)
