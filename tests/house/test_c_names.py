# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""C that is compiled on a user's machine takes no names of the system's name spaces. A later C library or kernel may
define any name there, as Linux 6.12 has done with IP_PROTOCOL, and then the program does not compile.
All C is formatted by .clang-format at the root."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.c_graph import c_files

SYSTEM_PREFIXES = (
    *("AF", "ARP", "ARPHRD", "BPF", "CMSG", "EPOLL", "ETH", "ETHERTYPE", "ETHTOOL", "IBV", "ICMP", "ICMP6"),
    *(
        "ICMPV6",
        "IF",
        "IFA",
        "IFF",
        "IFLA",
        "IGMP",
        "IN6",
        "INADDR",
        "IP",
        "IP6",
        "IPPORT",
        "IPPROTO",
        "IPV6",
    ),
    *("MAP", "MPI", "MSG", "NETLINK", "NLA", "NLM", "NLMSG", "O", "PACKET", "PF", "PMPI", "POLL", "PROT"),
    *("PTHREAD", "RDMA", "RTM", "RTN", "S", "SA", "SCM", "SIG", "SIOC", "SO", "SOCK", "SOL", "TCP", "TP"),
    *("TPACKET", "UDP", "VIRTIO", "VLAN", "XDP", ""),  # the last one: C reserves names that begin with _
)
FEATURE_MACROS = {"_GNU_SOURCE"}

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_MISSING = re.compile(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s+#[ \t]*define[ \t]+\1\b[^\n]*", re.MULTILINE)
_ENUM = re.compile(r"\benum\b[^{;()]*\{([^}]*)\}")
_ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")


def system_names(text: str) -> list[str]:
    """The macros and enumerators of C that have a prefix of the system. A macro is right where the system's own may be
    missing: directly below the `#ifndef` of its name."""
    code = _MISSING.sub("", _COMMENT.sub(" ", text))
    names = _DEFINED.findall(code)
    for body in _ENUM.findall(code):
        names += _ENUMERATOR.findall(body)
    return [n for n in names if n not in FEATURE_MACROS and n.partition("_")[0] in SYSTEM_PREFIXES]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("enum { IP_PROTOCOL = 9, SS_IP_ID, TCP_FLAGS = 13 };", ["IP_PROTOCOL", "TCP_FLAGS"]),
        ("enum kind {\n    FIRST, /* , UDP_X */\n    ETH_LAST\n};", ["ETH_LAST"]),
        ("#define UDP_GRO 104\n", ["UDP_GRO"]),
        ("#ifndef UDP_GRO /* since 5.0 */\n#define UDP_GRO 104\n#endif\n", []),
        ("#ifndef UDP_GRO\n#define UDP_GRO 104\n#define UDP_MORE 1\n#endif\n", ["UDP_MORE"]),
        ("#define _GNU_SOURCE\n#define _OWN 1\nint x = sizeof(enum nf_op);", ["_OWN"]),
    ],
)
def test_the_rule_finds_names_of_the_system(text: str, names: list[str]):
    assert system_names(text) == names


def test_no_c_file_takes_a_name_of_the_system():
    files = list(c_files())
    assert len(files) > 100
    taken = {str(f): names for f in files if (names := system_names(f.read_text()))}
    assert taken == {}, "give these names a prefix of their library (SS_, NF_, NM_, NR_, SF_, NP_)"


CLANG_FORMAT = Path(sys.executable).with_name("clang-format")


@pytest.mark.skipif(
    not CLANG_FORMAT.exists(), reason="SKIPPED: needs clang-format of the dev extra (pip install -e '.[dev]')"
)
def test_c_is_formatted():
    files = list(c_files())
    assert len(files) > 100
    done = subprocess.run(
        [CLANG_FORMAT, "--dry-run", "-Werror", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run `make format`:\n{done.stderr[:2000]}"
