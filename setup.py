# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the C code that workers run into the package, so that their hosts need no compiler. It uses nothing of
Python's (it is loaded with ctypes), so one wheel serves every Python 3. All else is in pyproject.toml."""

from __future__ import annotations

import runpy

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

recipe = runpy.run_path("netfold/traffic/engine/recipe.py")


class PlainLibrary(build_ext):
    """A shared object without Python's suffix."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"


class AnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[
        Extension(
            "netfold.traffic.engine._native",
            sources=[f"netfold/traffic/engine/{name}" for name in recipe["SOURCES"]],
            depends=[f"netfold/traffic/engine/{name}" for name in recipe["HEADERS"]],
            extra_compile_args=[*recipe["FLAGS"], f'-DNF_SOURCES="{recipe["fingerprint"]()}"'],
            extra_link_args=["-pthread"],
            optional=True,  # without a compiler it installs all the same; native.py then compiles at the first use
        )
    ],
    cmdclass={"build_ext": PlainLibrary, "bdist_wheel": AnyPython},
)
