package publish

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/publishing/index"
)

// A Client tests a publication in the same way as its users.
type Client struct {
	Run  Runner
	UV   string                                                                  // path of the pinned uv, "" if it was not fetched
	Take func(ctx context.Context, from Source, key, dir string) (Bundle, error) // fetches and verifies
}

// A Runner runs a program to its end and returns its output. env replaces every setting
// of the host for package indexes.
type Runner func(ctx context.Context, env []string, name string, args ...string) (string, error)

// install installs a published wheel by its hash into empty directories, with
// unmodified pip and uv, for the platform of its tags. A host without pip cannot check,
// which is an error too. install does not import the wheel: importing needs the
// run-time image, and the gate import has done so there.
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
				WithHint("the new files were withdrawn; --no-check publishes without this check")
		}
		by = append(by, with.name)
	}
	return by, nil
}

// pull takes the publication by its key, as run --from does, and verifies it.
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
		return nil, diag.Errorf(diag.Publish, "pulling %s from %s: got sha256 %s, published was %s", b.Wheel.Name, from, again.Wheel.SHA256, b.Wheel.SHA256)
	}
	return []string{"pull and verify"}, nil
}

// pipArgs requests the platform of the wheel instead of the host's. A wheel for py3 has
// no minor version. pip would read "3" as 3.0, which Requires-Python refuses, so the
// version of the host's interpreter counts then.
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

// uvArgs requests the same from uv.
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

// uvPlatform returns the platform of a wheel in uv's notation: manylinux_2_36_x86_64
// becomes x86_64-manylinux_2_36. uv 0.13 knows 2_17, 2_28 and 2_31 to 2_40; for another
// one the next newer answers. It returns false for any, which means the host's platform.
func uvPlatform(platforms []string) (string, bool) {
	for _, p := range platforms {
		for _, arch := range []string{"x86_64", "aarch64"} {
			switch libc, ok := strings.CutSuffix(p, "_"+arch); {
			case ok && strings.HasPrefix(libc, "manylinux_"):
				minor, err := strconv.Atoi(strings.TrimPrefix(libc, "manylinux_2_"))
				if i := slices.IndexFunc(uvMinors, func(m int) bool { return m >= minor }); err == nil && i >= 0 {
					libc = fmt.Sprintf("manylinux_2_%d", uvMinors[i])
				}
				return arch + "-" + libc, true
			case ok && libc == "linux":
				return arch + "-unknown-linux-gnu", true
			}
		}
	}
	return "", false
}

var uvMinors = []int{17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40}

// interpreter returns the last Python tag of a wheel, which is the newest: py3 for
// py2.py3.
func interpreter(name wheel.Name) string {
	tags := strings.Split(name.Python, ".")
	return tags[len(tags)-1]
}

// digits returns the version in a Python tag: 3.11 for cp311, 3 for py3.
func digits(tag string) string {
	number := strings.TrimLeftFunc(tag, func(r rune) bool { return !unicode.IsDigit(r) })
	if len(number) > 1 {
		return number[:1] + "." + number[1:]
	}
	return number
}

// installed compares the installed METADATA with that of the wheel.
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
		return fmt.Errorf("the installed METADATA differs from that of the wheel")
	}
	return nil
}

// shown returns an address without credentials.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(address)"
	}
	return u.Redacted()
}

// lastLine returns the last non-empty line.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
