# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Declares the environment variables that netfold reads. docs/reference/variables.md is made of this file."""

from __future__ import annotations

from enum import StrEnum


class Variable(StrEnum):
    """An environment variable: its name, the form of its value, and what it sets. A variable without `reader` is set by
    netfold for its own child processes, and no user sets it."""

    form: str
    meaning: str
    reader: str

    def __new__(cls, name: str, reader: str, form: str, meaning: str) -> Variable:
        variable = str.__new__(cls, name)
        variable._value_ = name
        variable.reader, variable.form, variable.meaning = reader, form, meaning
        return variable

    CONTROLLER = (
        "NETFOLD_CONTROLLER",
        "commands, workers",
        "`unix:PATH` or `HOST:PORT`, or several with commas between",
        "addresses of the controller and its standbys; default: the default unix socket",
    )
    TLS_CA = (
        "NETFOLD_TLS_CA",
        "commands, workers",
        "path",
        "certificate (PEM) that the controller's is checked against; default: the system's",
    )
    TLS_SERVER_NAME = (
        "NETFOLD_TLS_SERVER_NAME",
        "commands, workers",
        "name",
        "name in the controller's certificate; default: the host of the address",
    )
    TOKEN_FILE = ("NETFOLD_TOKEN_FILE", "commands, workers", "path", "file with the token for the controller")
    JOB_TOKEN = (
        "NETFOLD_JOB_TOKEN",
        "workers",
        "token",
        "token of the members of one job, in place of that of `NETFOLD_TOKEN_FILE`",
    )
    HOST = (
        "NETFOLD_HOST",
        "workers",
        "name",
        "name of this host in the fabric; default: the host that has an address of this machine",
    )
    JOB = ("NETFOLD_JOB", "PyTorch, MPI", "name", "name of the job; default: a random one")
    NUMERICS = ("NETFOLD_NUMERICS", "PyTorch, MPI", "mode", "numerics, as in a job file; default: `auto`")
    SCHEME = ("NETFOLD_SCHEME", "PyTorch, MPI", "scheme", "planner, as in a job file")
    RATE = ("NETFOLD_RATE", "PyTorch, MPI", "number", "maximum rate of each host in the fabric's unit")
    GROUP_RATE = ("NETFOLD_GROUP_RATE", "PyTorch", "number", "rate of the jobs of groups of some ranks")
    FALLBACK = (
        "NETFOLD_FALLBACK",
        "PyTorch",
        "`fail` or `gloo`",
        "what all ranks do when the job of their group does not start; default: `fail`",
    )
    FALLBACK_S = (
        "NETFOLD_FALLBACK_S",
        "PyTorch",
        "seconds",
        "time for the start of the job before all ranks go by Gloo; default: 30",
    )
    PRIORITY = ("NETFOLD_PRIORITY", "PyTorch, MPI", "-100 to 100", "priority in the queue; default: 0")
    LEASE_MS = (
        "NETFOLD_LEASE_MS",
        "PyTorch, MPI",
        "ms",
        "time without a heartbeat after which a rank is lost",
    )
    QUEUE = (
        "NETFOLD_QUEUE",
        "PyTorch, MPI",
        "`1` or `0`",
        "wait for capacity, or fail at once; default: `1`",
    )
    REPORT = (
        "NETFOLD_REPORT",
        "PyTorch",
        "`1` or path",
        "write the report of the group to stderr or to a file",
    )
    DUMP_DIR = (
        "NETFOLD_DUMP_DIR",
        "workers",
        "path",
        "folder for the last calls of a program, written when a call times out and at SIGUSR1",
    )
    MPI = ("NETFOLD_MPI", "MPI", "`0`", "leave everything to the MPI library")
    MPI_REQUIRED = (
        "NETFOLD_MPI_REQUIRED",
        "MPI",
        "`1`",
        "end the program if the network cannot be used; default: print why, and continue without it",
    )
    MPI_ORDERED = ("NETFOLD_MPI_ORDERED", "MPI", "`1`", "promise that all hosts make all calls in one order")
    MPI_PYTHON = (
        "NETFOLD_MPI_PYTHON",
        "MPI",
        "path",
        "Python that runs the agent of a host; default: the one that compiled the library",
    )
    NAME = (
        "NETFOLD_NAME",
        "networks, commands",
        "1 to 6 lower-case letters",
        "name of the network; default: `nf`",
    )
    NETWORK_MODE = (
        "NETFOLD_NETWORK_MODE",
        "networks",
        "`auto`, `mininet`, `rootless` or `userland`",
        "default of `--network`",
    )
    RUN_DIR = (
        "NETFOLD_RUN_DIR",
        "networks, commands",
        "path",
        "folder of the sockets and files of running networks and controllers",
    )
    P4RT_SHELL = (
        "NETFOLD_P4RT_SHELL",
        "`network shell`",
        "path",
        "virtual environment of p4runtime-shell; default: the checkout's",
    )
    NETWORK = ("NETFOLD_NETWORK", "", "identifier", "run of the network that a process belongs to")
    NAMESPACE = ("NETFOLD_NAMESPACE", "", "identifier", "namespace that a process was moved into")
    LINK = ("NETFOLD_LINK", "", "addresses", "link of a host in a network of processes")
    METRICS_DESCRIPTOR = (
        "NETFOLD_METRICS_DESCRIPTOR",
        "",
        "number",
        "listening socket of the metrics endpoint",
    )
    PAGE_SOCKET = ("NETFOLD_PAGE_SOCKET", "", "number", "listening socket of the page")
