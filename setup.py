# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the C code of workers and simulator into the package, so that their hosts need no compiler, and generates the
stubs of netfold.proto and etcd.proto. The C code uses no Python API (it is loaded with ctypes), so one wheel serves
every Python 3. All else is in pyproject.toml."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

from setuptools import Command, Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

if other := os.environ.get("WHEEL_PLATFORM"):  # what CC compiles for, where that is another machine
    os.environ["_PYTHON_HOST_PLATFORM"] = other

recipe = runpy.run_path("netfold/traffic/engine/recipe.py")
simulator = runpy.run_path("netfold/simulator/recipe.py")


class PlainLibrary(build_ext):
    """A shared object without Python's suffix."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"


class GenerateStubs(Command):
    """`python setup.py stubs`: netfold_pb2.py, its types and netfold_pb2_grpc.py, beside netfold.proto; and those of
    etcd.proto."""

    user_options = []  # noqa: RUF012 (the base class wants a list)

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        protoc = (sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "--pyi_out=.")
        subprocess.run((*protoc, "--grpc_python_out=.", "netfold/protocol/netfold.proto"), check=True)
        subprocess.run((*protoc, "netfold/controller/jobs/etcd.proto"), check=True)


class BuildWithStubs(build_py):
    """The stubs are in no commit, so a wheel and an editable installation generate them first."""

    def run(self) -> None:
        self.run_command("stubs")
        super().run()


class AnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def level(name: str, files: tuple[str, ...]) -> Extension:
    """One of the simulator's two levels; its library is named by its sources (simulator/native.py)."""
    options = simulator["OPTIONS"][name]
    paths = [Path("netfold", name) for name in files]
    library = paths[0].with_name(recipe["library_name"](paths, options)).with_suffix("")
    return Extension(
        ".".join(library.parts),
        sources=[str(path) for path in paths if path.suffix == ".c"],
        depends=[str(path) for path in paths if path.suffix == ".h"],
        extra_compile_args=[*recipe["FLAGS"], *(option for option in options if option != "-lm")],
        libraries=["m"],
        optional=True,
    )


setup(
    ext_modules=[
        *(level(*one) for one in simulator["files"](recipe["CORE"], recipe["HEADERS"]).items()),
        Extension(
            "netfold.traffic.engine._native",
            sources=[f"netfold/traffic/engine/{name}" for name in recipe["SOURCES"]],
            depends=[f"netfold/traffic/engine/{name}" for name in recipe["HEADERS"]],
            extra_compile_args=[
                *recipe["FLAGS"],
                "-fvisibility=hidden",
                f'-DNF_SOURCES="{recipe["fingerprint"]()}"',
            ],
            extra_link_args=["-pthread"],
            optional=True,  # without a compiler it installs all the same; native.py then compiles at the first use
        ),
    ],
    cmdclass={
        "stubs": GenerateStubs,
        "build_py": BuildWithStubs,
        "build_ext": PlainLibrary,
        "bdist_wheel": AnyPython,
    },
)
