package environment

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/gates/verdict"
)

//go:embed process.py
var asking string

// Bounds of the started process.
const (
	maxAsked  = 5 * time.Minute
	maxOutput = 1 << 20
)

// answer is the output of the process: the loaded files of families with their
// versions, and the version reported by the framework.
type answer struct {
	Imported string            `json:"imported"`
	Fault    string            `json:"fault"`
	Files    map[string]string `json:"files"` // path to version, "" if unknown
	Says     string            `json:"says"`  // torch.cuda.nccl.version(): that of the headers torch was built with, a constant in torch/csrc/cuda/nccl.cpp
}

// checkProcess imports the framework in the environment's own interpreter and compares
// the loaded files with those expected from the files on disk.
func checkProcess(ctx context.Context, e *Environment) verdict.Verdict {
	if e.Python == "" {
		return verdict.Unmeasured("the interpreter is unknown: a directory of packages was named").Because("name the interpreter or its virtual environment")
	}
	said, err := e.process(ctx)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	if said.Fault != "" {
		return verdict.Failed("import %s: %.1000s", said.Imported, said.Fault).Because("read the verdicts of the other gates; to see the error: %s -c 'import %s'", e.Python, said.Imported)
	}
	if said.Imported == "" {
		return verdict.Unmeasured("no framework is installed").Because("install torch, TensorFlow or Horovod, or leave out --run")
	}
	var problems []problem
	var seen []string
	byFamily := map[*family][]string{}
	for _, path := range sorted(said.Files) {
		f := familyOf(path)
		if f == nil {
			continue
		}
		byFamily[f] = append(byFamily[f], path)
		seen = append(seen, strings.TrimSpace(fmt.Sprintf("%s %s", e.short(path), said.Files[path])))
		if v, _ := e.version(f, path); v != "" && said.Files[path] != "" && !sameVersion(v, said.Files[path]) {
			problems = append(problems, problem{fmt.Sprintf("%s reports version %s at run time and %s in its text", path, said.Files[path], v), "install the library again: its files are of different releases"})
		}
		if f.name == "NCCL" && said.Says != "" && said.Files[path] != "" && !sameVersion(said.Says, said.Files[path]) {
			seen = append(seen, fmt.Sprintf("%s was built with NCCL %s", said.Imported, said.Says))
		}
		if expected := e.expected(f); len(expected) > 0 && !slices.Contains(expected, path) {
			problems = append(problems, problem{
				fmt.Sprintf("the process loaded %s, and the files predict %s", path, strings.Join(expected, " or ")),
				"find the cause: LD_PRELOAD, a sitecustomize.py, or a package with a fixed path",
			})
		}
	}
	for _, f := range families {
		if paths := byFamily[f]; f.alone && len(paths) > 1 {
			problems = append(problems, problem{fmt.Sprintf("the process loaded %d files of %s: %s", len(paths), f.name, strings.Join(paths, " ")), fmt.Sprintf("keep one %s: %s", f.name, e.keep(f, nil))})
		}
	}
	return judged(problems, nil, append([]string{"imported " + said.Imported}, seen...))
}

// expected lists the files of a family loaded by the simulated imports.
func (e *Environment) expected(f *family) (paths []string) {
	for _, g := range e.chosen() {
		if g.family == f {
			paths = append(paths, g.lib.real)
		}
	}
	return paths
}

// process runs the interpreter and returns its answer.
func (e *Environment) process(ctx context.Context) (said answer, err error) {
	ctx, stop := context.WithTimeout(ctx, maxAsked)
	defer stop()
	python, err := filepath.Abs(e.Python)
	if err != nil {
		return said, err
	}
	cmd := exec.CommandContext(ctx, python, "-c", asking)
	var out, problems bounded
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &problems, 5*time.Second
	err = cmd.Run()
	line := lastLine(out.Bytes())
	if err != nil || json.Unmarshal(line, &said) != nil {
		return said, errors.Join(fmt.Errorf("asking %s: it printed no answer: %.400s", e.Python, lastLine(problems.Bytes())), err)
	}
	return said, nil
}

func lastLine(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// bounded keeps the last written bytes, at most maxOutput. It drops all earlier bytes
// if a write would exceed the bound.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		b.Reset()
	}
	b.Buffer.Write(p[max(0, len(p)-maxOutput):])
	return len(p), nil
}
