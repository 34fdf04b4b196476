# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The way into a job for a program that trains."""

from __future__ import annotations

from pathlib import Path

from netfold.protocol.connection import connection
from netfold.traffic.membership.host import own_host
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.packets.host_link import HostLink
from netfold.traffic.worker.worker import Worker


def join(
    job: str,
    host: str | None = None,
    *,
    controller: str | None = None,
    certificate: Path | str | None = None,
    token: Path | str | None = None,
    server_name: str | None = None,
    local: str = "0.0.0.0",
    timeout: float = 60.0,
) -> Worker:
    """Joins `job` as the worker on `host` (both as the job's file names them), and waits until it is installed, at most
    `timeout` seconds. The worker is a context manager; leaving it leaves the job. `host` None: the one that
    NETFOLD_HOST names, or whose address this machine has.

    `controller`: `unix:PATH` or `HOST:PORT`, or several with commas between. Over TCP: `certificate`, a PEM file that
    the controller's certificate is checked against, `server_name`, the name in it if not HOST, and `token`, the file
    with the token to show. What is None is taken from NETFOLD_CONTROLLER, NETFOLD_TLS_CA, NETFOLD_TLS_SERVER_NAME and
    NETFOLD_TOKEN_FILE, or is the default (docs/reference/jobs.md). `local`: the IPv4 address to bind, 0.0.0.0 for any.

    Raises
        ConnectError                certificate or token cannot be read
        AllReduceTimeoutError       the job is queued, or other members have not joined
        JobFailedError              the controller refused this member, or the job has ended
        ControllerUnreachableError, UnknownHostError, InvalidAssignmentError, EngineUnavailableError
    """
    where = connection(controller, _path(certificate), _path(token), server_name)
    membership = ControllerMembership(where, job, host or own_host(where).name)
    try:
        membership.wait(timeout)
        return Worker(membership, local, link=HostLink.from_environment())
    except BaseException:
        membership.close()
        raise


def _path(path: Path | str | None) -> Path | None:
    return None if path is None else Path(path)
