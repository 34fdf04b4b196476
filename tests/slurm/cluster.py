# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster whose nodes are the hosts of an emulated fabric, and netfold's controller for its users. No systemd:
each daemon is a process of the test."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netfold.controller.operator.token_command import TOKEN_BYTES
from netfold.controller.service.identities import Identity, Role, identity_line
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import Connection
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.targets import installed_command
from netfold.testbed.step_timeouts import step_timeouts_of
from netfold.topologies.spec import load_fabric
from tests.docs.blocks import blocks
from tests.house.imports import REPOSITORY
from tests.slurm.packages import ROOT
from tests.slurm.plugin import compile_plugin
from tests.traffic.tls import Tls, make_certificate

LANES = 64
FIRST_GRPC_PORT = 20200
SLURMCTLD_PORT, SLURMD_PORT, CONTROLLER_PORT = 16817, 16818, 9600
NAME = "controller.test"
USER = "daemon"
GUIDE = REPOSITORY / "docs/how-to/slurm.md"
"""Its script is TaskProlog."""
OPERATORS_TOKEN = "t" * TOKEN_BYTES
READY_S = 90.0
POLL_S = 0.1

CONFIGURATION = """\
ClusterName=netfold
SlurmctldHost={machine}({address})
SlurmctldPort={slurmctld_port}
SlurmdPort={slurmd_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
PluginDir={plugins}
PlugStackConfig={folder}/plugstack.conf
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,bf_interval=5
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=300
KillWait=5
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MinJobAge=300
PrologSlurmctld={folder}/prolog
EpilogSlurmctld={folder}/epilog
TaskProlog={folder}/task-prolog
"""


