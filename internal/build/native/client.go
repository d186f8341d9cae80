package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/owned"
)

// UpstreamImage is the name of the engine's image published by upstream.
const UpstreamImage = "registry.dagger.io/engine:" + Version

// imageClient is the path of the client program in an engine image.
const imageClient = "/usr/local/bin/dagger"

// Client returns the path of the client program for an engine other than the native
// one: that of the native engine if it was built, or the client alone, which takes less
// than half of the time. It returns "" if a build is impossible, without Linux or without
// Go. The SDK then fetches its own client.
func (e *Engine) Client(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" {
		return "", nil
	}
	if program := e.client(); program != "" {
		return e.leashed(program)
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := e.take(ctx); err != nil {
		return "", err
	}
	if e.client() == "" {
		goTool, err := e.goTool()
		if err != nil {
			return "", nil
		}
		if err := e.buildClient(ctx, goTool); err != nil {
			return "", noEngine(ctx, err)
		}
	}
	return e.leashed(e.client())
}

// client returns the path of a client program that is as it was made: that of the engine
// or a client alone. It returns "" if there is none.
func (e *Engine) client() string {
	switch {
	case owned.Intact(e.programsDir(), "bin/dagger") == nil:
		return e.bin("dagger")
	case owned.Intact(filepath.Dir(e.clientAlone()), "dagger") == nil:
		return e.clientAlone()
	}
	return ""
}

// clientAlone returns the path of a client program without an engine.
func (e *Engine) clientAlone() string { return e.path("client-"+Version, "dagger") }

// keepClient moves a client program into place, with the record of its digest.
func (e *Engine) keepClient(program string) error {
	dir := filepath.Dir(e.clientAlone())
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755), os.Rename(program, e.clientAlone())); err != nil {
		return err
	}
	return owned.Seal(dir, dir)
}

// buildClient builds the client program alone. The caller holds the lock.
func (e *Engine) buildClient(ctx context.Context, goTool string) error {
	e.log("building the client of the engine %s from its Go modules: some minutes, once", Version)
	start := time.Now()
	err := e.temporary(func(tmp string) error {
		if err := e.compile(ctx, goTool, tmp, append(slices.Clip(buildOptions), upstream+"cmd/dagger")); err != nil {
			return err
		}
		return e.keepClient(filepath.Join(tmp, "bin", "dagger"))
	})
	if err == nil {
		e.log("built the client in %s", time.Since(start).Round(time.Second))
	}
	return err
}

// ClientIn returns the path of the client program from an engine image in docker or
// podman, so nothing is compiled. If that fails it uses [Engine.Client].
func (e *Engine) ClientIn(ctx context.Context, daemon, image string) (string, error) {
	if runtime.GOOS != "linux" || e.client() != "" {
		return e.Client(ctx)
	}
	if err := e.copyClient(ctx, daemon, image); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		e.log("%v; building the client instead", err)
	}
	return e.Client(ctx)
}

// copyClient copies the client program out of an engine image, once.
func (e *Engine) copyClient(ctx context.Context, daemon, image string) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if e.client() != "" {
		return nil
	}
	problem := func(err error) error {
		return fmt.Errorf("copying the client from %s with %s: %w", image, daemon, err)
	}
	container, err := output(ctx, daemon, "create", image)
	if err != nil {
		return problem(err)
	}
	defer func() { _, _ = output(context.WithoutCancel(ctx), daemon, "rm", "--volumes", container) }()
	tmp := e.path(fmt.Sprintf("client.%d.tmp", os.Getpid()))
	defer os.Remove(tmp)
	if _, err := output(ctx, daemon, "cp", container+":"+imageClient, tmp); err != nil {
		return problem(err)
	}
	said, err := output(ctx, tmp, "version")
	if err == nil && !strings.Contains(said+" ", " "+Version+" ") {
		err = fmt.Errorf("its version is %q, expected %s", said, Version)
	}
	if err != nil {
		return problem(err)
	}
	return e.keepClient(tmp)
}

// output runs a program and returns its output without surrounding white space.
func output(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if exit, failed := err.(*exec.ExitError); failed { //nolint:errorlint // Output returns it as it is
		err = fmt.Errorf("%s: %w: %s", args[0], err, diag.Redact(strings.TrimSpace(string(exit.Stderr))))
	}
	return strings.TrimSpace(string(out)), err
}
