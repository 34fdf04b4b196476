# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files that make a bare machine one of those that hold the controller: units of a member of etcd and of a
controller."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netfold.controller.jobs.etcd_client import PORT, EtcdAddress
from netfold.controller.operator.server_files import PREFIX, SETTINGS, File, unit
from netfold.controller.operator.server_plan import ServerError

CONTROLLER_UNITS = ("netfold-controller", "netfold-etcd")
COUNTS = (3, 5, 7)
"""Numbers of members that etcd is made for. One more than an odd number outlives no more losses."""
STORE = "netfold"
ETCD = Path("/usr/bin/etcd")
USER, ETCD_USER = "netfold", "netfold-etcd"
CONTROLLER_PORT, METRICS_PORT, PEER_PORT = 9600, 9601, PORT + 1
HISTORY = "1h"
QUOTA_BYTES = 4 << 30
"""etcd takes no change beyond it until it is defragmented. A thousand jobs take 3 MB, beside an hour's history."""

CA, CERT, KEY = (SETTINGS / name for name in ("etcd-ca.pem", "etcd.pem", "etcd-key.pem"))
"""Certificates of etcd: its authority, and this machine's, as a server and as a client, with its key."""
CONTROLLER_INPUTS = tuple(
    SETTINGS / name
    for name in ("fabric.yaml", "switches.yaml", "cert.pem", "key.pem", "token", "member-token")
)

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_WORD = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
"""A word that systemd takes as it is."""


@dataclass(frozen=True)
class ControllerNode:
    """One of the machines that hold the controller. `member` is its name, one of `members`. `joins`: its member of etcd
    is new in a cluster that runs. `more`: further words for `netfold controller run`."""

    members: tuple[str, ...]
    member: str
    joins: bool = False
    more: tuple[str, ...] = ()


def controller_node(
    members: str, member: str | None, host: str, more: Sequence[str], *, joins: bool
) -> ControllerNode:
    """The node of a machine that is called `host` unless `member` names it. Raises ServerError."""
    names = tuple(members.split(","))
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong or len({name.casefold() for name in names}) != len(names) or len(names) not in COUNTS:
        fault = f"{wrong[0]!r} is no name of a machine: " if wrong else ""
        raise ServerError(
            f"--members {members}: {fault}expected 3, 5 or 7 different names, as ctl1,ctl2,ctl3"
        )
    own = member or host
    if own not in names:
        what = f"--member {own}" if member else f"this machine is called {own}"
        raise ServerError(f"{what}: expected --member with one of {', '.join(names)}")
    for word in more:
        if not _WORD.fullmatch(word):
            raise ServerError(
                f"{word!r}: expected a word that systemd takes as it is, of A-Z a-z 0-9 _./:=,@+-"
            )
    node = ControllerNode(names, own, joins, tuple(more))
    if more and not more[0].startswith("-"):
        raise ServerError(f"{more[0]!r}: expected an option of `netfold controller run`, after --")
    for option in {word.partition("=")[0].removeprefix("--") for word in more} & {*_options(node)}:
        raise ServerError(f"--{option}: the unit has this option already; expected another one after --")
    return node


def controller_files(node: ControllerNode) -> list[File]:
    """The paths are the same for all nodes."""
    units = Path("/etc/systemd/system")
    users = f'u {USER} - "netfold"\nu {ETCD_USER} - "etcd of netfold"\n'
    own = units / "netfold-etcd.service"
    return [
        File(own, unit(f"etcd of netfold at {node.member}", _etcd(node))),
        File(units / "netfold-controller.service", unit("netfold controller", _controller(node))),
        File(Path("/etc/sysusers.d/netfold-controller.conf"), users),
        File(units / "etcd.service.d/90-netfold.conf", f"[Unit]\nConditionPathExists=!{own}\n"),
    ]


def store_address(node: ControllerNode) -> str:
    """The address of the store, with this machine's member first: the nearest one is called first."""
    others = (name for name in node.members if name != node.member)
    return f"{EtcdAddress((node.member, *others), STORE)}?ca={CA}&cert={CERT}&key={KEY}"


def _etcd(node: ControllerNode) -> list[str]:
    """It has the certificates as credentials, because they are readable for root and the controller alone."""
    own = node.member
    peers = ",".join(f"{name}=https://{name}:{PEER_PORT}" for name in node.members)
    options: dict[str, object] = {
        "name": own,
        "data-dir": "/var/lib/netfold-etcd",
        "listen-client-urls": f"https://0.0.0.0:{PORT}",
        "advertise-client-urls": f"https://{own}:{PORT}",
        "listen-peer-urls": f"https://0.0.0.0:{PEER_PORT}",
        "initial-advertise-peer-urls": f"https://{own}:{PEER_PORT}",
        "initial-cluster": peers,
        "initial-cluster-state": "existing" if node.joins else "new",
        "initial-cluster-token": STORE,
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": HISTORY,
        "quota-backend-bytes": QUOTA_BYTES,
    }
    for side in ("", "peer-"):
        for what, file in (("trusted-ca", CA), ("cert", CERT), ("key", KEY)):
            options[f"{side}{what}-file"] = f"%d/{file.name}"
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [
        f"User={ETCD_USER}",
        "StateDirectory=netfold-etcd",
        "StateDirectoryMode=0700",
        *(f"LoadCredential={file.name}:{file}" for file in (CA, CERT, KEY)),
        _command(str(ETCD), *words, "--client-cert-auth", "--peer-client-cert-auth"),
        "LimitNOFILE=65536",
        *_ALIKE,
    ]


def _controller(node: ControllerNode) -> list[str]:
    """It starts until etcd answers: a majority may come later than this machine."""
    words = [word for name, value in _options(node).items() for word in (f"--{name}", str(value))]
    return [
        "Type=notify",
        "WatchdogSec=60",
        "WatchdogSignal=SIGKILL",
        f"User={USER}",
        "StateDirectory=netfold",
        "Environment=XDG_STATE_HOME=/var/lib",  # of events and programs: the user has no home
        _command(f"{PREFIX}/bin/netfold", "controller", "run", str(CONTROLLER_INPUTS[0]), *words, *node.more),
        "ExecReload=/bin/kill -HUP $MAINPID",
        *_ALIKE,
    ]


def _options(node: ControllerNode) -> dict[str, object]:
    _, switches, cert, key, token, member_token = CONTROLLER_INPUTS
    return {
        "switches": switches,
        "state": store_address(node),
        "listen": f"{node.member}:{CONTROLLER_PORT}",
        "tls-cert": cert,
        "tls-key": key,
        "tokens": token,
        "member-tokens": member_token,
        "metrics-port": METRICS_PORT,
    }


_ALIKE = ("Restart=always", "RestartSec=1", "NoNewPrivileges=true", "ProtectSystem=strict", "ProtectHome=true",
          "PrivateTmp=true")  # fmt: skip


def _command(*words: str) -> str:
    return f"ExecStart={' '.join(words)}"
