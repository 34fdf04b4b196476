# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from netfold.protocol.wire import Flag, Kind, Packet
from netfold.traffic.scapy_netfold import Netfold, gradient

lanes = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=40)


@given(
    st.sampled_from(list(Kind)),
    st.integers(0, 65535),
    st.integers(0, 4095),
    st.integers(0, 2**20 - 1),
    st.integers(0, 65535),
    st.integers(0, 65535),
    lanes,
    st.sampled_from([Flag(0), Flag.OVERFLOW, Flag.CONGESTION]),
    st.integers(0, 255),
)
def test_scapy_and_numpy_agree_on_every_byte(kind, tree, epoch, round_, slot, child, lane, flags, exponent):
    packet = Packet(kind, tree, epoch, round_, slot, child, tuple(lane), flags, exponent)
    layer = Netfold(
        kind=kind,
        overflow=Flag.OVERFLOW in flags,
        congestion=Flag.CONGESTION in flags,
        tree=tree,
        epoch=epoch,
        round=round_,
        slot=slot,
        child=child,
        exponent=exponent,
        lane=lane,
    )
    assert bytes(layer) == packet.pack()
    parsed = Netfold(packet.pack())
    assert (parsed.kind, parsed.tree, parsed.epoch, parsed.round) == (kind, tree, epoch, round_)
    assert (parsed.slot, parsed.child, parsed.lanes, parsed.lane) == (slot, child, len(lane), lane)


def test_the_layer_is_found_behind_the_jobs_ports_only():
    inner = gradient(tree=7, child=2, chunk=130, slots=64, epoch=3, lane=[1, -1])
    for port, found in ((61440, True), (61695, True), (61696, False)):
        frame = Ether(
            bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=port, dport=port) / inner)
        )
        assert (Netfold in frame) is found
    assert inner.mysummary() == "netfold GRADIENT tree=7 epoch=3 round=2 slot=2 child=2"
