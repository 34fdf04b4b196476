# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""netfold softswitch: the command line, that of simple_switch_grpc and more."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from netfold.softswitch import bmv2_options
from netfold.softswitch.admin.requests import DEFAULT_QUEUE, PORT_MAX, QUEUE_MAX, parse_rate
from netfold.softswitch.logs import LogFile, LogLevel, set_up_logs

if TYPE_CHECKING:
    from netfold.softswitch.process import Link, Tls

log = logging.getLogger(__name__)


class RunUnlessNamed(TyperGroup):
    """`netfold softswitch ...` runs a switch, unless the first word is another of the commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and args[0] in self.commands
        return super().parse_args(ctx, args if named else ["run", *args])


class LikeBmv2(TyperCommand):
    """Takes the command lines of simple_switch_grpc."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        kept, ctx.meta[WITHOUT_EFFECT] = bmv2_options.adapted(args)
        return super().parse_args(ctx, kept)


WITHOUT_EFFECT = "softswitch.without_effect"
JSON_VERSION = "2.23"


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"softswitch {importlib.metadata.version('netfold')}, in place of simple_switch_grpc")
        raise typer.Exit


def _say_json_version(wanted: bool) -> None:
    if wanted:
        typer.echo(JSON_VERSION)
        raise typer.Exit


app = typer.Typer(add_completion=False, cls=RunUnlessNamed)


