# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which host of the fabric a program runs on: the one whose address an interface of this machine has, unless
NETFOLD_HOST names another."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import Connection
from netfold.protocol.environment import Variable
from netfold.traffic.errors import ControllerUnreachableError, UnknownHostError
from netfold.traffic.membership.call_turns import in_turn

_SIOCGIFCONF = 0x8912
_ADDRESSES_MAX = 256
_ENTRY = 40  # bytes of a struct ifreq on 64-bit Linux: a name of 16, then a sockaddr_in with its address at 4
_CONFIGURATION = struct.Struct("@iP")


TOO_MANY_S = 60.0
"""Seconds for which a call is repeated that exceeds the calls of its tenant: a thousand ranks start at once."""


@dataclass(frozen=True)
class MemberHost:
    """`address`: IPv4."""

    name: str
    address: str
    parameter_server: bool = False


def own_addresses() -> tuple[str, ...]:
    """The IPv4 addresses of this machine's interfaces (of this network namespace), loopback left out."""
    room = array.array("B", bytes(_ENTRY * _ADDRESSES_MAX))
    where, size = room.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        found = fcntl.ioctl(sock.fileno(), _SIOCGIFCONF, _CONFIGURATION.pack(size, where))
    used, _ = _CONFIGURATION.unpack(found)
    entries = [room[at : at + _ENTRY].tobytes() for at in range(0, used, _ENTRY)]
    addresses = [socket.inet_ntoa(entry[20:24]) for entry in entries]
    return tuple(a for a in addresses if not a.startswith("127."))


def fabric_hosts(
    where: Connection, timeout: float = 10.0, limit_s: float = TOO_MANY_S
) -> tuple[MemberHost, ...]:
    """All hosts of the controller's fabric; waits for a controller that starts, at most `timeout` seconds. `limit_s`:
    for how long it is called again while the caller's tenant makes too many calls. Raises
    ControllerUnreachableError."""
    try:
        with open_channel(where, timeout, wait_for_ready=True) as channel:
            list_hosts = rpc.ControllerStub(channel).ListHosts
            answer = in_turn(lambda: list_hosts(pb.ListHostsRequest(), timeout=timeout), limit_s)
    except grpc.RpcError as error:
        raise ControllerUnreachableError(
            f"the controller at {where.address} does not list its hosts: {error.details()}"
        ) from error
    return tuple(MemberHost(h.name, h.address, h.parameter_server) for h in answer.hosts)


def pick_host(hosts: Iterable[MemberHost], addresses: Sequence[str], wanted: str = "") -> MemberHost:
    """The host that is called `wanted`, or else has one of these addresses. Raises UnknownHostError."""
    known = tuple(hosts)
    found = [h for h in known if (h.name == wanted if wanted else h.address in addresses)]
    if len(found) == 1:
        return found[0]
    if wanted:
        raise UnknownHostError(f"'{wanted}' is no host of the controller's fabric")
    mine = ", ".join(addresses) or "none"
    if found:
        names = ", ".join(h.name for h in found)
        raise UnknownHostError(
            f"this machine ({mine}) is several hosts: {names}; choose one with NETFOLD_HOST"
        )
    raise UnknownHostError(
        f"no address of this machine ({mine}) is one of the controller's {len(known)} hosts; name the host that it is "
        "with NETFOLD_HOST"
    )


def own_host(where: Connection, timeout: float = 10.0) -> MemberHost:
    """The host that this process runs on. Raises UnknownHostError, ControllerUnreachableError."""
    return pick_host(fabric_hosts(where, timeout), own_addresses(), os.environ.get(Variable.HOST, ""))


def bindable(address: str) -> str:
    """The address if this machine has it, else 0.0.0.0: a host may be reached by another one than its own says."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((address, 0))
        except OSError:
            return "0.0.0.0"
    return address
