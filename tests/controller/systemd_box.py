# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A systemd that is the first process of namespaces of its own, with root, network and control group of its own. The
machine's files are read-only in there, and none of its services starts. All of it ends with this process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.house.imports import REPOSITORY

SYSTEMD = next(
    (p for p in map(Path, ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")) if p.exists()), None
)
START_S = 60.0
COMMAND_S = 120.0

UNITS = {
    "multi-user.target": "[Unit]\nDescription=The trial\nRequires=basic.target\nAfter=basic.target\n",
    "basic.target": "[Unit]\nDescription=Base\nRequires=sysinit.target\nAfter=sysinit.target\n",
    "sysinit.target": "[Unit]\nDescription=Start of the system\nWants=systemd-journald.service\n",
    "shutdown.target": "[Unit]\nDescription=End of the system\nDefaultDependencies=no\n",
    "network-online.target": "[Unit]\nDescription=Network\n",
}
"""In place of the distribution's, which start its services."""
LINKED_UNITS = ("systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket")

ENVIRONMENT = {
    "PATH": "/opt/netfold/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "container": "trial",  # systemd leaves clock, kernel modules and settings alone
    "LANG": "C.UTF-8",
    "SYSTEMD_UNIT_PATH": "/etc/systemd/system:/etc/trial",
    "SYSTEMD_GENERATOR_PATH": "",
    "SYSTEMD_ENVIRONMENT_GENERATOR_PATH": "",
}

IN_CONTROL_GROUP = """
mount --make-rprivate /
mount -t tmpfs -o mode=755 trial "$ROOT"
mkdir "$ROOT/groups"
mount -t cgroup2 trial "$ROOT/groups"
group="$ROOT/groups$GROUP"
mkdir "$group"
echo $$ > "$group/cgroup.procs"
exec unshare --cgroup --fork --kill-child --pid sh -euc "$BOOT"
"""
"""The file system of control groups is mounted in here: the machine may have none of version 2."""

BOOT = """
umount "$ROOT/groups"
rmdir "$ROOT/groups"
cd "$ROOT"
mkdir -p dev etc/trial etc/systemd/system opt/netfold/bin proc root run sys tmp usr var/lib var/log/journal
for folder in bin lib lib32 lib64 libx32 sbin; do
  if [ -L "/$folder" ]; then cp -P "/$folder" .; fi
done
read_only() { mkdir -p "$2"; mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"; }
read_only /usr usr
for folder in ssl alternatives; do
  if [ -d "/etc/$folder" ]; then read_only "/etc/$folder" "etc/$folder"; fi
done
cp /etc/ld.so.cache etc
read_only "$SOURCE" opt/netfold/source
read_only "$PACKAGES" opt/netfold/packages
read_only "$PYTHON" opt/netfold/python
cp "$FILES/etc/"* etc
cp -P "$FILES/trial/"* etc/trial
cp "$FILES/bin/"* opt/netfold/bin
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=755 dev dev
for device in full null random tty urandom zero; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 shm dev/shm
chmod 1777 tmp
ip link set lo up
mkdir old
pivot_root . old
cd /
umount -l old
rmdir old
mount --make-rshared /  # systemd mounts credentials elsewhere, and expects this of what starts a container
echo booted
exec env -i $VARIABLES "$SYSTEMD" --unit=multi-user.target
"""

REMOVE = """
mount --make-rprivate /
mount -t cgroup2 trial "$ROOT" || exit 0
cd "$ROOT$GROUP" 2>/dev/null || exit 0
echo 1 > cgroup.kill 2>/dev/null || true
for attempt in $(seq 100); do
  find . -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true
  if rmdir "$ROOT$GROUP" 2>/dev/null; then exit 0; fi
  sleep 0.1
done
echo "$GROUP is not empty"
exit 1
"""

COMMANDS = {"netfold": "netfold.cli", "softswitch": "softswitch.cli"}
COMMAND = """#!/bin/sh
export LD_LIBRARY_PATH=/opt/netfold/python/lib
export PYTHONPATH=/opt/netfold/source:/opt/netfold/source/softswitch:/opt/netfold/packages
exec /opt/netfold/python/bin/python3 -P -c 'from {module} import main; main()' "$@"
"""
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\nsystemd-journal:x:101:\nnogroup:x:65534:\n",
    "shadow": "root:*:19000:0:99999:7:::\n",
    "gshadow": "root:*::\n",
    "login.defs": "SYS_UID_MIN 100\nSYS_UID_MAX 999\nSYS_GID_MIN 100\nSYS_GID_MAX 999\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
    "hostname": "trial\n",
    "machine-id": "",
    "os-release": "ID=trial\n",
}


NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")


class BoxError(Exception):
    """systemd cannot be started in namespaces here."""


SUDO = """#!/bin/sh
[ "$1" = -u ] || exec "$@"
user=$2; shift 2
exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@"
"""
"""The box has root's rights and no sudo."""


class SystemdBox:
    """`pid`: of the first process, as numbered outside."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def run(self, *command: str) -> str:
        """Output and errors of a command. Raises AssertionError if it fails."""
        code, output = self.result(*command)
        assert code == 0, f"{' '.join(command)}: exit code {code}\n{output}"
        return output

    def shell(self, script: str) -> str:
        return self.run("bash", "-euc", script)

    def result(self, *command: str) -> tuple[int, str]:
        """Exit code; output and errors."""
        done = subprocess.run(
            [
                "nsenter",
                f"--target={self.pid}",
                *NAMESPACES,
                "--root",
                "env",
                "-i",
                "-C",
                "/tmp",
                *_variables(),
                *command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        return done.returncode, done.stdout

    def write(self, path: str, text: str) -> None:
        file = Path(f"/proc/{self.pid}/root{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def show(self, unit: str, name: str) -> str:
        """A property of a unit, as in systemctl show."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()


def _variables() -> list[str]:
    return [f"{name}={value}" for name, value in ENVIRONMENT.items()]


@contextmanager
def systemd_box() -> Iterator[SystemdBox]:
    """Raises BoxError."""
    if SYSTEMD is None:
        raise BoxError("systemd is not installed")
    with tempfile.TemporaryDirectory(prefix="netfold-systemd-") as folder:
        files, root = Path(folder, "files"), Path(folder, "root")
        _write_files(files)
        root.mkdir()
        environment = {
            **os.environ,
            "ROOT": str(root),
            "FILES": str(files),
            "GROUP": _group(),
            "BOOT": BOOT,
            "SYSTEMD": str(SYSTEMD),
            "VARIABLES": " ".join(_variables()),
            "SOURCE": str(REPOSITORY),
            "PACKAGES": sysconfig.get_path("purelib"),
            "PYTHON": sys.base_prefix,
        }
        spaces = ["unshare", "--mount", "--uts", "--ipc", "--net", "sh", "-euc"]
        with Path(folder, "output").open("wb") as output:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *spaces, IN_CONTROL_GROUP],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                yield _started(process, Path(folder, "output"))
            finally:
                process.kill()  # its child ends with it, and all in there with that
                process.wait()
                subprocess.run(["unshare", "--mount", "sh", "-euc", REMOVE], env=environment, check=True)