@app.command(
    cls=LikeBmv2,
    epilog="Other commands: netfold softswitch cli (tables, registers, queues of a running switch), netfold softswitch "
    "install-shim (be found as simple_switch_grpc). Of that one's options "
    "these are taken and have no effect: " + ", ".join(bmv2_options.IGNORED) + ".",
)
def run(
    context: typer.Context,
    program: Annotated[
        Path | None,
        typer.Argument(
            help="BMv2 JSON of p4c-bm2-ss, to run from the start. Without it the switch drops all frames until a "
            "controller pushes a program.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    interface: Annotated[
        list[str],
        typer.Option(
            "-i",
            "--interface",
            metavar="PORT@IFACE",
            help="Attach a network interface as a port. May be repeated. An interface that is missing, or goes away, "
            "is attached when it appears.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer's way to say "none"
    device_id: Annotated[int, typer.Option(min=0, max=(1 << 64) - 1, help="P4Runtime device id.")] = 0,
    grpc_server_addr: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where P4Runtime is served. Port 0 takes a free one.")
    ] = "127.0.0.1:9559",
    insecure_remote: Annotated[
        bool,
        typer.Option(
            "--insecure-remote",
            help="Serve an address that other machines reach without TLS. Whoever reaches it can run code here.",
        ),
    ] = False,
    cpu_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, help="The port of packet-in and packet-out.")
    ] = 510,
    drop_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, help="The egress_spec that means drop.")
    ] = 511,
    priority_queues: Annotated[
        int,
        typer.Option(
            min=1,
            max=8,
            help="Queues of each port; standard_metadata.priority chooses, the highest number goes first.",
        ),
    ] = 1,
    dump_packet_data: Annotated[
        int,
        typer.Option(
            min=0, metavar="BYTES", help="Log so many bytes of each packet that comes or goes, at level info."
        ),
    ] = 0,
    pcap: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Record each port's frames in DIR/IFACE_in.pcap and DIR/IFACE_out.pcap; without DIR, here.",
        ),
    ] = None,
    log_console: Annotated[
        bool, typer.Option("--log-console", help="Trace every packet, to standard output.")
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Trace every packet, to FILE.txt.", show_default=False)
    ] = None,
    log_flush: Annotated[
        bool, typer.Option("--log-flush", help="Write each line of the log file at once.")
    ] = False,
    log_file_max_size: Annotated[int, typer.Option(min=1, help="Bytes of a log file.")] = 5 << 20,
    log_file_max_files: Annotated[int, typer.Option(min=0, help="Older log files that are kept.")] = 3,
    log_level: Annotated[
        LogLevel | None,
        typer.Option(
            "--log-level",
            "-L",
            help="What to log. Packets are traced at trace and debug, if with --log-console or --log-file. "
            "[default: trace with these, else info, to standard error]",
            show_default=False,
        ),
    ] = None,
    no_p4: Annotated[
        bool, typer.Option("--no-p4", help="Start without a program, even when one is given.")
    ] = False,
    p4info: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="P4Info of the program, in protobuf's text form."),
    ] = None,
    port_rate: Annotated[
        list[str],
        typer.Option(
            metavar="PORT=RATE",
            help="Emulate a link of this rate behind a port: 1=100mbit, 2=2.5gbit. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    port_queue: Annotated[
        list[str],
        typer.Option(
            metavar="PORT=PACKETS",
            help=f"Bound of the egress queue of a port with a rate; {DEFAULT_QUEUE} unless given. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    control_socket: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Unix socket for ports, rates, faults and counters at run time, in lines of JSON.",
        ),
    ] = None,
    cache_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Compiled programs are kept here. [default: $NETFOLD_CACHE, or netfold in the user's cache folder]",
            show_default=False,
        ),
    ] = None,
    thrift_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Serve the control socket where `netfold softswitch cli --thrift-port` looks for it, unless "
            "--control-socket says where. (There is no Thrift server.)",
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert",
            "--grpc-server-cert",
            exists=True,
            dir_okay=False,
            help="Server certificate (PEM): serve over TLS.",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(
            "--tls-key",
            "--grpc-server-key",
            exists=True,
            dir_okay=False,
            help="Key of the server certificate (PEM).",
        ),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-ca",
            "--grpc-server-cacert",
            exists=True,
            dir_okay=False,
            help="Take only clients with a certificate of this CA (PEM).",
        ),
    ] = None,
    grpc_server_ssl: Annotated[
        bool, typer.Option("--grpc-server-ssl", help="As --tls-cert and --tls-key, which it needs, say.")
    ] = False,
    grpc_server_with_client_auth: Annotated[
        bool, typer.Option("--grpc-server-with-client-auth", help="As --tls-ca, which it needs, says.")
    ] = False,
    ready_fd: Annotated[
        int | None,
        typer.Option(
            metavar="FD", help='Write "ready GRPC_PORT" to this file descriptor once all is served.'
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the program's random().")] = 1,
    as_bmv2: Annotated[
        bool, typer.Option("--as-bmv2", hidden=True, help="Called as simple_switch_grpc.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", help="Say which version this is.", is_eager=True, callback=_say_version
        ),
    ] = False,
    json_version: Annotated[
        bool,
        typer.Option(
            "--json-version", help="Say which BMv2 JSON it takes.", is_eager=True, callback=_say_json_version
        ),
    ] = False,
) -> None:
    """Run a P4 program natively, as a drop-in for simple_switch_grpc.

    The program is what p4c-bm2-ss emits for v1model; it is translated to C, compiled with gcc, cached and loaded.
    SIGTERM forwards what was received, ends the streams, and exits 0.
    """
    from netfold.softswitch.build.native import default_cache_dir
    from netfold.softswitch.process import Settings, StartError, serve

    if log_console and log_file is not None:
        raise typer.BadParameter("--log-console and --log-file exclude each other")
    logged = log_console or log_file is not None
    level = log_level or (LogLevel.TRACE if logged else LogLevel.INFO)
    file = None
    if log_file is not None:
        file = LogFile(log_file, log_flush, log_file_max_size, log_file_max_files)
    tls = _tls((tls_cert, tls_key, tls_ca), grpc_server_ssl, grpc_server_with_client_auth)
    without_effect = list(context.meta[WITHOUT_EFFECT])
    if as_bmv2 and tls is None and not insecure_remote:
        asked, grpc_server_addr = grpc_server_addr, bmv2_options.reachable(grpc_server_addr)
        if asked != grpc_server_addr:
            without_effect.append(
                f"{asked} (served on {grpc_server_addr} alone; --insecure-remote serves all)"
            )
    settings = Settings(
        cache_dir=cache_dir or default_cache_dir(),
        ports=_parse_interfaces(interface),
        links=_parse_links(port_rate, port_queue),
        device_id=device_id,
        address=grpc_server_addr,
        insecure_remote=insecure_remote,
        cpu_port=cpu_port,
        drop_port=drop_port,
        program=None if no_p4 else program,
        p4info=p4info,
        captures=pcap,
        control_socket=_control_socket(control_socket, thrift_port),
        tls=tls,
        ready_fd=ready_fd,
        seed=seed,
        queues=priority_queues,
        traced=logged and level.number <= logging.DEBUG,
        dump_bytes=dump_packet_data if level.number <= logging.INFO else 0,
    )
    try:
        set_up_logs(level, device_id, console=log_console, file=file)
        if without_effect:
            log.warning("without effect here: %s", ", ".join(without_effect))
        asyncio.run(serve(settings))
    except (StartError, OSError) as error:
        typer.echo(f"netfold softswitch: {error}", err=True)
        raise typer.Exit(1) from error


def _control_socket(path: Path | None, thrift_port: int | None) -> Path | None:
    from netfold.softswitch.admin.prompt import thrift_socket

    if path is not None or thrift_port is None:
        return path
    path = thrift_socket(thrift_port)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _tls(files: tuple[Path | None, Path | None, Path | None], asked: bool, with_clients: bool) -> Tls | None:
    from netfold.softswitch.process import Tls

    certificate, key, ca = files
    if certificate is None and key is None and ca is None and not asked and not with_clients:
        return None
    if certificate is None or key is None or (with_clients and ca is None):
        raise typer.BadParameter("TLS needs --tls-cert and --tls-key; --tls-ca is optional besides")
    return Tls(certificate, key, ca)


def _parse_interfaces(texts: list[str]) -> dict[int, str]:
    ports: dict[int, str] = {}
    for text in texts:
        number, at, name = text.partition("@")
        if not at or not name:
            raise typer.BadParameter(f"-i {text}: write it as PORT@IFACE, like 1@veth0")
        port = _parse_number(number, f"-i {text}", PORT_MAX)
        if port in ports or name in ports.values():
            raise typer.BadParameter(f"-i {text}: the port or the interface is given twice")
        ports[port] = name
    return ports


def _parse_links(rates: list[str], queues: list[str]) -> dict[int, Link]:
    from netfold.softswitch.process import Link

    bounds = dict(_parse_pair(text, "--port-queue") for text in queues)
    links: dict[int, Link] = {}
    for text in rates:
        port, value = _parse_pair(text, "--port-rate")
        try:
            rate = parse_rate(value)
        except ValueError as error:
            raise typer.BadParameter(f"--port-rate {text}: {error}") from error
        queue = bounds.pop(port, str(DEFAULT_QUEUE))
        links[port] = Link(rate, _parse_number(queue, f"--port-queue {port}={queue}", QUEUE_MAX))
    if bounds:
        raise typer.BadParameter(f"--port-queue {min(bounds)}=...: port {min(bounds)} has no --port-rate")
    return links


def _parse_pair(text: str, option: str) -> tuple[int, str]:
    port, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{option} {text}: write it as PORT=VALUE")
    return _parse_number(port, f"{option} {text}", PORT_MAX), value


def _parse_number(text: str, what: str, largest: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > largest:
        raise typer.BadParameter(f"{what}: {text!r} is not a number in 0..{largest}")
    return int(text)


@app.command()
def cli(
    switch: Annotated[
        str | None,
        typer.Argument(help="Its control socket, or its name in the network that is up.", show_default=False),
    ] = None,
    thrift_port: Annotated[
        int, typer.Option(min=1, max=65535, help="The switch that was started with this --thrift-port.")
    ] = 9090,
) -> None:
    """Look at a running switch and change it, with the commands of simple_switch_CLI.

    Commands come from the terminal or from a file (< commands.txt); `help` lists them. Exits 1 if one was refused.
    """
    from netfold.softswitch.admin.client import ControlClient, ControlError
    from netfold.softswitch.admin.prompt import Prompt, thrift_socket

    try:
        path = thrift_socket(thrift_port) if switch is None else _find_socket(switch)
        with ControlClient(path) as client:
            prompt = Prompt(client)
            prompt.cmdloop()
    except (ControlError, KeyboardInterrupt) as error:
        typer.echo(f"netfold softswitch: {error}", err=True)
        raise typer.Exit(1) from error
    raise typer.Exit(1 if prompt.failed else 0)


def _find_socket(switch: str) -> Path:
    """A control socket, or that of a switch of this name in a network that runs (/run/netfold).
    Raises ControlError."""
    from netfold.softswitch.admin.client import ControlError

    networks = Path(os.environ.get("NETFOLD_RUN_DIR", "/run/netfold"))
    for path in (Path(switch), *sorted(networks.glob(f"*/{Path(switch).name}.sock"))):
        if path.is_socket():
            return path
    raise ControlError(
        f"{switch} is no control socket, and no switch of this name runs in a network of {networks}"
    )


@app.command("install-shim")
def install_shim(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is, or comes, first in PATH.")],
) -> None:
    """Make DIR/simple_switch_grpc this switch, and DIR/simple_switch_CLI its commands.

    What starts BMv2 by that name starts softswitch. They are links to the netfold script; remove them to undo.
    """
    from netfold.softswitch.build.native import default_cache_dir
    from netfold.softswitch.engine.abi import engine_library
    from netfold.softswitch.errors import PipelineError
    from netfold.softswitch.shim import ShimError, install

    try:
        for path in install(folder):
            typer.echo(path)
        # Scripts give a switch seconds to start: its own C is compiled now.
        engine_library(default_cache_dir())
    except (ShimError, PipelineError) as error:
        typer.echo(f"netfold softswitch: {error}", err=True)
        raise typer.Exit(1) from error
