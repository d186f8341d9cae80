# `make wheel` builds the main wheel on a machine that has nothing yet. `make test` is
# everything: unit tests, the tool as its users call it, and the real engine building
# the real wheel from nothing. `make check` is what needs no engine.

# The tests and the engine's build find go in PATH, so it is put there.
TOOLCHAIN := $(shell ./toolchain.sh)
ifeq ($(TOOLCHAIN),)
$(error there is no Go)
endif
export PATH := $(TOOLCHAIN):$(PATH)
GO ?= go

.PHONY: wheel build check test test-full unit fuzz mutation workflows conformance e2e bench compare lock lint docs

build:
	$(GO) build -trimpath -o builder ./cmd/builder

wheel: build
	./builder run horovod --rocm 5.7

check: unit
	$(GO) vet -trimpath ./...
	test -z "$$(gofmt -l cmd internal pipelines recipes patches images diagnoses profiles stacks engine e2e conformance)"

# The scripts of the command line alone take minutes on a machine that is busy.
# With -trimpath as in build and e2e, Go compiles every package once for all of them.
unit:
	$(GO) test -trimpath -timeout 30m ./...
	cd bench && python3 -m unittest -q comparison.test_comparison

# Every fuzz target of the module, one after the other. Left to itself Go spends all
# of a short time on making the first interesting input smaller.
FUZZTIME ?= 10s
fuzz:
	@targets=$$($(GO) test -list '^Fuzz' ./...) || { echo "$$targets"; exit 1; }; \
	echo "$$targets" | awk '/^Fuzz/ {name[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, name[i]; n = 0}' | \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package" </dev/null || exit 1; \
	done

# Changes the gates in small ways and demands that a test notices: half an hour on
# two cores. MUTATE names another package. What is allowed to a changed package is
# a multiple of the time that its tests took: without -count=1 that is the time to
# look into the cache, all of it times out, and none of it counts
# (go-gremlins/gremlins#267).
MUTATE ?= ./internal/gates/gate
mutation:
	GOFLAGS='-count=1 -vet=off -ldflags=-w' $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --invert-logical --invert-loopctrl \
		--workers 1 --timeout-coefficient 5 --threshold-efficacy 90 $(MUTATE)

# The state directory is new unless BUILDER_HOME says otherwise.
e2e:
	BUILDER_E2E=1 $(GO) test -trimpath -count=1 -v -timeout 80m -run E2E ./e2e

# The workflows of GitHub, played by act, which go install fetches and compiles.
workflows:
	BUILDER_TEST_ACT=1 $(GO) test -trimpath -count=1 -run '^TestWorkflows$$' ./cmd/builder

# What is signed, judged by validators of others: SPDX's, cosign, in-toto's and
# OpenVEX's. It needs python3 and an index of Python packages.
conformance:
	$(GO) vet -C conformance ./...
	BUILDER_TEST_CONFORMANCE=1 $(GO) test -trimpath -count=1 -run '^TestConformance$$' ./internal/app

test: check workflows conformance e2e

# What takes too long for every change: the CUDA wheel of 5 GB of inputs, NCCL, and
# a minute of every fuzz target.
test-full: test
	$(MAKE) fuzz FUZZTIME=60s
	BUILDER_E2E=full $(GO) test -trimpath -count=1 -v -timeout 80m -run Full ./e2e

lint:
	golangci-lint run
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

bench:
	bench/build-step

# builder beside a script of one's own, fromager and buildah, on a machine that
# does nothing else; writes docs/performance.md.
compare:
	bench/compare small
	bench/compare horovod --rounds 1 --scenarios cold

# Moves the pins that are checked in. The only target that asks what a name
# means today.
lock:
	$(GO) run ./cmd/builder lock --recipes . --all

# The site of docs, in .docs/site, by the programs that docs/requirements.txt pins;
# then it is looked at: it loads nothing from another host. Needs uv.
UV ?= uv
docs:
	$(UV) venv --quiet --clear --python '>=3.11' .docs/venv
	$(UV) pip sync --quiet --require-hashes --python .docs/venv docs/requirements.txt
	NO_MKDOCS_2_WARNING=1 .docs/venv/bin/mkdocs build --quiet --strict
	BUILDER_TEST_SITE=.docs/site $(GO) test -count=1 -run 'Links|EveryPage|BuiltSite' .
