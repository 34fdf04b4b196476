# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The forwarding-pipeline configuration: the running program and the saved one."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4r
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from softswitch.build.compiler import Compile, compile_here
from softswitch.errors import PipelineError
from softswitch.p4runtime import p4info_check
from softswitch.p4runtime.forwarding import Forwarding
from softswitch.p4runtime.schema import Schema
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

log = logging.getLogger(__name__)
Request = p4r.SetForwardingPipelineConfigRequest
Translate = Callable[[p4r.ForwardingPipelineConfig], Pipeline]


@dataclass(eq=False)
class Loaded:
    """A program with its pushed configuration."""

    config: p4r.ForwardingPipelineConfig
    forwarding: Forwarding
    closed: bool = False

    def close(self) -> None:
        """Frees its state; a Read in progress checks `closed`."""
        if not self.closed:
            self.closed = True
            self.forwarding.pipeline.close()


class Device:
    """One switch and its programs. Methods run on the event loop, translations in a thread."""

    def __init__(
        self, switch: Switch, cache_dir: Path, *, traced: bool = False, compile_c: Compile = compile_here
    ) -> None:
        """`traced`: programs write the packet trace; `compile_c`: runs gcc (Pipeline.load)."""
        self._switch = switch
        self._load_pipeline = functools.partial(
            load_pipeline, cache_dir=cache_dir, traced=traced, compile_c=compile_c, threads=switch.threads
        )
        self._running: Loaded | None = None
        self._saved: Loaded | None = None
        self._without_p4info: Pipeline | None = None  # runs without P4Info
        self._pushing = asyncio.Lock()

    @property
    def running(self) -> Loaded | None:
        """The program that processes packets."""
        return self._running

    @property
    def current(self) -> Loaded | None:
        """The program of Read and Write: a saved one, until it is committed, with its own state (specification,
        VERIFY_AND_SAVE)."""
        return self._saved or self._running

    async def push(
        self,
        action: Request.Action.ValueType,
        config: p4r.ForwardingPipelineConfig | None,
        permit: Callable[[], None],
    ) -> None:
        """Carries out a SetForwardingPipelineConfig. `permit` raises StatusError for a client without permission; it is
        called again after the translation, which takes seconds. After an error the old program continues to run.

        A translation cannot be canceled: after a canceled push the next one still waits for its end."""
        canceled = asyncio.Event()

        def still_permitted() -> None:
            if canceled.is_set():
                raise StatusError(Code.FAILED_PRECONDITION, "the client canceled the push")
            permit()

        work = asyncio.ensure_future(self._push(action, config, still_permitted))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            canceled.set()
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
            except StatusError:
                loaded.close()
                raise
            self._install(action, loaded)

    def _commit(self, config: p4r.ForwardingPipelineConfig | None) -> None:
        if config is not None:
            raise invalid("COMMIT takes no config: it realizes the saved one")
        if self._saved is None:
            raise StatusError(Code.NOT_FOUND, "no config is saved: VERIFY_AND_SAVE must come first")
        self._run(self._saved)

    def _reconcile(self, loaded: Loaded) -> None:
        if self.current is None:
            return
        try:
            self.current.forwarding.copy_to(loaded.forwarding)
        except StatusError as error:
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
        self._drop_without_p4info()
        if old is not None:
            old.close()
        log.info("running %s", loaded.config.p4info.pkg_info.name or "a program without a name")

    def start_with(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Runs a program given on the command line. Without P4Info it processes packets, but P4Runtime has no
        config until one is pushed, as with simple_switch_grpc. Raises StatusError."""
        if config.HasField("p4info"):
            self._run(load(config, self._load_pipeline))
            return
        self._without_p4info = self._load_pipeline(config)
        self._switch.swap(self._without_p4info)

    def close(self) -> None:
        """Takes the programs out of the switch."""
        self._drop_saved()
        self._switch.swap(None)
        self._drop_without_p4info()
        if self._running is not None:
            self._running.close()
            self._running = None

    def _drop_without_p4info(self) -> None:
        if self._without_p4info is not None:
            self._without_p4info.close()
            self._without_p4info = None


def load(config: p4r.ForwardingPipelineConfig, translate: Translate) -> Loaded:
    """Translates a configuration. Raises StatusError (INVALID_ARGUMENT) when it cannot be realized."""
    if not config.p4info.ByteSize():
        raise invalid("the config has no p4info: expected the P4Info that p4c-bm2-ss writes beside the JSON")
    schema = Schema(config.p4info)
    pipeline = translate(config)
    try:
        p4info_check.check(schema, pipeline)
    except StatusError:
        pipeline.close()
        raise
    return Loaded(config, Forwarding(schema, pipeline))


def load_pipeline(
    config: p4r.ForwardingPipelineConfig,
    cache_dir: Path,
    traced: bool = False,
    compile_c: Compile = compile_here,
    threads: int = 1,
) -> Pipeline:
    """Translates the device config alone. Raises StatusError (INVALID_ARGUMENT) when it cannot be realized."""
    if not config.p4_device_config:
        raise invalid("the config has no p4_device_config: give the JSON that p4c-bm2-ss writes")
    try:
        json = device_json(config.p4_device_config)
        return Pipeline.load(json, cache_dir, traced=traced, compile_c=compile_c, threads=threads)
    except PipelineError as error:
        raise invalid(f"the program cannot be realized: {error}") from error
    except OSError as error:
        reason = f"the compiled program cannot be stored in {cache_dir}: {error.strerror or error}"
        raise StatusError(Code.RESOURCE_EXHAUSTED, reason) from error


def device_json(device_config: bytes) -> bytes:
    """The JSON of a device config: the config itself, or the `device_data` of a p4.tmp.P4DeviceConfig around it, as
    PI's clients send and BMv2 accepts (PI: proto/p4/tmp/p4config.proto, DeviceMgr::pipeline_config_set)."""
    if device_config.lstrip().startswith(b"{"):
        return device_config
    try:
        message = _p4_device_config().FromString(device_config)
    except DecodeError:
        return device_config
    data: bytes = getattr(message, "device_data")  # noqa: B009 - no generated type
    return data or device_config


@functools.cache
def _p4_device_config() -> type[Message]:
    """p4.tmp.P4DeviceConfig, as far as it is read here: protobuf skips the other fields in linear time."""
    file = FileDescriptorProto(name="softswitch/p4_device_config.proto", package="p4.tmp", syntax="proto3")
    field = file.message_type.add(name="P4DeviceConfig").field.add(name="device_data", number=3)
    field.type, field.label = field.TYPE_BYTES, field.LABEL_OPTIONAL
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))
