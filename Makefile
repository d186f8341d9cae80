# `make test` is everything: unit tests, the tool as its users call it, and the
# real engine building the real wheel from nothing. `make check` is what needs no
# engine.
GO ?= go

.PHONY: build check test test-full unit e2e bench lock lint

build:
	$(GO) build -trimpath -o builder ./cmd/builder

check: unit
	$(GO) vet ./...
	test -z "$$(gofmt -l cmd internal pipelines recipes patches images diagnoses engine *.go)"

unit:
	$(GO) test ./...

# The state directory is new unless BUILDER_HOME says otherwise.
e2e:
	BUILDER_E2E=1 $(GO) test -count=1 -v -timeout 80m -run E2E ./e2e

test: check e2e

# What takes too long for every change: the CUDA wheel of 5 GB of inputs, NCCL.
test-full: test
	BUILDER_E2E=full $(GO) test -count=1 -v -timeout 80m -run Full ./e2e

lint:
	golangci-lint run

bench:
	bench/build-step

# Moves the pins that are checked in. The only target that asks what a name
# means today.
lock:
	$(GO) run ./cmd/builder lock --recipes . horovod
