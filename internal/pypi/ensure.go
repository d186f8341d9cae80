package pypi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"builder/internal/diag"
	"builder/internal/store"
	"builder/internal/wheel"
)

// uvVersion is the uv that resolves and that installs inside builds.
const uvVersion = "0.13.8"

// uvWheels are its wheels, by architecture as Go names it.
var uvWheels = map[string]store.Blob{
	"amd64": {
		Name:   "uv-0.13.8-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
		SHA256: "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
	},
	"arm64": {
		Name:   "uv-0.13.8-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
		SHA256: "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
	},
}

// Pin names the uv that installs packages inside builds: its digest is part of
// what a build reads.
func Pin() store.Blob { return uvWheels["amd64"] }

// Options say what [EnsureUV] may do.
type Options struct {
	NoInstall bool // install no package of the host
	Offline   bool // use what is there
	// Store may have the wheel, brought from another machine; it may be nil.
	Store *store.Store
}

// kept returns the wheel's path in the store, if it is there.
func (o Options) kept(pin store.Blob) (string, bool) {
	if o.Store == nil {
		return "", false
	}
	path, err := o.Store.Use(pin)
	return path, err == nil
}

// EnsureUV returns the pinned uv, which is kept under home. The first time pip
// fetches its wheel by digest: pip's configuration says from where.
func EnsureUV(ctx context.Context, home string, log func(format string, args ...any), opts Options) (Tool, error) {
	pin, ok := uvWheels[runtime.GOARCH]
	if !ok || runtime.GOOS != "linux" {
		return Tool{}, diag.Errorf(diag.Fetch, "uv is pinned for Linux on amd64 and arm64, not for %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	tools := filepath.Join(home, "tools")
	dir := filepath.Join(tools, "uv-"+uvVersion)
	t := Tool{filepath.Join(dir, "uv"), filepath.Join(dir, pin.Name), uvVersion, pin.SHA256, filepath.Join(tools, "uv-cache")}
	if t.present() {
		return t, nil
	}
	kept, have := opts.kept(pin)
	if opts.Offline && !have {
		return Tool{}, diag.Errorf(diag.Fetch, "uv %s is not under %s, and --offline was given", uvVersion, tools).
			WithHint("run once without --offline, or bring it with `builder store export` and `builder store import`")
	}
	if err := os.MkdirAll(tools, 0o755); err != nil {
		return Tool{}, fmt.Errorf("installing uv: %w", err)
	}
	unlock, err := store.Lock(ctx, dir+".lock", nil)
	if err != nil {
		return Tool{}, fmt.Errorf("installing uv: %w", err)
	}
	defer unlock()
	if t.present() { // another process was faster
		return t, nil
	}
	if have {
		return t, install(pin, dir, func(fresh string) error { return copyFile(kept, filepath.Join(fresh, pin.Name)) })
	}
	pip, err := ensurePip(ctx, log, opts)
	if err != nil {
		return Tool{}, err
	}
	log("fetching uv %s with pip", uvVersion)
	return t, install(pin, dir, func(fresh string) error { return download(ctx, pip, pin, fresh) })
}

// KeptUV returns the path of the pinned uv, "" where it was not fetched yet. That of
// the host is not asked: what its version takes on the command line is not known.
func KeptUV(home string) string {
	kept := filepath.Join(home, "tools", "uv-"+uvVersion, "uv")
	if _, err := os.Stat(kept); err != nil {
		return ""
	}
	return kept
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// present reports whether both files are there; the directory came as a whole.
func (t Tool) present() bool {
	_, err1 := os.Stat(t.Path)
	_, err2 := os.Stat(t.Wheel)
	return err1 == nil && err2 == nil
}

// ensurePip returns a pip's command, after installing one if that is possible.
func ensurePip(ctx context.Context, log func(format string, args ...any), opts Options) ([]string, error) {
	if pip := findPip(ctx); pip != nil {
		return pip, nil
	}
	none := diag.Errorf(diag.Fetch, "this host has no pip, which fetches uv %s", uvVersion)
	aptGet, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 || opts.NoInstall {
		return nil, none.WithHint("install it (Debian and Ubuntu: apt-get install --no-install-recommends python3-pip); as root without --no-install builder does so itself")
	}
	log("installing host package with apt-get: python3-pip")
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "python3-pip"}} {
		cmd := exec.CommandContext(ctx, aptGet, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := command(ctx, cmd); err != nil {
			return nil, &diag.Error{Code: diag.Fetch, Err: fmt.Errorf("installing python3-pip: apt-get %s: %w", args[0], err), Log: out}
		}
	}
	if pip := findPip(ctx); pip != nil {
		return pip, nil
	}
	return nil, none
}

// command runs a program to its end and returns the last lines of what it said.
func command(ctx context.Context, cmd *exec.Cmd) ([]string, error) {
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return tail(string(out), 12), err
}

// install makes dir hold the wheel that bring puts there and the program from it,
// all or nothing.
func install(pin store.Blob, dir string, bring func(dir string) error) error {
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".uv-*")
	if err != nil {
		return fmt.Errorf("installing uv: %w", err)
	}
	defer os.RemoveAll(fresh)
	if err := bring(fresh); err != nil {
		return err
	}
	if err := unpack(filepath.Join(fresh, pin.Name), filepath.Join(fresh, "uv")); err != nil {
		return fmt.Errorf("installing uv: %w", err)
	}
	err = errors.Join(os.Chmod(fresh, 0o755), os.RemoveAll(dir))
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return fmt.Errorf("installing uv: %w", err)
	}
	return nil
}

// download lets pip bring the wheel, and believes neither it nor the index.
func download(ctx context.Context, pip []string, pin store.Blob, dir string) error {
	wish, err := os.CreateTemp("", "uv-requirements-*.txt")
	if err != nil {
		return fmt.Errorf("fetching uv: %w", err)
	}
	defer os.Remove(wish.Name())
	_, err = fmt.Fprintf(wish, "uv==%s --hash=sha256:%s\n", uvVersion, pin.SHA256)
	if err := errors.Join(err, wish.Close()); err != nil {
		return fmt.Errorf("fetching uv: %w", err)
	}
	args := append(slices.Clone(pip[1:]), "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-input", "--quiet",
		"--disable-pip-version-check", "--dest", dir, "--requirement", wish.Name())
	if told, err := command(ctx, exec.CommandContext(ctx, pip[0], args...)); err != nil {
		return &diag.Error{
			Code: diag.Fetch, Err: fmt.Errorf("fetching uv %s with pip: %w", uvVersion, err), Log: told,
			Hint: "pip's own configuration says which index is asked (PIP_INDEX_URL, pip.conf)",
		}
	}
	got, err := store.Of(filepath.Join(dir, pin.Name))
	if err == nil && got.SHA256 != pin.SHA256 {
		err = fmt.Errorf("%s: expected sha256 %s, got %s", pin.Name, pin.SHA256, got.SHA256)
	}
	if err != nil {
		return diag.Errorf(diag.Fetch, "fetching uv %s with pip: %w", uvVersion, err)
	}
	return nil
}

// unpack writes the program that a wheel of uv holds.
func unpack(path, to string) error {
	w, err := wheel.Open(path)
	if err != nil {
		return err
	}
	defer w.Close()
	data, err := w.ReadFile("uv-"+uvVersion+".data/scripts/uv", 256<<20)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
