# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A controller whose answers a test writes: what its members get, and what it gets of them."""

from __future__ import annotations

import contextlib
import queue
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.connection import TOKEN_KEY
from tests.traffic.tls import Tls


def assignment(epoch: int = 1, **changes: object) -> pb.Assignment:
    part = pb.TreeAssignment(
        tree=1, share=1.0, slots=8, window=4, child=2, destination="10.0.0.9", children=[2, 3]
    )
    message = pb.Assignment(job="j", epoch=epoch, udp_port=61441, lanes=64, rank=0, workers=2, trees=[part])
    for name, value in changes.items():
        setattr(message, name, value)
    return message


class Controller(rpc.ControllerServicer):
    """Answers each stream with what the test puts into `notices`; None breaks the stream."""

    def __init__(self) -> None:
        self.notices: queue.Queue[pb.ControllerUpdate | None] = queue.Queue()
        self.heard: queue.Queue[pb.MemberUpdate] = queue.Queue()
        self.refuse = ""
        self.token = ""
        self.job = pb.Job()

    def GetJob(self, request, context) -> pb.Job:  # noqa: N802
        return self.job

    def JoinJob(self, requests, context) -> Iterator[pb.ControllerUpdate]:  # noqa: N802 (the proto's name)
        if self.token and dict(context.invocation_metadata()).get(TOKEN_KEY) != self.token:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token of this controller is needed")
        if self.refuse:
            context.abort(grpc.StatusCode.NOT_FOUND, self.refuse)

        def listen() -> None:
            with contextlib.suppress(grpc.RpcError):  # the member broke the stream
                for request in requests:
                    self.heard.put(request)
            self.notices.put(None)

        threading.Thread(target=listen, daemon=True).start()
        while (notice := self.notices.get()) is not None:
            yield notice


def serve(servicer: rpc.ControllerServicer, target: str) -> grpc.Server:
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_ControllerServicer_to_server(servicer, server)
    server.add_insecure_port(target)
    server.start()
    return server


@contextmanager
def controller(tls: Tls | None = None) -> Iterator[tuple[Controller, str]]:
    """At a unix socket; with `tls` at TCP, where it wants the token "Bearer a-token"."""
    servicer = Controller()
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_ControllerServicer_to_server(servicer, server)
    with tempfile.TemporaryDirectory() as folder:
        if tls is None:
            target = f"unix:{folder}/s"
            server.add_insecure_port(target)
        else:
            credentials = grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])
            target = f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', credentials)}"
            servicer.token = "Bearer a-token"
        server.start()
        try:
            yield servicer, target
        finally:
            servicer.notices.put(None)
            server.stop(0).wait()