def _group() -> str:
    """The path of the control group to make, below that of this process."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    return f"{own.rstrip('/')}/netfold-systemd-{os.getpid()}"


def _write_files(files: Path) -> None:
    for folder in ("etc", "trial", "bin"):
        (files / folder).mkdir(parents=True)
    for name, text in ETC.items():
        (files / "etc" / name).write_text(text)
    for name, text in UNITS.items():
        (files / "trial" / name).write_text(text)
    for name in LINKED_UNITS:
        (files / "trial" / name).symlink_to(f"/usr/lib/systemd/system/{name}")
    scripts = {name: COMMAND.format(module=module) for name, module in COMMANDS.items()}
    for name, text in {**scripts, "sudo": SUDO}.items():
        (files / "bin" / name).write_text(text)
        (files / "bin" / name).chmod(0o755)


def _started(process: subprocess.Popen[bytes], output: Path) -> SystemdBox:
    """The box, once its systemd has started the target. Raises BoxError where there can be none, AssertionError where
    there is one that does not get that far."""
    end = time.monotonic() + START_S
    state = ""
    while time.monotonic() < end:
        if process.poll() is not None:
            raise BoxError(f"no systemd in namespaces: {output.read_text().strip() or 'it ended'}")
        if b"booted" in output.read_bytes():
            with contextlib.suppress(StopIteration):
                box = SystemdBox(_child(process.pid))
                _, state = box.result("systemctl", "is-system-running")
                if state.strip() in ("running", "degraded"):
                    return box
        time.sleep(0.1)  # its bus, which has events, is not there yet
    raise AssertionError(f"systemd did not start within {START_S:g} s: {state}{output.read_text()}")


def _child(parent: int) -> int:
    found = subprocess.run(
        ["ps", "--ppid", str(parent), "-o", "pid="], capture_output=True, text=True, check=False
    )
    return next(int(line) for line in found.stdout.split())
