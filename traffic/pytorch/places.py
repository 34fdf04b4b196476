# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Who runs where: each rank tells what it knows of its host through torch's store, rank 0 asks the controller, submits
the job, and tells the rest."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from netfold.api.connection import ConnectError, Connection, connection
from netfold.traffic.errors import TrafficError, UnknownHost
from netfold.traffic.membership.host import Host, fabric_hosts, own_addresses, pick_host
from netfold.traffic.membership.jobs import submit_job
from netfold.traffic.pytorch.options import TorchOptions

_PLAN = "plan"


@dataclass(frozen=True)
class Spot:
    """What a rank knows of the host that it runs on. Ranks of equal `machine` and `wanted` share a host."""

    machine: str
    addresses: tuple[str, ...]
    wanted: str  # NETFOLD_HOST

    @classmethod
    def here(cls) -> Self:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        network = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 (a link that leads to no file)
        return cls(f"{boot} {network}", own_addresses(), os.environ.get("NETFOLD_HOST", ""))

    @classmethod
    def read(cls, text: bytes) -> Self:
        found = json.loads(text)
        return cls(found["machine"], tuple(found["addresses"]), found["wanted"])


@dataclass(frozen=True)
class Plan:
    """Where the ranks run. `places`: of each rank, a number of its host, 0, 1, ... in the order of their first ranks.
    `job`: "" if they all share one host, which needs no network; else `names` and `addresses` are those of the
    hosts."""

    job: str
    places: tuple[int, ...]
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def hosts(self) -> int:
        return max(self.places) + 1

    def beside(self, rank: int) -> list[int]:
        """The ranks that share its host, itself among them; the first leads them."""
        return [other for other, place in enumerate(self.places) if place == self.places[rank]]

    @classmethod
    def read(cls, text: bytes) -> Self:
        found = json.loads(text)
        return cls(found["job"], *(tuple(found[key]) for key in ("places", "names", "addresses")))


def agree(store: Any, rank: int, size: int, options: TorchOptions, timeout: float) -> Plan:
    """The plan that all ranks share; for several hosts, of a job that was admitted. Raises TrafficError and
    ConnectError, the same at all ranks."""
    store.set(f"spot{rank}", json.dumps(asdict(Spot.here())))
    if rank == 0:
        try:
            plan = _make(store, size, options, timeout)
        except (TrafficError, ConnectError, ValueError) as error:
            store.set(_PLAN, json.dumps({"error": f"{error}"}))
            raise
        store.set(_PLAN, json.dumps(asdict(plan)))
        return plan
    text = store.get(_PLAN)
    refused = json.loads(text).get("error")
    if refused is not None:
        raise TrafficError(f"rank 0 says: {refused}")
    return Plan.read(text)


def _make(store: Any, size: int, options: TorchOptions, timeout: float) -> Plan:
    spots = [Spot.read(store.get(f"spot{rank}")) for rank in range(size)]
    kinds = list(dict.fromkeys((spot.machine, spot.wanted) for spot in spots))
    places = tuple(kinds.index((spot.machine, spot.wanted)) for spot in spots)
    if len(kinds) == 1:
        return Plan("", places)
    where = connection()
    hosts = _hosts(where, [spots[places.index(place)] for place in range(len(kinds))])
    name = options.job or f"torch-{secrets.token_hex(4)}"
    names = tuple(host.name for host in hosts)
    submit_job(where, options.job_file(name, names), options.queue, timeout)
    return Plan(name, places, names, tuple(host.address for host in hosts))


def _hosts(where: Connection, spots: Iterable[Spot]) -> list[Host]:
    known = fabric_hosts(where)
    found = [pick_host(known, spot.addresses, spot.wanted) for spot in spots]
    names = [host.name for host in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnknownHost(f"ranks of different machines or network namespaces are all at host '{twice}'")
    return found
