# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the C code that workers and the simulator run into the package, so that their hosts need no compiler. It uses
nothing of Python's (it is loaded with ctypes), so one wheel serves every Python 3. All else is in pyproject.toml."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

recipe = runpy.run_path("netfold/traffic/engine/recipe.py")
simulator = runpy.run_path("netfold/simulator/recipe.py")


class PlainLibrary(build_ext):
    """A shared object without Python's suffix."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"


class AnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def level(files: tuple[str, ...]) -> Extension:
    """One of the simulator's two, named by what it is built of (simulator/native.py)."""
    paths = [Path("netfold", name) for name in files]
    library = paths[0].with_name(recipe["library_name"](paths)).with_suffix("")
    return Extension(
        ".".join(library.parts),
        sources=[str(path) for path in paths if path.suffix == ".c"],
        depends=[str(path) for path in paths if path.suffix == ".h"],
        extra_compile_args=[*recipe["FLAGS"]],
        libraries=["m"],
        optional=True,
    )


setup(
    ext_modules=[
        *map(level, simulator["files"](recipe["HEADERS"]).values()),
        Extension(
            "netfold.traffic.engine._native",
            sources=[f"netfold/traffic/engine/{name}" for name in recipe["SOURCES"]],
            depends=[f"netfold/traffic/engine/{name}" for name in recipe["HEADERS"]],
            extra_compile_args=[*recipe["FLAGS"], f'-DNF_SOURCES="{recipe["fingerprint"]()}"'],
            extra_link_args=["-pthread"],
            optional=True,  # without a compiler it installs all the same; native.py then compiles at the first use
        ),
    ],
    cmdclass={"build_ext": PlainLibrary, "bdist_wheel": AnyPython},
)
