# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of `Containerfile` in a folder, by debootstrap and chroot: a trial where no container engine and no
registry of images is. Its CMD runs there too, as `sealed` root (environments.py), as in a default container.

    python -m tests.testbed.containerfile FOLDER [COMMAND...]    # as root; COMMAND in place of CMD
    python -m tests.testbed.containerfile --devcontainer FOLDER [COMMAND...]

`--devcontainer` runs the postCreateCommand of `.devcontainer` first, and both as root with the capabilities that its
runArgs add.

Not in it: layers, and the engine's own mounts but /proc, /sys, /dev and /tmp.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.house.imports import REPOSITORY
from tests.testbed.environments import Environment, bounded

RELEASES = {"debian:12": "bookworm"}
MACHINE = (
    "etc/apt/sources.list",
    "etc/apt/sources.list.d",
    "etc/apt/apt.conf.d",
    "etc/pip.conf",
    "etc/resolv.conf",
)
"""How this machine reaches its package sources."""
CERTIFICATES = "etc/certificates-of-the-machine.crt"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Step:
    """An instruction of a Containerfile, in one line."""

    instruction: str
    argument: str


def steps(text: str) -> Iterator[Step]:
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    for line in filter(None, map(str.strip, joined.splitlines())):
        instruction, _, argument = line.partition(" ")
        yield Step(instruction, " ".join(argument.split()))


class Image:
    """The tree of an image below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.working_directory = Path("/")
        self.command: list[str] = []

    def apply(self, step: Step) -> None:
        match step.instruction:
            case "FROM":
                self._bootstrap(RELEASES[step.argument])
            case "RUN":
                self.run(["sh", "-c", step.argument])
            case "WORKDIR":
                self.working_directory = Path(step.argument)
                self._here.mkdir(parents=True, exist_ok=True)
            case "COPY" if step.argument == ". .":
                # With its history, as the engine copies it: tests ask git for the project's files.
                checkout = self.folder / "checkout"
                shutil.rmtree(checkout, ignore_errors=True)
                subprocess.run(["git", "clone", "-q", "--no-local", REPOSITORY, checkout], check=True)
                shutil.rmtree(self._here)
                checkout.rename(self._here)
            case "CMD":
                self.command = json.loads(step.argument)
            case _:
                raise ValueError(f"{step.instruction} {step.argument}: not known here")

    @property
    def _here(self) -> Path:
        return self.folder / self.working_directory.relative_to("/")

    def run(self, command: Sequence[str], prefix: Sequence[str] = ()) -> None:
        """In the image, with mounts that end with the command. Raises subprocess.CalledProcessError."""
        mounts = f"mount -t proc proc {self.folder}/proc && mount --rbind /sys {self.folder}/sys && "
        mounts += f"mount --rbind /dev {self.folder}/dev && mount -t tmpfs tmpfs {self.folder}/tmp && "
        script = f'{mounts} exec chroot {self.folder} "$@"'
        inside = ["env", "-C", str(self.working_directory), *prefix, *command]
        environment = {"PATH": PATH, "HOME": "/root", "PIP_CERT": f"/{CERTIFICATES}"}
        subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *inside],
            env=environment,
            check=True,
        )

    def _bootstrap(self, release: str) -> None:
        if not (self.folder / "etc/debian_version").exists():
            subprocess.run(["debootstrap", "--variant=minbase", release, self.folder], check=True)
        for name in MACHINE:
            source, target = Path("/") / name, self.folder / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.exists():
                shutil.copyfile(source, target)
        shutil.copyfile("/etc/ssl/certs/ca-certificates.crt", self.folder / CERTIFICATES)


@dataclass(frozen=True)
class DevContainer:
    """The additions of `.devcontainer/devcontainer.json` to the image."""

    command: tuple[str, ...]
    capabilities: tuple[str, ...]

    @classmethod
    def read(cls) -> DevContainer:
        settings = json.loads((REPOSITORY / ".devcontainer/devcontainer.json").read_text())
        flag = "--cap-add="
        added = [a.removeprefix(flag).lower() for a in settings["runArgs"] if a.startswith(flag)]
        return cls(tuple(settings["postCreateCommand"].split()), tuple(added))


def main(arguments: Sequence[str]) -> None:
    is_devcontainer = arguments[0] == "--devcontainer"
    folder, *words = arguments[1:] if is_devcontainer else arguments
    image = Image(Path(folder).resolve())
    for step in steps((REPOSITORY / "Containerfile").read_text()):
        print(f"== {step.instruction} {step.argument}", flush=True)  # noqa: T201
        image.apply(step)
    command = words or image.command
    prefix = [".venv/bin/python", "tests/testbed/environments.py", Environment.SEALED]
    if is_devcontainer:
        container = DevContainer.read()
        prefix = bounded(container.capabilities)
        print("==", *container.command, flush=True)  # noqa: T201
        image.run(container.command, prefix)
    print(f"== as root of a {'dev' if is_devcontainer else 'default '}container:", *command, flush=True)  # noqa: T201
    image.run(command, prefix)


if __name__ == "__main__":
    main(sys.argv[1:])
