# Everything from nothing: `make demo` and `make test` need Python 3.11+, a JDK 17+, Maven and make.
# `make` alone prints this help.

SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMPS := .venv/.stamps
TOOLS := .tools/bin
PROTOS := $(wildcard protos/stairwise/v1/*.proto)
WITH_JVM := jvm and not long and not cluster
WITHOUT_JVM := not jvm and not long and not cluster
WITHOUT_SPARK := $(wildcard $(addprefix tests/integration/test_,results*.py lookup*.py standing*.py subscribing*.py publish*.py starts.py up.py secured*.py horizons.py ingest*.py idle.py full*.py))
WITH_SPARK := $(filter-out $(WITHOUT_SPARK),$(wildcard tests/integration/test_*.py tests/e2e/test_*.py))
export HYPOTHESIS_PROFILE ?= default
unexport PYTHONDONTWRITEBYTECODE # processes come and go by the hundred: none compiles what another one has

.DEFAULT_GOAL := help
.PHONY: help prerequisites setup tracing tools demo test test-with-jvm test-without-spark test-without-jvm test-fast test-long test-chart test-cluster kubernetes images dashboards screenshots lint typecheck layers audit check format bench protos lock clean

help: ## this help
	@echo "Stairwise: thousands of windowed continuous queries over Kafka streams, for about the price of one."
	@echo
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# What cannot be fetched by pip or Maven is asked for by name before anything is downloaded.
prerequisites:
	@$(PYTHON) deploy/prerequisites.py

setup: prerequisites $(STAMPS)/python $(STAMPS)/spark $(STAMPS)/protos $(STAMPS)/archive ## the environment in .venv, the JVM parts in .jvm, the generated protos

$(STAMPS)/python: requirements.lock pyproject.toml | $(STAMPS)
	@echo "» Python packages into .venv"
	@$(PYTHON) deploy/prerequisites.py --without-jvm
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMPS):
	@mkdir -p $@

$(STAMPS)/broker $(STAMPS)/spark $(STAMPS)/zipkin: $(STAMPS)/%: deploy/jvm/%/pom.xml | $(STAMPS)
	@echo "» JVM parts into .jvm/$*"
	@rm -rf .jvm/$*
	@mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/.jvm/$*
	@touch $@

# One after the other, however many jobs make runs: two Mavens must not fill one cache at the same time.
$(STAMPS)/spark: | $(STAMPS)/broker
$(STAMPS)/zipkin: | $(STAMPS)/spark

$(STAMPS)/archive: $(STAMPS)/broker $(STAMPS)/spark | $(STAMPS)/python $(STAMPS)/protos
	@echo "» the broker's classes, as loaded, into .jvm/broker.jsa"
	@$(BIN)/python -m stairwise.system.archive
	@touch $@

$(STAMPS)/protos: $(PROTOS) | $(STAMPS)/python
	@echo "» Python of the protos into libs/stairwise/v1"
	@rm -rf libs/stairwise/v1 && mkdir -p libs/stairwise/v1 && touch libs/stairwise/v1/__init__.py
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -Iprotos \
	  --python_out=libs --grpc_python_out=libs --mypy_out=quiet:libs --mypy_grpc_out=quiet:libs $(PROTOS)
	@touch $@

protos: ## generate the protos' Python again
	@rm -f $(STAMPS)/protos
	@$(MAKE) --no-print-directory $(STAMPS)/protos

tracing: $(STAMPS)/zipkin ## Zipkin for `stairwise up --tracing`, into .jvm

tools: $(TOOLS)/.fetched ## what tests of the chart need beside Python packages: promtool and Prometheus, into .tools

$(TOOLS)/.fetched: deploy/fetch-prometheus
	@echo "» Prometheus into .tools"
	@deploy/fetch-prometheus $(CURDIR)/$(TOOLS)
	@touch $@

demo: setup ## the whole system with live results on this terminal (DEMO_REPORTS=N: end after N reports)
	@$(BIN)/stairwise demo

# Tests that start brokers and systems come one after the other and often wait. Beside them run those of ingest,
# results, lookups and starts, which need no Spark, and, in what both leave of the cores, those without the JVM. The
# latter two say at their end how it went. ARGS may leave nothing for one of the three: pytest's exit code 5.
test: setup tracing tools ## every test but the long ones, from nothing (about 20 minutes on 2 cores)
	@$(MAKE) --no-print-directory --jobs=3 test-with-jvm test-without-spark test-without-jvm

test-with-jvm:
	@$(BIN)/pytest -m "$(WITH_JVM)" $(addprefix --ignore=,$(WITHOUT_SPARK)) $(ARGS) || [ $$? -eq 5 ]

test-without-spark:
	@$(call say_at_the_end,$(BIN)/pytest -m "$(WITH_JVM)" $(addprefix --ignore=,$(WITH_SPARK)) $(ARGS))

test-without-jvm:
	@$(call say_at_the_end,nice -n 19 $(BIN)/pytest -n 1 -m "$(WITHOUT_JVM)" $(ARGS))

define say_at_the_end
said=$$(mktemp); trap "rm $$said" EXIT; code=0; $(1) > $$said 2>&1 || code=$$?; cat $$said; [ $$code -eq 0 ] || [ $$code -eq 5 ]
endef

test-fast: $(STAMPS)/python $(STAMPS)/protos ## tests without the JVM (under a minute)
	@HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n logical -m "not jvm and not long" tests/unit tests/property $(ARGS)

test-long: setup tracing tools ## the full counts that test is too short for: prints kills, lost, repeated, wrong
	@HYPOTHESIS_PROFILE=long $(MAKE) --no-print-directory --jobs=3 test-with-jvm test-without-spark test-without-jvm \
	  WITH_JVM="jvm and long" WITHOUT_JVM="not jvm and not cluster" ARGS="--timeout 7200 $(ARGS)"

test-chart: $(STAMPS)/python $(STAMPS)/protos tools ## the chart, its rules and dashboards, the Dockerfiles (seconds)
	@$(BIN)/pytest tests/chart $(ARGS)

kubernetes: ## a Kubernetes for test-cluster, built from Go modules into .tools/kubernetes (once, about 20 minutes)
	@deploy/kubernetes/build $(CURDIR)/.tools/kubernetes

test-cluster: setup ## the chart on a real Kubernetes of this machine (root; says skipped where it cannot run)
	@if $(BIN)/python -m tests.cluster; then \
	  $(MAKE) --no-print-directory kubernetes && deploy/images/debian-base && \
	  BUILDER=buildah BUILD_OPTIONS="--isolation chroot --network host --pull-never --layers" deploy/build-images && \
	  $(BIN)/pytest --timeout 3600 -m cluster tests/cluster $(ARGS); \
	else echo "skipped: the above is missing"; fi

images: ## the images, with docker, podman or buildah (TAG=..., REPOSITORY=...)
	@deploy/build-images "$(TAG)" "$(REPOSITORY)"

dashboards: $(STAMPS)/python ## write the Grafana dashboards into the chart again
	@$(BIN)/python -m deploy.dashboards

screenshots: setup tracing tools ## the pictures of docs/operations.md, of the demo at work (needs chromium; 5 minutes)
	@$(BIN)/python -m tests.screenshots

lint: $(STAMPS)/python ## style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: $(STAMPS)/python ## rewrite in the house style
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

typecheck: $(STAMPS)/python $(STAMPS)/protos ## types, strict
	@$(BIN)/mypy

layers: $(STAMPS)/python $(STAMPS)/protos ## who may import whom
	@$(BIN)/lint-imports

audit: setup ## licences, hashes, lock against environment, JVM parts against each other; an SBOM per image into .sbom
	@$(BIN)/python -m deploy.supply_chain .sbom

check: lint typecheck layers test-fast ## lint, types, layers, fast tests

bench: bench-local bench-sharing bench-operators bench-changes bench-ingest bench-spark bench-results bench-system bench-lookups bench-time ## every benchmark

bench-%: setup ## one benchmark: make bench-local
	@$(BIN)/python -m bench.$*

lock: $(STAMPS)/python ## resolve the dependencies again
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --no-header --quiet --output-file requirements.lock

clean: ## remove everything that was made here
	@rm -rf .venv .jvm .tools .stairwise .sbom libs/stairwise/v1 .mypy_cache .ruff_cache .hypothesis .import_linter_cache
