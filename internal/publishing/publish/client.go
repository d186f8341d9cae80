package publish

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/publishing/index"
)

// A Client looks at what was published as those who install do.
type Client struct {
	Run  Runner
	UV   string                                                                  // the pinned program, "" where it was not fetched
	Take func(ctx context.Context, from Source, key, dir string) (Bundle, error) // brings and verifies
}

// A Runner runs a program to its end and returns what it printed. What it is told
// of the environment takes the place of all that the host says of indexes.
type Runner func(ctx context.Context, env []string, name string, args ...string) (string, error)

// install installs a published wheel by its hash into empty directories as an
// unmodified pip and uv do, for the platform of its tags. A host without pip has
// not looked, which is an error too. The wheel is not imported: it wants the
// run-time image, in which the gate import has done so.
func (c Client) install(ctx context.Context, indexURL string, b Bundle) (by []string, err error) {
	scratch, err := os.MkdirTemp("", "builder-client-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	requirements := filepath.Join(scratch, "requirements.txt")
	line := index.Record{Project: b.project, Version: b.version, SHA256: b.Wheel.SHA256}.Requirement()
	if err := os.WriteFile(requirements, []byte(line+"\n"), 0o600); err != nil {
		return nil, err
	}
	for _, with := range []struct {
		name, program string
		args          []string
	}{
		{"pip", "python3", append([]string{"-m", "pip"}, pipArgs(b.name)...)},
		{"uv", c.UV, uvArgs(b.name)},
	} {
		if with.program == "" {
			continue
		}
		target := filepath.Join(scratch, with.name)
		args := slices.Concat(with.args, []string{"--target", target, "-r", requirements})
		out, err := c.Run(ctx, []string{"PIP_CONFIG_FILE=" + os.DevNull, "PIP_INDEX_URL=" + indexURL, "UV_NO_CONFIG=1", "UV_DEFAULT_INDEX=" + indexURL}, with.program, args...)
		if err == nil {
			err = b.installed(target)
		}
		if err != nil {
			return by, diag.Errorf(diag.Publish, "installing %s from %s with %s: %w: %s", b.Wheel.Name, shown(indexURL), with.name, err, lastLine(out)).
				WithHint("what came just now is withdrawn again; --no-check publishes without asking")
		}
		by = append(by, with.name)
	}
	return by, nil
}

// pull takes what was published by its key, as run --from does, and verifies it.
func (c Client) pull(ctx context.Context, from Source, b Bundle) ([]string, error) {
	scratch, err := os.MkdirTemp("", "builder-client-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	again, err := c.Take(ctx, from, b.Entry.Key(), scratch)
	if err != nil {
		return nil, refused(err)
	}
	if again.Wheel.SHA256 != b.Wheel.SHA256 {
		return nil, diag.Errorf(diag.Publish, "pulling %s from %s: sha256 %s, published is %s", b.Wheel.Name, from, again.Wheel.SHA256, b.Wheel.SHA256)
	}
	return []string{"pull and verify"}, nil
}

// pipArgs ask pip for the platform of a wheel instead of the host's. A wheel for py3
// says no minor version, and pip takes "3" for 3.0, which Requires-Python refuses: the
// host's interpreter counts then.
func pipArgs(name wheel.Name) []string {
	python := interpreter(name)
	args := []string{
		"install", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile",
		"--implementation", strings.TrimRight(python, "0123456789"), "--abi", name.ABI,
	}
	if version := digits(python); strings.Contains(version, ".") {
		args = append(args, "--python-version", version)
	}
	for p := range strings.SplitSeq(name.Platform, ".") {
		args = append(args, "--platform", p)
	}
	return args
}

// uvArgs ask uv for the same.
func uvArgs(name wheel.Name) []string {
	args := []string{"pip", "install", "--quiet", "--no-progress", "--no-cache", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-python-downloads"}
	if version := digits(interpreter(name)); strings.Contains(version, ".") {
		args = append(args, "--python-version", version)
	}
	if platform, ok := uvPlatform(strings.Split(name.Platform, ".")); ok {
		args = append(args, "--python-platform", platform)
	}
	return args
}

// uvPlatform writes the platform of a wheel as uv does: manylinux_2_36_x86_64 is
// x86_64-manylinux_2_36, and any is that of the host.
func uvPlatform(platforms []string) (string, bool) {
	for _, p := range platforms {
		for _, arch := range []string{"x86_64", "aarch64"} {
			switch libc, ok := strings.CutSuffix(p, "_"+arch); {
			case ok && strings.HasPrefix(libc, "manylinux_"):
				return arch + "-" + libc, true
			case ok && libc == "linux":
				return arch + "-unknown-linux-gnu", true
			}
		}
	}
	return "", false
}

// interpreter is the newest that a wheel is for: of py2.py3 it is py3.
func interpreter(name wheel.Name) string {
	tags := strings.Split(name.Python, ".")
	return tags[len(tags)-1]
}

// digits returns the version of an interpreter's tag: cp311 is 3.11, py3 is 3.
func digits(tag string) string {
	number := strings.TrimLeftFunc(tag, func(r rune) bool { return !unicode.IsDigit(r) })
	if len(number) > 1 {
		return number[:1] + "." + number[1:]
	}
	return number
}

// installed compares what was installed with what the wheel holds.
func (b Bundle) installed(target string) error {
	w, err := wheel.Open(b.Wheel.Path)
	if err != nil {
		return err
	}
	defer w.Close()
	data, err := os.ReadFile(filepath.Join(target, w.DistInfo, "METADATA"))
	if err != nil {
		return fmt.Errorf("nothing was installed: %w", err)
	}
	if string(data) != string(b.metadata) {
		return fmt.Errorf("something else was installed under its name")
	}
	return nil
}

// shown is an address without credentials.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(address)"
	}
	return u.Redacted()
}

// lastLine returns the last line that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
