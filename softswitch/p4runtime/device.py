# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The forwarding-pipeline configuration: which program runs, and which one is saved to run next."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4r
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from netfold.softswitch.build.compiler import Compile, compile_here
from netfold.softswitch.errors import PipelineError
from netfold.softswitch.p4runtime import agreement
from netfold.softswitch.p4runtime.forwarding import Forwarding
from netfold.softswitch.p4runtime.schema import Schema
from netfold.softswitch.p4runtime.status import Code, Refused, invalid
from netfold.softswitch.state.pipeline import Pipeline
from netfold.softswitch.state.switch import Switch

log = logging.getLogger(__name__)
Request = p4r.SetForwardingPipelineConfigRequest
Translate = Callable[[p4r.ForwardingPipelineConfig], Pipeline]


@dataclass(eq=False)
class Loaded:
    """A program with its configuration as it was pushed."""

    config: p4r.ForwardingPipelineConfig
    forwarding: Forwarding
    closed: bool = False

    def close(self) -> None:
        """Frees its state; a reader in progress sees `closed`."""
        if not self.closed:
            self.closed = True
            self.forwarding.pipeline.close()


class Device:
    """One switch and its programs. All methods belong to the event loop; only translation runs beside it."""

    def __init__(
        self, switch: Switch, cache_dir: Path, *, traced: bool = False, compile_c: Compile = compile_here
    ) -> None:
        """`traced`: programs tell each step of each packet; `compile_c`: who runs gcc (Pipeline.load)."""
        self._switch = switch
        self._load_pipeline = functools.partial(
            load_pipeline, cache_dir=cache_dir, traced=traced, compile_c=compile_c
        )
        self._running: Loaded | None = None
        self._saved: Loaded | None = None
        self._nameless: Pipeline | None = None  # runs without P4Info
        self._pushing = asyncio.Lock()

    @property
    def running(self) -> Loaded | None:
        """The program that packets meet."""
        return self._running

    @property
    def current(self) -> Loaded | None:
        """The program that Read and Write speak of: a saved one has its own state and takes them until it is
        committed (specification, VERIFY_AND_SAVE)."""
        return self._saved or self._running

    async def push(
        self,
        action: Request.Action.ValueType,
        config: p4r.ForwardingPipelineConfig | None,
        permit: Callable[[], None],
    ) -> None:
        """Carries out a SetForwardingPipelineConfig. `permit` raises Refused when the client may not; it is
        asked again after the translation, which takes seconds. When this raises, the old program runs on.

        A translation cannot be stopped: when the client gives up, the next push waits for its end all the same."""
        given_up = asyncio.Event()

        def wanted() -> None:
            if given_up.is_set():
                raise Refused(Code.FAILED_PRECONDITION, "the client has given up")
            permit()

        work = asyncio.ensure_future(self._push(action, config, wanted))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            given_up.set()
            work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            raise

    async def _push(
        self,
        action: Request.Action.ValueType,
        config: p4r.ForwardingPipelineConfig | None,
        permit: Callable[[], None],
    ) -> None:
        async with self._pushing:
            permit()
            if action == Request.COMMIT:
                self._commit(config)
                return
            if action not in (
                Request.VERIFY,
                Request.VERIFY_AND_SAVE,
                Request.VERIFY_AND_COMMIT,
                Request.RECONCILE_AND_COMMIT,
            ):
                raise invalid(f"action {action} is unset or unknown")
            if config is None:
                raise invalid("the config is not set")
            loaded = await asyncio.to_thread(load, config, self._load_pipeline)
            try:
                permit()
                if action == Request.RECONCILE_AND_COMMIT:
                    self._reconcile(loaded)
            except Refused:
                loaded.close()
                raise
            self._install(action, loaded)

    def _commit(self, config: p4r.ForwardingPipelineConfig | None) -> None:
        if config is not None:
            raise invalid("COMMIT takes no config: it realizes the saved one")
        if self._saved is None:
            raise Refused(Code.NOT_FOUND, "no config is saved: VERIFY_AND_SAVE must come first")
        self._run(self._saved)

    def _reconcile(self, loaded: Loaded) -> None:
        if self.current is None:
            return
        try:
            self.current.forwarding.copy_to(loaded.forwarding)
        except Refused as error:
            raise invalid(f"the forwarding state cannot be kept: {error.message}") from error

    def _install(self, action: Request.Action.ValueType, loaded: Loaded) -> None:
        if action == Request.VERIFY:
            loaded.close()
        elif action == Request.VERIFY_AND_SAVE:
            self._drop_saved()
            self._saved = loaded
        else:
            self._drop_saved()
            self._run(loaded)

    def _drop_saved(self) -> None:
        if self._saved is not None:
            self._saved.close()
            self._saved = None

    def _run(self, loaded: Loaded) -> None:
        old = self._running
        self._switch.swap(loaded.forwarding.pipeline)
        self._running = loaded
        self._saved = None
        self._drop_nameless()
        if old is not None:
            old.close()
        log.info("running %s", loaded.config.p4info.pkg_info.name or "a program without a name")

    def start_with(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Runs a program given on the command line. Without P4Info packets meet it, but P4Runtime knows of no config
        until one is pushed, as with simple_switch_grpc. Raises Refused."""
        if config.HasField("p4info"):
            self._run(load(config, self._load_pipeline))
            return
        self._nameless = self._load_pipeline(config)
        self._switch.swap(self._nameless)

    def close(self) -> None:
        """Takes the programs out of the switch."""
        self._drop_saved()
        self._switch.swap(None)
        self._drop_nameless()
        if self._running is not None:
            self._running.close()
            self._running = None

    def _drop_nameless(self) -> None:
        if self._nameless is not None:
            self._nameless.close()
            self._nameless = None


def load(config: p4r.ForwardingPipelineConfig, translate: Translate) -> Loaded:
    """Translates a configuration. Raises Refused (INVALID_ARGUMENT) when it cannot be realized."""
    schema = Schema(config.p4info)
    pipeline = translate(config)
    try:
        agreement.check(schema, pipeline)
    except Refused:
        pipeline.close()
        raise
    return Loaded(config, Forwarding(schema, pipeline))


def load_pipeline(
    config: p4r.ForwardingPipelineConfig,
    cache_dir: Path,
    traced: bool = False,
    compile_c: Compile = compile_here,
) -> Pipeline:
    """Translates the device config alone. Raises Refused (INVALID_ARGUMENT) when it cannot be realized."""
    if not config.p4_device_config:
        raise invalid("the config has no p4_device_config: give the JSON that p4c-bm2-ss writes")
    try:
        json = device_json(config.p4_device_config)
        return Pipeline.load(json, cache_dir, traced=traced, compile_c=compile_c)
    except PipelineError as error:
        raise invalid(f"the program cannot be realized: {error}") from error


def device_json(device_config: bytes) -> bytes:
    """The JSON of a device config: that itself, or the `device_data` (field 3) of a p4.tmp.P4DeviceConfig around it, as
    PI's clients send and BMv2 takes (PI: proto/p4/tmp/p4config.proto, DeviceMgr::pipeline_config_set)."""
    if device_config.lstrip().startswith(b"{"):
        return device_config
    try:
        fields = UnknownFieldSet(Empty.FromString(device_config))
    except DecodeError:
        return device_config
    data = [fields[i] for i in range(len(fields))]
    found = [field.data for field in data if field.field_number == 3 and isinstance(field.data, bytes)]
    return found[-1] if found else device_config
