package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

// A library is not judged as a wheel. A damaged one is refused for its damage.
func TestGateOnLibraries(t *testing.T) {
	t.Setenv("BUILDER_HOME", t.TempDir())
	library := filepath.Join(t.TempDir(), "lib.so")
	for content, want := range map[string]string{
		string((&elftest.Library{}).Bytes()): "gate wheel-format: not-measured: a library has no form of a wheel to judge\nhint: leave it out of --only",
		"\x7fELF":                            "gate promise: not-measured: its contents are unreadable: reading lib.so: not an ELF file",
	} {
		must.Succeed(t, os.WriteFile(library, []byte(content), 0o600))
		args := []string{"builder", "gate", library}
		if len(content) > 4 {
			args = append(args, "--only", "wheel-format")
		}
		var stderr bytes.Buffer
		code := Main(args, io.Discard, &stderr)
		check.That(t, code == int(diag.Gate) && strings.Contains(stderr.String(), want), "exit %d: %s", code, &stderr)
	}
}

func TestArranged(t *testing.T) {
	tool := wired([]string{"builder"}, io.Discard, io.Discard)
	for typed, want := range map[string]string{
		"builder diagnose - --json":             "builder diagnose --json -- -",
		"builder store import x.tar --json":     "builder store import --json -- x.tar",
		"builder plan horovod --rocm 5.7":       "builder plan horovod --rocm 5.7",
		"builder gate a --gpus 2 b --json":      "builder gate --gpus 2 --json -- a b",
		"builder gate --gpus=2 a":               "builder gate --gpus=2 -- a",
		"builder gate a -- --gpus":              "builder gate -- a --gpus",
		"builder gate a --gpus":                 "builder gate a --gpus",
		"builder gate --frob a":                 "builder gate --frob -- a",
		"builder gate -only x --env A=1 a":      "builder gate -only x --env A=1 -- a",
		"builder gate a --only x --help":        "builder gate --help",
		"builder gate a -h":                     "builder gate -h",
		"builder gate -- --help":                "builder gate -- --help",
		"builder gate":                          "builder gate",
		"builder run horovod --out gate --json": "builder run horovod --out gate --json",
		"builder run --rocm 5.7 horovod":        "builder run horovod --rocm 5.7",
		"builder lock --check horovod --rocm 6": "builder lock horovod --check --rocm 6",
		"builder lock --all --check":            "builder lock --all --check",
		"builder run horovd --rocm 5.7":         "builder run horovd --rocm 5.7",
		"builder rnu horovod --rocm 5.7":        "builder rnu horovod --rocm 5.7",
		"builder --recipes site list a --json":  "builder --recipes site list --json -- a",
		"builder publish --at x list gfx90a":    "builder publish list --at x -- gfx90a",
		"builder publish a --to x":              "builder publish --to x -- a",
		"builder publish list a":                "builder publish list -- a",
		"builder run horovod --help extra":      "builder run horovod --help",
		"builder run horovd --help":             "builder run horovd --help",
		"builder":                               "builder",
	} {
		check.Same(t, typed, want, strings.Join(arranged(strings.Fields(typed), tool), " "))
	}
}