def wait_until(what: str, holds: Callable[[], bool], timeout_s: float = READY_S) -> None:
    """Poll: Slurm has no notifications."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(POLL_S)


def python_user() -> str:
    """A user without rights, if that user can run this Python; else root."""
    command = [sys.executable, "-c", "import netfold"]
    options: dict[str, Any] = {"user": USER, "group": pwd.getpwnam(USER).pw_gid, "extra_groups": []}
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=READY_S, cwd="/", **options)
    except PermissionError:
        return "root"
    return USER if done.returncode == 0 else "root"


def as_user(name: str) -> tuple[str, ...]:
    """Words before a command of a user."""
    found = pwd.getpwnam(name)
    return ("setpriv", f"--reuid={found.pw_uid}", f"--regid={found.pw_gid}", "--clear-groups")


@dataclass
class Cluster:
    """`folder`: of all files, which each user may enter. `ranks`: of the files for TaskProlog. `user`: whose jobs
    run Python."""

    folder: Path
    net: EmulatedNetwork
    stub: Any
    head: str
    user: str = field(default_factory=python_user)
    daemons: dict[str, subprocess.Popen[Any]] = field(default_factory=dict)

    @property
    def ranks(self) -> Path:
        return self.folder / "ranks"

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment of Slurm's commands and daemons."""
        libraries = next(ROOT.glob("usr/lib/*/slurm-wlm"))
        return {
            "PATH": f"{self.folder}/bin:{ROOT}/usr/bin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": f"{libraries}:{libraries.parent}",
            "SLURM_CONF": f"{self.folder}/slurm.conf",
            "HOME": "/tmp",
        }

    def run(self, *command: object, timeout_s: float = READY_S, check: bool = True) -> str:
        """A command at the first node."""
        done = self.net.host(self.head).run(
            command, timeout_s, env=self.environment, cwd=self.folder, stderr=subprocess.STDOUT
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}"
        return str(done.stdout)

    def start(self, name: str, host: str, *command: object) -> None:
        with (self.folder / f"{name}.out").open("a") as log:
            self.daemons[name] = self.net.host(host).popen(
                command,
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
            )

    def start_slurmctld(self) -> None:
        """Named as Slurm's developers name it: as slurmctld-wlm it would run no prologs, and say nothing."""
        self.start("slurmctld", self.head, f"{self.folder}/bin/slurmctld", "-D")

    def restart_slurmctld(self) -> None:
        """End it, and start it again. One that is killed may forget that a job is over, and waits until the nodes
        register again."""
        os.kill(int((self.folder / "slurmctld.pid").read_text()), signal.SIGTERM)
        self.daemons["slurmctld"].wait(READY_S)
        self.start_slurmctld()

    def idle_nodes(self) -> int:
        shown = self.run("sinfo", "--noheader", "--Node", "--format=%T", check=False).split()
        return shown.count("idle")

    def jobs(self) -> list[str]:
        """The numbers of jobs that wait, run or complete."""
        return self.run("squeue", "--noheader", "--format=%A").split()

    def netfold_jobs(self, *, every: bool = False) -> dict[str, pb.Job]:
        answer = self.stub.ListJobs(pb.ListJobsRequest(all=every), timeout=READY_S)
        return {job.name: job for job in answer.jobs}

    def slots_in_use(self) -> int:
        status = self.stub.GetStatus(pb.StatusRequest(fresh=True), timeout=READY_S)
        return sum(switch.slots_in_use for switch in status.switches)


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Two leaves with two nodes each below a spine; slurmctld is at the first node."""
    folder = Path(tempfile.mkdtemp(prefix="netfold-slurm-"))
    folder.chmod(0o755)
    spec = folder / "fabric.yaml"
    spec.write_text(
        "name: slurm\ngenerate:\n  leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 2, parameter_servers: 0, "
        "rate: 400, fabric_rate: 800}\n"
    )
    try:
        with contextlib.ExitStack() as stack:
            net = stack.enter_context(
                EmulatedNetwork(
                    load_fabric(spec), target="softswitch", name="slurm", first_grpc_port=FIRST_GRPC_PORT
                )
            )
            tls = make_certificate(folder, NAME)
            tls.certificate.chmod(0o644)
            port = _start_controller(stack, net, folder, tls)
            where = Connection(f"localhost:{port}", tls.certificate.read_bytes(), OPERATORS_TOKEN, NAME)
            stub = rpc.ControllerStub(stack.enter_context(open_channel(where, READY_S, wait_for_ready=True)))
            cluster = Cluster(folder, net, stub, next(iter(net.addressing.hosts)))
            stack.callback(_end, cluster)
            _write_files(cluster, tls)
            _start_daemons(cluster, port)
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start_controller(stack: contextlib.ExitStack, net: EmulatedNetwork, folder: Path, tls: Tls) -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port: int = free.getsockname()[1]
    (folder / "identities").write_text(
        identity_line(Identity("slurm", "site", Role.OPERATOR), OPERATORS_TOKEN)
        + "\nlimits site priority=5\nlimits vision priority=5\n"
    )
    (folder / "identities").chmod(0o600)
    (folder / "operator.token").write_text(f"{OPERATORS_TOKEN}\n")
    (folder / "operator.token").chmod(0o600)
    with (folder / "controller.log").open("w") as log:
        process = net.popen(
            [
                *(installed_command("netfold"), "controller", "run", folder / "fabric.yaml"),
                *("--listen", f"localhost:{port}", "--tls-cert", tls.certificate, "--tls-key", tls.key),
                *("--identities", folder / "identities", "--state", folder / "controller.db"),
                *("--lanes", str(LANES), "--form", net.target.program_form, "--host-rtt-ms", "20"),
                *("--watchdog-timeout", "0"),  # the machine may be busy with something else
                *("--first-grpc-port", str(FIRST_GRPC_PORT), *step_timeouts_of("softswitch").controller),
            ],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    stack.callback(process.wait, READY_S)
    stack.callback(process.terminate)
    return port


def _write_files(cluster: Cluster, tls: Tls) -> None:
    folder, addresses = cluster.folder, {h: str(a.ip) for h, a in cluster.net.addressing.hosts.items()}
    for part, mode in (("bin", 0o755), ("state", 0o700), ("ranks", 0o711)):
        (folder / part).mkdir(mode=mode)
    for daemon in ("slurmctld", "slurmd", "slurmstepd"):
        (folder / "bin" / daemon).symlink_to(ROOT / f"usr/sbin/{daemon}-wlm")
    plugins = next(ROOT.glob("usr/lib/*/slurm-wlm"))
    text = CONFIGURATION.format(
        machine=socket.gethostname(),
        address=addresses[cluster.head],
        folder=folder,
        plugins=plugins,
        slurmctld_port=SLURMCTLD_PORT,
        slurmd_port=SLURMD_PORT,
    )
    for host, address in addresses.items():
        text += (
            f"NodeName={host} NodeAddr={address} NodeHostname={socket.gethostname()} CPUs=4 State=UNKNOWN\n"
        )
        (folder / f"spool.{host}").mkdir()
    text += f"PartitionName=all Nodes={','.join(addresses)} Default=YES MaxTime=60 DefaultTime=10 OverSubscribe=NO\n"
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # no cgroups in the hosts' namespaces
    compile_plugin(folder / "spank_netfold.so", ROOT / "usr/include")
    (folder / "plugstack.conf").write_text(f"required {folder}/spank_netfold.so\n")
    controller = f"{addresses[cluster.head]}:{CONTROLLER_PORT}"
    options = (
        f"--controller {controller} --tls-ca {tls.certificate} --tls-server-name {NAME} "
        f"--token-file {folder}/operator.token --folder {folder}/ranks"
    )
    environment = " ".join(f"{name}='{value}'" for name, value in cluster.environment.items())
    for command, more in (("prolog", "--within 60s"), ("epilog", ""), ("sweep", "")):
        _script(
            folder / command,
            f"exec env {environment} {installed_command('netfold')} controller slurm {command} {options} {more} "
            f">> {folder}/{command}.log 2>&1",
        )
    (task_prolog,) = (block.text for block in blocks(GUIDE) if block.value == "task-prolog")
    (folder / "task-prolog").write_text(task_prolog.replace("/shared/netfold", f"{folder}/ranks"))
    (folder / "task-prolog").chmod(0o755)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _start_daemons(cluster: Cluster, port: int) -> None:
    folder, head = cluster.folder, cluster.head
    cluster.start(
        *("munged", head, ROOT / "usr/sbin/munged", "--foreground", "--force"),
        *(f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket"),
        *(
            f"--pid-file={folder}/munge.pid",
            f"--seed-file={folder}/munge.seed",
            f"--log-file={folder}/munge.log",
        ),
    )
    wait_until("munged listens", (folder / "munge.socket").exists)
    relay = [sys.executable, Path(__file__).with_name("relay.py")]
    inner = f"unix:{folder}/relay.socket"
    cluster.daemons["relay outside"] = cluster.net.popen([*relay, inner, f"localhost:{port}"])
    address = str(cluster.net.addressing.hosts[head].ip)
    cluster.start("relay", head, *relay, f"{address}:{CONTROLLER_PORT}", inner)
    cluster.start_slurmctld()
    for host in cluster.net.addressing.hosts:
        cluster.start(
            f"slurmd.{host}", host, f"{folder}/bin/slurmd", "-D", "-N", host, "-d", f"{folder}/bin/slurmstepd"
        )
    nodes = len(cluster.net.addressing.hosts)
    wait_until("all nodes are idle", lambda: cluster.idle_nodes() == nodes)
    cluster.stub.GetStatus(pb.StatusRequest(), timeout=READY_S)
    wait_until(
        "all switches are ready",
        lambda: all(s.ready for s in cluster.stub.GetStatus(pb.StatusRequest(), timeout=READY_S).switches),
    )


def _end(cluster: Cluster) -> None:
    for process in reversed(cluster.daemons.values()):
        process.terminate()
    for process in cluster.daemons.values():
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
