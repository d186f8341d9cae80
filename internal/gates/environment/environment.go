// Package environment checks the packages installed for an interpreter: which files its
// processes load for NCCL, RCCL, NVSHMEM and the run times of CUDA and HIP, and which
// other files they could load.
//
// It runs the interpreter of the environment with the program ask.py, which asks the
// loader and opens libraries in processes of its own. So an environment is trusted as far
// as running it. Its answers are data, and judged here.
package environment

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

//go:embed ask.py
var asking string

// An Environment is what an interpreter answered about its packages. All paths are
// without links, except those of modules.
type Environment struct {
	Python     string
	Sites      []string // directories of packages
	Unreadable map[string]string
	Modules    map[string]module   // extension modules that need a file of a family
	Files      map[string]file     // files of families, loaded or installed
	Owned      map[string]owned    // files of families, and files with two owners
	Libraries  map[string][]string // every library, loaded or installed, with its owners
}

// A module is what the loader says about an extension module. Process is nil if another
// module stands for it.
type module struct {
	Libraries                 int
	Families, Missing, Driver []string // files of families; names that are not found, and those of the GPU's driver
	Process                   *process
}

// A process has opened a library, and has these files of families with their versions.
type process struct {
	Fault string
	Files map[string]string
}

// A file is of a family: its version, or why it could not be opened, and the names of
// libraries in it, with whether a dlopen finds them.
type file struct {
	Version, Fault string
	Opens          map[string]bool
}

// owned is a file that distributions list. Digests have the form of RECORD; that of a
// missing file is "".
type owned struct {
	By     []owner
	Digest string
}

type owner struct{ Name, Version, Digest string }

func (o owner) String() string { return o.Name + " " + o.Version }

// maxOutput bounds the answer of an interpreter, in bytes.
const maxOutput = 64 << 20

// Ask runs an interpreter, or that of a prefix, such as a virtual environment.
func Ask(ctx context.Context, path string) (*Environment, error) {
	python := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		python = filepath.Join(path, "bin/python3")
	}
	python, err := exec.LookPath(python)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "%s: %w", path, err).WithHint("name a Python interpreter or a virtual environment")
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	e := &Environment{}
	out, messages := &regular.Buffer{Max: maxOutput, Whole: true}, &regular.Buffer{Max: maxOutput, Whole: true}
	cmd := exec.CommandContext(ctx, python, "-B", "-c", asking)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, messages, 5*time.Second
	if err = cmd.Run(); err == nil && json.Unmarshal(out.Bytes(), e) != nil {
		return nil, diag.Errorf(diag.Usage, "%s is no Python: it does not answer as the interpreter does", python).
			WithHint("name a Python interpreter or a virtual environment")
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(messages.String()), "\n")
		return nil, diag.Errorf(diag.Gate, "%s: asking %s: %w: %.400s", path, python, errors.Join(err, ctx.Err()), lines[len(lines)-1]).
			WithHint("it must be CPython 3.8 or newer, on a host with glibc")
	}
	return e, nil
}

// short returns the path of a file for messages, relative to its directory of packages.
func (e *Environment) short(path string) string {
	for _, site := range e.Sites {
		if rel, err := filepath.Rel(site, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// describe describes a file: its path, its version and its distributions.
func (e *Environment) describe(path string) string {
	says := strings.TrimSpace(e.Files[path].Version + " " + strings.Join(e.Libraries[path], " and "))
	return strings.TrimSuffix(fmt.Sprintf("%s (%s)", e.short(path), says), " ()")
}
