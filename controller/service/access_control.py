# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Interceptor that finds the caller of each call, refuses what access.py does not allow, and hides the jobs of other
tenants in the answers."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc

from netfold.controller.jobs.records import JobRecord
from netfold.controller.jobs.submitter import Submitter, TenantLimits
from netfold.controller.jobs.token_buckets import TokenBuckets
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.service.access import (
    LOCAL,
    RULES,
    AccessRefusal,
    Right,
    decide,
    job_in,
    refusal_of_call,
)
from netfold.controller.service.connection_limits import HANDSHAKE_S
from netfold.controller.service.events import Event, EventFiles
from netfold.controller.service.hidden_jobs import HiddenJobs
from netfold.controller.service.identities import Identity, Role, name_fault
from netfold.controller.service.interceptor import CallInterceptor, Handler, wrapped
from netfold.controller.service.jwt_issuers import TokenRefusedError
from netfold.controller.service.request_texts import MAX_TEXT, plain_text
from netfold.controller.service.security import Credentials
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.connection import TOKEN_KEY, TOO_MANY_KEY
from netfold.protocol.job_token import verified_job

HEALTH_CHECK = "/grpc.health.v1.Health/Check"
"""The one call without a token: the probes of platforms have none, and its answer says only whether this process
leads."""

_BEARER = b"Bearer "
_UNKNOWN = AccessRefusal(grpc.StatusCode.UNAUTHENTICATED, "a token of this controller is needed")

DEFAULT_CALLS_S = 20.0
"""Calls a second of a tenant whose limits name none."""

BURST_S = 10.0
"""Seconds whose calls a tenant may make at once. It may make at least one."""

MAX_DELAY_S = 5.0
"""Seconds that a call over the limit waits at most: commands wait 10 s for their answer."""

REFUSAL_S = 1.0
"""Seconds until a refusal is answered. To refuse a call costs nearly as much as to answer one, so a caller that repeats
refused calls at once would delay the others all the same."""


class JobsService(pb_grpc.ControllerServicer):  # type: ignore[misc]
    """The service of a controller, whose jobs are known here."""

    @property
    def registry(self) -> JobRegistry:
        raise NotImplementedError


@dataclass(frozen=True)
class RpcOutcome:
    code: grpc.StatusCode = grpc.StatusCode.OK
    message: str = ""


class IdentifiedCall:
    """The context of a call, with its caller, or the user that it is made for. `holder`: of the token. Messages of
    refusals name no hidden job."""

    def __init__(self, context: Any, caller: Identity, service: JobsService) -> None:
        self._context = context
        self._service = service
        self.caller = self.holder = caller
        self.outcome = RpcOutcome()

    def hidden(self) -> HiddenJobs:
        """The jobs that are hidden from the caller now."""
        return HiddenJobs(self.caller, self._service.registry.all)

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        await self.refuse(AccessRefusal(code, details), self.hidden().text(details))

    async def refuse(self, refusal: AccessRefusal, shown: str = "") -> NoReturn:
        """End the call. `shown`: to the caller; "": the message, whose names are the caller's own words."""
        self.outcome = RpcOutcome(refusal.code, refusal.message)
        await self._context.abort(refusal.code, shown or refusal.message)
        raise AssertionError("abort raises")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def hidden_jobs_of(context: object) -> HiddenJobs:
    """The jobs that are hidden from the caller of a call."""
    return context.hidden() if isinstance(context, IdentifiedCall) else HiddenJobs(LOCAL, list)


def submitter_of(context: object) -> Submitter:
    """The caller of a call. Without this interceptor it is the process itself."""
    caller, holder = (
        (context.caller, context.holder) if isinstance(context, IdentifiedCall) else (LOCAL, LOCAL)
    )
    return Submitter(caller.name, caller.tenant, caller.limits, holder.role is Role.OPERATOR)


