# `make wheel` builds the main wheel on a bare machine. `make check` runs the tests that
# need no engine. `make test` runs all of them, plays the workflows, and builds the real
# wheel with the real engine from nothing.

# The tests and the engine's build look for go in PATH.
TOOLCHAIN := $(shell ./toolchain.sh)
ifeq ($(TOOLCHAIN),)
$(error there is no Go)
endif
export PATH := $(TOOLCHAIN):$(PATH)
GO ?= go

# The program is one static file: it runs on nodes with an older glibc than this host.
# The tests have the same setting, so that Go compiles every package once.
export CGO_ENABLED := 0

.PHONY: wheel build stale check test test-full unit fuzz mutation workflows conformance servers e2e bench compare lock lint docs frameworks

build:
	$(GO) build -trimpath -o builder ./cmd/builder

wheel: build
	./builder run horovod --rocm 5.7

check: unit
	$(GO) vet -trimpath ./...
	test -z "$$(gofmt -l cmd internal pipelines recipes patches images diagnoses profiles test)"
	@$(MAKE) --silent stale

# Lists the records of recipes/proven.json that another change made stale, each with the
# command that renews it. A release refuses them.
stale:
	@list=$$($(GO) run -trimpath ./cmd/builder list $(patsubst recipes/%.yaml,%,$(wildcard recipes/*.yaml))) && \
	echo "$$list" | sed -n 's/^ *\(.*, stale: \)/\1/p'

# The command line's scripts alone take minutes on a busy machine. build and e2e use
# -trimpath too, so Go compiles every package only once. go test vets nothing, because
# check runs all of go vet. The test programs link in two thirds of the time without debug
# information. Many tests wait for ranks, so a package runs four at a time.
unit:
	$(GO) test -trimpath -vet=off -ldflags=-w -parallel 4 -timeout 30m ./...
	cd test/compare && python3 -m unittest -q comparison.test_comparison

# Runs every fuzz target of the module in turn. -fuzzminimizetime is low because Go
# otherwise spends a short run on minimizing the first interesting input.
FUZZTIME ?= 10s
fuzz:
	@targets=$$($(GO) test -list '^Fuzz' ./...) || { echo "$$targets"; exit 1; }; \
	echo "$$targets" | awk '/^Fuzz/ {name[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, name[i]; n = 0}' | \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package" </dev/null || exit 1; \
	done

# Makes small changes to the gates and requires a test to fail for each: half an hour
# on two cores. MUTATE names another package. The time limit of a changed package is a
# multiple of its tests' normal time. Without -count=1, gremlins measures a cached run,
# every changed package times out, and none counts (go-gremlins/gremlins#267).
MUTATE ?= ./internal/gates/gate
mutation:
	GOFLAGS='-count=1 -vet=off -ldflags=-w' $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --invert-logical --invert-loopctrl \
		--workers 1 --timeout-coefficient 5 --threshold-efficacy 90 $(MUTATE)

# Uses a new state directory unless BUILDER_HOME names one.
e2e:
	BUILDER_E2E=1 $(GO) test -trimpath -count=1 -v -timeout 80m -run E2E ./test/e2e

# Plays GitHub's workflows with act. `go install` fetches and compiles act.
workflows:
	BUILDER_TEST_ACT=1 $(GO) test -trimpath -count=1 -run '^TestWorkflows$$' ./cmd/builder

# Reads the releases of torch and TensorFlow from the Python index. Needs python3 and uv.
frameworks:
	python3 test/frameworks/frameworks.py

# Uploads with the pinned uv to pypiserver, devpi and a server that redirects. Needs
# python3 and an index of Python packages.
servers:
	BUILDER_TEST_SERVERS=1 $(GO) test -trimpath -count=1 -run '^TestRealServers$$' ./internal/publishing/upload

# Checks the signed statements with independent validators: those of SPDX, in-toto and
# cosign. Needs python3 and an index of Python packages.
conformance:
	$(GO) vet -C test/conformance ./...
	BUILDER_TEST_CONFORMANCE=1 $(GO) test -trimpath -count=1 -timeout 40m -run '^TestConformance$$' ./internal/app

test: check workflows conformance servers e2e

# Adds tests too slow for every change: the CUDA wheel with 5 GB of inputs, NCCL, and a
# minute of each fuzz target.
test-full: test
	$(MAKE) fuzz FUZZTIME=60s
	BUILDER_E2E=full $(GO) test -trimpath -count=1 -v -timeout 80m -run Full ./test/e2e

lint:
	golangci-lint run
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

bench:
	test/compare/build-step

# Compares builder with a bare script, fromager and buildah, and writes
# docs/performance.md. Run it on an otherwise idle machine.
compare:
	test/compare/compare small
	test/compare/compare horovod --rounds 1 --scenarios cold

# Updates the checked-in pins. Only this target resolves names to their current
# versions.
lock:
	$(GO) run ./cmd/builder lock --recipes . --all

# Builds the documentation site in .docs/site with the programs pinned in
# docs/requirements.txt, and checks that it loads nothing from other hosts. Needs uv.
UV ?= uv
docs:
	$(UV) venv --quiet --clear --python '>=3.11' .docs/venv
	$(UV) pip sync --quiet --require-hashes --python .docs/venv docs/requirements.txt
	NO_MKDOCS_2_WARNING=1 .docs/venv/bin/mkdocs build --quiet --strict
	BUILDER_TEST_SITE=$(CURDIR)/.docs/site $(GO) test -trimpath -count=1 -run 'Links|EveryPage|BuiltSite' ./test/repo
