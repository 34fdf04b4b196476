# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Why a controller cannot be reached, in words of the options that would be right, from what gRPC reports."""

from __future__ import annotations

import re

from netfold.protocol.connection import Connection

_AUTHORITY = "--tls-ca (NETFOLD_TLS_CA)"
_START = "`netfold controller run FABRIC` starts a controller"
_NAME = "--tls-server-name (NETFOLD_TLS_SERVER_NAME)"


def unreachable_reason(where: Connection, details: str | None) -> str:
    """`details` of gRPC in words, or as they are if they are not known."""
    text = details or "no reason is known"
    host = where.address.rpartition(":")[0]
    name = where.server_name or host
    causes = (
        (
            "CERTIFICATE_VERIFY_FAILED",
            f"its certificate is not signed by an authority of {_AUTHORITY}"
            if where.certificate is not None
            else f"its certificate is not signed by an authority of this system; name its own with {_AUTHORITY}",
        ),
        (
            "Hostname Verification Check failed|is not in peer certificate",
            f"its certificate is not for '{name}'; give a name that is in it with {_NAME}",
        ),
        ("WRONG_VERSION_NUMBER|wrong version number", "what listens there does not speak TLS"),
        ("Connection refused", f"no process listens there; {_START}"),
        ("No such file or directory", f"there is no such socket; {_START}"),
        (
            "Network is unreachable|No route to host|Connection timed out|connect timed out|FD Shutdown",
            "this host has no route to it; a host of an emulated network reaches a controller of the same machine by "
            "its unix socket",
        ),
    )
    return next((cause for pattern, cause in causes if re.search(pattern, text, re.IGNORECASE)), text)