class AccessInterceptor(CallInterceptor):
    """`credentials`: None: the callers are of a Unix socket, and may do everything."""

    def __init__(
        self, service: JobsService, credentials: Credentials | None, events: EventFiles | None = None
    ) -> None:
        self._service = service
        self._credentials = credentials
        self._events = events
        self._rates = CallRates()

    async def changed(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        if details.method == HEALTH_CHECK:
            return handler
        rpc, caller = _rpc_of(details), self._caller(details)
        if isinstance(caller, AccessRefusal):
            return _refusing(handler, caller)
        refusal = refusal_of_call(caller, rpc) or self._rates.delay_s(caller, rpc)
        if isinstance(refusal, AccessRefusal):
            return _refusing(handler, refusal)
        await asyncio.sleep(refusal)
        if not handler:
            return handler
        if handler.request_streaming:
            return wrapped(handler, lambda method: self._joining(method, rpc, caller))
        if handler.response_streaming:
            return wrapped(handler, lambda method: self._streaming(method, details, caller))
        return wrapped(handler, lambda method: self._unary(method, rpc, caller))

    def _caller(self, details: grpc.HandlerCallDetails) -> Identity | AccessRefusal:
        if self._credentials is None:
            return LOCAL
        shown = dict(details.invocation_metadata or ()).get(TOKEN_KEY, "")
        given = shown.encode() if isinstance(shown, str) else shown
        if not given.startswith(_BEARER):
            return _UNKNOWN
        token = given.removeprefix(_BEARER)
        try:
            known = self._credentials.current.callers.of_token(token)
        except TokenRefusedError as error:
            return AccessRefusal(grpc.StatusCode.UNAUTHENTICATED, plain_text(str(error), MAX_TEXT))
        return known or _member_of(verified_job(self._service.registry.key, token)) or _UNKNOWN

    def _unary(self, method: Callable[..., Awaitable[Any]], rpc: str, caller: Identity) -> Callable[..., Any]:
        async def call(request: Any, context: Any) -> Any:
            own = IdentifiedCall(context, caller, self._service)
            answer = None
            try:
                await self._admit(rpc, request, own)
                if rpc == "SubmitJobFor":
                    own.caller = await self._user_in(request, own)
                answer = await method(request, own)
            except BaseException as error:
                if own.outcome == RpcOutcome():
                    own.outcome = RpcOutcome(grpc.StatusCode.UNKNOWN, repr(error))
                raise
            finally:
                self._note(rpc, own, caller, request, answer)
            return own.hidden().answer(answer)

        return call

    async def _user_in(self, request: Any, call: IdentifiedCall) -> Identity:
        """The user that the request is made for, with the limits of its tenant."""
        if fault := name_fault(request.user, request.tenant):
            await call.refuse(AccessRefusal(grpc.StatusCode.INVALID_ARGUMENT, fault))
        limits = {} if self._credentials is None else self._credentials.current.callers.limits
        own = limits.get(request.tenant, TenantLimits())
        return Identity(request.user, request.tenant, Role.USER, limits=own)

    def _note(self, rpc: str, call: IdentifiedCall, caller: Identity, request: Any, answer: Any) -> None:
        """Write the event of a call that changes something."""
        rule = RULES.get(rpc)
        if self._events is None or rule is None or not rule.changes:
            return
        submits = rpc in ("SubmitJob", "SubmitJobFor") and answer is not None
        name = job_in(rpc, request) or (answer.name if submits else "")
        job = self._job(name)
        tenant = call.caller.tenant if job is None else job.tenant
        user = f" for {call.caller.name}" if call.caller is not call.holder else ""
        elements = getattr(request, "elements", None) or getattr(request, "jobs", None) or ()
        if isinstance(request, pb.RollOutProgramRequest | pb.CancelRolloutRequest) and answer is not None:
            elements = [answer.rollout.program]
        self._events.add(
            Event(
                at=time.time(),
                call=rpc,
                caller=f"{caller.name or caller.role}{user}",
                tenant=tenant,
                source=call.peer(),
                target=name or ", ".join(elements)[:MAX_TEXT],
                outcome=call.outcome.code.name.lower(),
                message=call.outcome.message[:MAX_TEXT],
            ),
            "" if caller.role is Role.OPERATOR else caller.tenant or tenant,
        )

    def _streaming(
        self, method: Callable[..., Any], details: grpc.HandlerCallDetails, caller: Identity
    ) -> Callable[..., Any]:
        """The call ends at its next message when the token stands for another caller, or for none."""
        rpc = _rpc_of(details)

        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            own = IdentifiedCall(context, caller, self._service)
            await self._admit(rpc, request, own)
            async for message in method(request, own):
                now = self._caller(details)
                if isinstance(now, AccessRefusal):
                    await own.refuse(now)
                elif (now.tenant, now.role) != (caller.tenant, caller.role):
                    await own.refuse(_UNKNOWN)
                yield own.hidden().answer(message)

        return call

    def _joining(self, method: Callable[..., Any], rpc: str, caller: Identity) -> Callable[..., Any]:
        async def call(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
            first = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HANDSHAKE_S):
                    first = await anext(aiter(requests), None)
            if first is None:
                return
            own = IdentifiedCall(context, caller, self._service)
            await self._admit(rpc, first, own)
            async for message in method(_chained(first, requests), own):
                yield own.hidden().answer(message)

        return call

    async def _admit(self, rpc: str, request: Any, call: IdentifiedCall) -> None:
        """End a call that the caller may not make."""
        name = job_in(rpc, request)
        refusal = decide(call.caller, rpc, name, self._job(name))
        if refusal is not None:
            await call.refuse(refusal)

    def _job(self, name: str) -> JobRecord | None:
        registry = self._service.registry
        return registry.get(name) if name in registry else None


def _rpc_of(details: grpc.HandlerCallDetails) -> str:
    return str(details.method).rpartition("/")[2]


def _member_of(job: tuple[str, str] | None) -> Identity | None:
    return None if job is None else Identity("", "", Role.MEMBER, *job)


async def _chained(first: Any, rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
    yield first
    async for message in rest:
        yield message


def _refusing(handler: Handler | None, refusal: AccessRefusal) -> Handler:
    """A handler that refuses each call. `handler`: None: there is no such method."""

    marks = ((TOO_MANY_KEY, "1"),) if refusal.after_s else ()

    async def refuse(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await asyncio.sleep(refusal.after_s)
        await context.abort(refusal.code, refusal.message, marks)

    async def refuse_stream(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await asyncio.sleep(refusal.after_s)
        await context.abort(refusal.code, refusal.message, marks)
        yield

    if handler and handler.request_streaming:
        return grpc.stream_stream_rpc_method_handler(refuse_stream)
    if handler and handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(refuse_stream)
    return grpc.unary_unary_rpc_method_handler(refuse)


class CallRates:
    """The calls of viewers and users, by tenant. `now`: monotonic clock."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._buckets = TokenBuckets(now)

    def delay_s(self, caller: Identity, rpc: str) -> float | AccessRefusal:
        """The seconds that a call has to wait, or why it is one too many. Members join without limit: a refusal would
        end their job."""
        rule, limit = RULES.get(rpc), caller.limits.calls
        is_joining = rule is not None and rule.right is Right.JOIN
        if is_joining or caller.role not in (Role.VIEWER, Role.USER) or limit == math.inf:
            return 0.0
        limit = DEFAULT_CALLS_S if limit is None else limit
        amount = self._buckets.amount(caller.tenant, a_second=limit, depth=max(1.0, limit * BURST_S))
        delay_s = max(0.0, (1.0 - amount) / limit)
        if delay_s <= MAX_DELAY_S:
            self._buckets.use(caller.tenant, 1.0)
            return delay_s
        message = f"tenant '{caller.tenant}' makes too many calls a second; its limit is calls={limit:g}"
        return AccessRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, message, REFUSAL_S)
