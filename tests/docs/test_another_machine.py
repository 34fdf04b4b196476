# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The clusters of docs/how-to/another-machine.md: Pacemaker's own scheduler fences a lost machine before it starts the
controller elsewhere, and the manifests of Kubernetes fit the controller."""

from __future__ import annotations

import http.server
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from netfold.testbed.controller_command import app as controller_app
from tests.docs.blocks import blocks
from tests.house.imports import REPOSITORY

BLOCKS = list(blocks(REPOSITORY / "docs/how-to/another-machine.md"))
TOOLS = ("pcs", "crm_verify", "crm_simulate", "cibadmin")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
AGENTS = "/usr/lib/ocf/resource.d/heartbeat/Filesystem"
FORCED = re.compile(r"stonith create|systemd:|ocf:linbit:")
"""Agents that pcs cannot ask: those of fences and of DRBD have packages of their own, and systemd does not run here."""
GROUP = ("store", "address", "controller")

needs_pacemaker = pytest.mark.skipif(
    bool(MISSING) or not Path(AGENTS).exists(),
    reason=f"SKIPPED: needs pcs, pacemaker-cli-utils and resource-agents (not here: {', '.join(MISSING) or AGENTS})",
)


def _commands(start: str) -> list[str]:
    """The commands of the page that begin so."""
    return [line for block in BLOCKS for line in block.text.splitlines() if line.startswith(start)]


def _run(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def _simulate(folder: Path, options: str) -> list[str]:
    """Returns Pacemaker's actions, in order; `after.xml` is the cluster afterwards."""
    output = _run(f"crm_simulate --quorum 1 --simulate --save-output after.xml {options}", folder)
    return re.findall(r"^  \* (?:Resource action: )?(\S.*?)\s*$", output, re.MULTILINE)


def _places(actions: list[str], *expected: str) -> list[int]:
    found = [[" ".join(a.split()) for a in actions].index(e) for e in expected]
    assert found == sorted(found), actions
    return found


@pytest.mark.slow
@needs_pacemaker
def test_pacemaker_fences_a_lost_machine_before_it_starts_the_controller_elsewhere(tmp_path):
    _run("cibadmin --empty > cluster.xml", tmp_path)
    for command in _commands("pcs -f cluster.xml"):
        if command.startswith("pcs -f cluster.xml resource create disk "):
            _run("cp cluster.xml shared.xml", tmp_path)  # as with a shared disk, which needs no promotion
        _run(command + (" --force" if FORCED.search(command) else ""), tmp_path)
    for file in ("cluster.xml", "shared.xml"):
        _run(f"crm_verify -V --xml-file {file}", tmp_path)

    started = _simulate(tmp_path, "--xml-file shared.xml --node-up ctl1 --node-up ctl2")
    _places(started, *(f"{part} start on ctl1" for part in GROUP))
    _run("mv after.xml running.xml", tmp_path)
    lost = _simulate(tmp_path, "--xml-file running.xml --node-fail ctl1")
    _places(lost, "Fencing ctl1 (reboot)", *(f"{part} start on ctl2" for part in GROUP))
    for failed in ("controller_monitor_5000", "store_monitor_20000"):
        moved = _simulate(tmp_path, f"--xml-file running.xml --op-inject {failed}@ctl1=7")
        stops = [f"{part} stop on ctl1" for part in reversed(GROUP)]
        _places(moved, *stops, *(f"{part} start on ctl2" for part in GROUP))


def _manifests() -> dict[str, Any]:
    (text,) = [b.text for b in BLOCKS if b.value == "netfold-controller.yaml"]
    return {d["kind"]: d for d in yaml.safe_load_all(text)}


def test_one_pod_has_the_volume_and_the_service_finds_it():
    service, stateful = _manifests()["Service"]["spec"], _manifests()["StatefulSet"]["spec"]
    pod = stateful["template"]
    (container,) = pod["spec"]["containers"]
    (claim,) = stateful["volumeClaimTemplates"]
    assert (stateful["replicas"], claim["spec"]["accessModes"]) == (1, ["ReadWriteOncePod"])
    assert service["selector"] == stateful["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert service["ports"] == [{"port": container["ports"][0]["containerPort"]}]
    names = {v["name"] for v in pod["spec"]["volumes"]} | {claim["metadata"]["name"]}
    assert {m["name"] for m in container["volumeMounts"]} == names
    (settings,) = pod["spec"]["volumes"]
    sources = [next(iter(s.values()))["name"] for s in settings["projected"]["sources"]]
    created = [re.findall(r"(?:configmap|generic) (\S+)", c)[0] for c in _commands("kubectl create")]
    assert sources == created


def test_the_controller_takes_the_options_of_the_pod_and_finds_its_files_and_its_volume():
    (container,) = _manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    program, *words = container["command"]
    command = get_command(controller_app)
    assert (program, words[:2]) == ("netfold", ["controller", "run"])
    context = command.make_context("run", [*words[2:], *container["args"]])
    store, settings = (m["mountPath"] for m in container["volumeMounts"])
    files = {str(v) for v in context.params.values() if str(v).startswith("/")}
    created = {f"{settings}/{f}" for b in BLOCKS for f in re.findall(r"--from-file=(\S+)", b.text)}
    assert files == created | {f"{store}/fabric.db"}


@pytest.mark.parametrize("status", [200, 503])
def test_the_probes_of_the_pod_succeed_if_the_controller_leads(status: int):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    (container,) = _manifests()["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    (port,) = [a.rpartition("=")[2] for a in container["args"] if a.startswith("--metrics-port")]
    probes = [container[f"{kind}Probe"]["exec"]["command"] for kind in ("startup", "readiness", "liveness")]
    assert probes == [probes[0]] * 3
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        python, *words = [w.replace(f":{port}/", f":{server.server_port}/") for w in probes[0]]
        done = subprocess.run([sys.executable, *words], capture_output=True, timeout=120, check=False)
        server.shutdown()
    assert (python, done.returncode == 0) == ("python3", status == 200)
