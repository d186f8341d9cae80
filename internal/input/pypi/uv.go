package pypi

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/input/store"
)

// Tool is a uv program of the pinned version.
type Tool struct {
	Path string // path of the program

	cache   string
	indexes map[string]string // name to address of the indexes that requirements name
}

// requirementPattern matches names, versions, extras and markers. It excludes options,
// paths, URLs and variables, because uv would follow them.
var requirementPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._,;<>=!~ \[\]()'"+*-]*$`)

// compile resolves requirements with uv and returns the releases.
func (t Tool) compile(ctx context.Context, scratch string, requirements []string, args ...string) ([]release, error) {
	for _, line := range requirements {
		if !requirementPattern.MatchString(line) {
			return nil, diag.Errorf(diag.Usage, "resolving Python packages: %q is not a name with versions", line)
		}
	}
	text, indexOf, err := t.question(requirements)
	if err != nil {
		return nil, fmt.Errorf("resolving Python packages: %w", err)
	}
	dir, err := os.MkdirTemp(scratch, "uv-*")
	if err != nil {
		return nil, fmt.Errorf("resolving Python packages: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "pyproject.toml"), text, 0o600); err != nil {
		return nil, fmt.Errorf("resolving Python packages: %w", err)
	}
	env := t.environ(ctx)
	if err := t.run(ctx, dir, env.list(), args); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, output))
	if err != nil {
		return nil, fmt.Errorf("resolving Python packages: %w", err)
	}
	releases, err := parsePylock(data, dir)
	if err != nil {
		return nil, diag.Errorf(diag.Fetch, "resolving Python packages: %w", err)
	}
	for i, r := range releases {
		for j := range r.files {
			releases[i].files[j].Index = indexOf[wheel.NormalName(r.project)]
		}
	}
	authorise(releases, slices.Concat(env.indexes(), slices.Collect(maps.Values(t.indexes))))
	return releases, nil
}

const output = "pylock.toml"

// run starts uv in an empty directory, so that it does not read a user's project. The
// user's and the system's configuration of uv apply.
func (t Tool) run(ctx context.Context, dir string, env, args []string) error {
	args = append([]string{
		"pip", "compile", "pyproject.toml", "--format", "pylock.toml",
		"--output-file", output, "--no-header", "--quiet", "--no-progress", "--color", "never",
	}, args...)
	cmd := exec.CommandContext(ctx, t.Path, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr // stdout is discarded: it repeats the lock, with addresses
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("reading the Python package index: %w", context.Cause(ctx))
	}
	output := tail(stderr.String(), 12)
	return &diag.Error{
		Code: diag.Fetch, Err: fmt.Errorf("reading the Python package index with uv: %s (%w)", message(output), err), Log: output,
		Hint: "the configuration of uv and pip names the index (UV_DEFAULT_INDEX, uv.toml, PIP_INDEX_URL, pip.conf)",
	}
}

// tail returns the last n lines of a program's output, without secrets.
func tail(text string, n int) []string {
	text = strings.TrimSpace(store.Redact(text))
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-n):]
}

// message returns the error and its causes in one line.
func message(output []string) string {
	var parts []string
	for _, line := range output {
		for _, mark := range []string{"error: ", "cause: "} {
			if part, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				parts = append(parts, part)
			}
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ": ")
	case len(output) > 0:
		return output[len(output)-1]
	}
	return "no output"
}
