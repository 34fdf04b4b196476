# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Flows over one shared link in ns-3: cases as JSON (ns3_cases.py) on standard input, for each the completion times on
standard output.

Each flow has two hosts of its own; `delay_s` is of each of the three links one way. A flow is over when its last byte
is at the receiving program. Its time begins with the opening handshake.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ns import ns

# What cppyy cannot hand over as a Python function: when each sink has all its bytes.
ns.cppyy.cppdef("""
#include <map>
namespace netfold {
std::map<uint32_t, std::pair<uint64_t, double>> sinks;
std::map<uint32_t, uint64_t> wanted;
void Received(uint32_t flow, ns3::Ptr<const ns3::Packet> packet, const ns3::Address &) {
    auto &s = sinks[flow];
    s.first += packet->GetSize();
    if (s.first >= wanted[flow] && s.second == 0) s.second = ns3::Simulator::Now().GetSeconds();
}
void Watch(ns3::Ptr<ns3::Application> sink, uint32_t flow, uint64_t bytes) {
    wanted[flow] = bytes;
    sink->TraceConnectWithoutContext("Rx", ns3::MakeBoundCallback(&Received, flow));
}
double Done(uint32_t flow) { return sinks[flow].second; }
void Forget() { sinks.clear(); wanted.clear(); }
}
""")


def run(order: dict[str, Any]) -> list[float | None]:
    transport = {"reno": "TcpNewReno", "cubic": "TcpCubic", "dctcp": "TcpDctcp"}[order["transport"]]
    ecn = order["transport"] == "dctcp"
    for name, value in (
        ("ns3::TcpL4Protocol::SocketType", ns.TypeIdValue(ns.TypeId.LookupByName(f"ns3::{transport}"))),
        ("ns3::TcpSocket::SegmentSize", ns.UintegerValue(order["segment_bytes"])),
        ("ns3::TcpSocket::InitialCwnd", ns.UintegerValue(10)),
        ("ns3::TcpSocket::DelAckCount", ns.UintegerValue(2)),
        ("ns3::TcpSocket::SndBufSize", ns.UintegerValue(1 << 26)),
        ("ns3::TcpSocket::RcvBufSize", ns.UintegerValue(1 << 26)),
        ("ns3::TcpSocketBase::MinRto", ns.TimeValue(ns.Seconds(order["least_timeout_s"]))),
        ("ns3::TcpSocket::DelAckTimeout", ns.TimeValue(ns.Seconds(order["ack_delay_s"]))),
        ("ns3::TcpSocket::ConnTimeout", ns.TimeValue(ns.Seconds(order["first_timeout_s"]))),
        ("ns3::TcpSocketBase::ClockGranularity", ns.TimeValue(ns.MicroSeconds(1))),
        ("ns3::TcpSocketBase::UseEcn", ns.StringValue("On" if ecn else "Off")),
        ("ns3::TcpCubic::HyStart", ns.BooleanValue(False)),
    ):
        ns.Config.SetDefault(name, value)
    nodes = ns.NodeContainer()
    count = len(order["flows"])
    nodes.Create(2 + 2 * count)
    internet = ns.InternetStackHelper()
    internet.Install(nodes)
    wire = ns.PointToPointHelper()
    wire.SetChannelAttribute("Delay", ns.TimeValue(ns.Seconds(order["delay_s"])))
    address = ns.Ipv4AddressHelper()
    address.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.0"))

    def join(a: int, b: int, rate: int, queue: int) -> Any:
        pair = ns.NodeContainer()
        pair.Add(nodes.Get(a))
        pair.Add(nodes.Get(b))
        wire.SetDeviceAttribute("DataRate", ns.DataRateValue(ns.DataRate(rate)))
        wire.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(f"{queue}p"))
        return wire.Install(pair)

    def shape(devices: Any, marks: bool) -> None:
        control = ns.TrafficControlHelper()
        queue = order["queue_packets"] if marks else 100_000
        if marks and ecn:
            level = order["marking_packets"]
            control.SetRootQueueDisc(
                *("ns3::RedQueueDisc", "MinTh", ns.DoubleValue(level), "MaxTh", ns.DoubleValue(level)),
                *("MaxSize", ns.StringValue(f"{queue}p"), "QW", ns.DoubleValue(1.0)),
                *(
                    "UseEcn",
                    ns.BooleanValue(True),
                    "UseHardDrop",
                    ns.BooleanValue(False),
                    "Gentle",
                    ns.BooleanValue(False),
                ),
            )
        else:
            control.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", ns.StringValue(f"{queue}p"))
        control.Install(devices)

    middle = join(0, 1, order["rate_bps"], 1)
    shape(middle, True)
    address.Assign(middle)
    address.NewNetwork()
    servers = []
    for flow in range(count):
        for end, host in ((0, 2 + flow), (1, 2 + count + flow)):
            devices = join(host, end, order["access_bps"], 1)
            shape(devices, False)
            interfaces = address.Assign(devices)
            address.NewNetwork()
            if end:
                servers.append(interfaces.GetAddress(0))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    for flow, (start, size) in enumerate(order["flows"]):
        to = ns.InetSocketAddress(servers[flow], 5000).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", to).Install(nodes.Get(2 + count + flow))
        sink.Start(ns.Seconds(0.0))
        ns.cppyy.gbl.netfold.Watch(sink.Get(0), flow, size)
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", to)
        source.SetAttribute("MaxBytes", ns.UintegerValue(size))
        source.SetAttribute("SendSize", ns.UintegerValue(order["segment_bytes"]))
        source.Install(nodes.Get(2 + flow)).Start(ns.Seconds(start))
    ns.Simulator.Stop(ns.Seconds(order["until_s"]))
    ns.Simulator.Run()
    done = [ns.cppyy.gbl.netfold.Done(flow) for flow in range(count)]
    ns.Simulator.Destroy()
    ns.cppyy.gbl.netfold.Forget()
    return [d - start if d else None for d, (start, _) in zip(done, order["flows"], strict=True)]


if __name__ == "__main__":
    json.dump([run(order) for order in json.load(sys.stdin)], sys.stdout)
