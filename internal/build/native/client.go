package native

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/base/owned"
	"builder/internal/build/daemon"
)

// UpstreamImage is the name of the engine's image published by upstream.
const UpstreamImage = "registry.dagger.io/engine:" + Version

// imageClient is the path of the client program in an engine image.
const imageClient = "/usr/local/bin/dagger"

// Client returns the path of a client program that ends with builder. It copies the
// programs of the native engine from their image, or builds them, if there is no client. It
// returns "" if that is impossible, without Linux or without Go. The SDK then fetches its
// own client.
func (e *Engine) Client(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" {
		return "", nil
	}
	if program := e.client(); program != "" {
		return leashed(e.dir, program)
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := e.programs.take(ctx, e.opts.Image); err != nil {
		return "", err
	}
	goTool, err := e.programs.goTool()
	if err != nil {
		return "", nil
	}
	if err := e.programs.build(ctx, goTool); err != nil {
		return "", noEngine(ctx, err)
	}
	return leashed(e.dir, e.programs.bin("dagger"))
}

// client returns the path of a client program that is as it was made: that of the native
// engine, or a copy from an image. It returns "" if there is none.
func (e *Engine) client() string {
	switch {
	case owned.Intact(e.programs.dir, "bin/dagger") == nil:
		return e.programs.bin("dagger")
	case owned.Intact(copiedClient(e.dir), "dagger") == nil:
		return filepath.Join(copiedClient(e.dir), "dagger")
	}
	return ""
}

// copiedClient returns the directory below HOME/engine of a client program from an image.
func copiedClient(dir string) string { return filepath.Join(dir, "client-"+Version) }

// ClientIn returns the path of the client program from an engine image in docker or
// podman, so nothing is compiled. If that fails it uses [Engine.Client].
func (e *Engine) ClientIn(ctx context.Context, d daemon.Daemon, image string) (string, error) {
	if runtime.GOOS != "linux" || e.client() != "" {
		return e.Client(ctx)
	}
	if err := e.copyClient(ctx, d, image); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		e.log("copying the client from %s with %s: %v; building it instead", image, d, err)
	}
	return e.Client(ctx)
}

// copyClient copies the client program out of an engine image, once.
func (e *Engine) copyClient(ctx context.Context, d daemon.Daemon, image string) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if e.client() != "" {
		return nil
	}
	return owned.Make(copiedClient(e.dir), func(dir string) error {
		program := filepath.Join(dir, "dagger")
		if err := d.CopyOut(ctx, image, imageClient, program); err != nil {
			return err
		}
		said, err := exec.CommandContext(ctx, program, "version").Output()
		if err != nil {
			return fmt.Errorf("asking it for its version: %w", err)
		}
		if !slices.Contains(strings.Fields(string(said)), Version) {
			return fmt.Errorf("its version is %q, expected %s", said, Version)
		}
		return nil
	})
}

// leashed returns the path of a script that starts the client program and ends it when the
// process that started it is gone. The plain client then ends its session, which frees the
// session's resources in the engine; but if the engine is gone too, it tries to connect for
// minutes (v0.19.10). test/e2e has this case: the client and the engine are killed together.
func leashed(dir, program string) (string, error) {
	script := strings.ReplaceAll(leash, "CLIENT", "'"+program+"'")
	path := filepath.Join(dir, "client")
	if there, err := os.ReadFile(path); err == nil && string(there) == script {
		return path, nil
	}
	if err := atomicfile.Write(path, []byte(script)); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o755)
}

// leash gives the client twenty seconds to end its session, then kills it.
const leash = `#!/bin/sh
parent=$PPID client=$$
(
	while kill -0 "$parent" && kill -0 "$client"; do sleep 1; done
	kill -0 "$client" || exit 0
	sleep 20
	[ "$(readlink "/proc/$client/exe")" = CLIENT ] && kill -KILL "$client"
) </dev/null >/dev/null 2>&1 &
exec CLIENT "$@"
`
