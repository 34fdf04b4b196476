# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller events`: each change with its caller."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from netfold.controller.operator.controller_client import call_controller, duration_s
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.options import ControllerOptions, reaches_controller

app = typer.Typer()


@app.command()
@reaches_controller
def events(
    where: ControllerOptions,
    follow: Annotated[bool, typer.Option("--follow", help="Continue with the events that come.")] = False,
    since: Annotated[
        str | None, typer.Option(help="Age of the oldest event, such as 90s, 5m, 1h or 7d; default: all.")
    ] = None,
) -> None:
    """Show the calls that changed something, one JSON object a line. A user sees those of its tenant.

    Exit codes: 0 shown, 2 bad --since, 4 no controller answers.
    """
    oldest = 0.0 if since is None else time.time() - duration_s("--since", since)
    request = pb.WatchEventsRequest(since=oldest, follow=follow)

    async def show(stub: pb_grpc.ControllerStub) -> None:
        async for answer in stub.WatchEvents(request):
            for line in answer.lines:
                typer.echo(line)

    call_controller(where, show)
