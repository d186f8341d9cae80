package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/host"
)

// A Program is a host program that the engine runs.
type Program struct {
	Name    string
	Package string // Debian package
}

// Needs lists the host programs that the engine runs.
var Needs = []Program{
	{"runc", "runc"},
	{"git", "git"},
	{"mount", "mount"},
	{"umount", "mount"},
}

// hostDirs returns the directories to search for programs.
func hostDirs() []string { return host.ProgramDirs(os.Getenv("PATH")) }

// tools returns the paths of [Needs] by name. It installs missing packages.
func (e *Engine) tools(ctx context.Context) (map[string]string, error) {
	found, missing := survey(Needs, hostDirs())
	if len(missing) == 0 {
		return found, nil
	}
	aptGet, ok := find(hostDirs(), "apt-get")
	if e.opts.NoInstall || !ok {
		return nil, lacking(missing, ok)
	}
	if err := e.install(ctx, aptGet, missing); err != nil {
		return nil, err
	}
	found, missing = survey(Needs, hostDirs())
	if len(missing) > 0 {
		return nil, lacking(missing, ok)
	}
	return found, nil
}

// survey searches for all programs. It returns their paths, and the packages of those it
// does not find.
func survey(needs []Program, dirs []string) (found map[string]string, missing []string) {
	found = map[string]string{}
	for _, n := range needs {
		if path, ok := find(dirs, n.Name); ok {
			found[n.Name] = path
		} else if !slices.Contains(missing, n.Package) {
			missing = append(missing, n.Package)
		}
	}
	return found, missing
}

// find returns the first executable with this name.
func find(dirs []string, name string) (string, bool) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// lacking returns the error for missing packages that builder did not install.
func lacking(packages []string, debian bool) error {
	list := strings.Join(packages, " ")
	err := diag.Errorf(diag.NoEngine, "the native engine lacks host packages: %s", list)
	if debian {
		return err.WithHint("omit --no-install, or run: apt-get install --no-install-recommends %s", list)
	}
	return err.WithHint("install them (the names are Debian's), %s", instead)
}

// install installs packages. It updates the package index only after a first attempt
// failed: the index is missing, or lists files no longer in the archive.
func (e *Engine) install(ctx context.Context, aptGet string, packages []string) error {
	e.log("installing host packages with apt-get: %s", strings.Join(packages, " "))
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, aptGet, append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH="+strings.Join(hostDirs(), ":"))
		return e.runLogged(ctx, cmd, "install.log")
	}
	get := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	err := run(get...)
	if err != nil && ctx.Err() == nil {
		if err = run("update"); err == nil {
			err = run(get...)
		}
	}
	var failed *diag.Error
	if errors.As(err, &failed) {
		return failed.WithHint("install them by hand: apt-get install --no-install-recommends %s", strings.Join(packages, " "))
	}
	if err != nil {
		return fmt.Errorf("installing %s: %w", strings.Join(packages, " "), err)
	}
	return nil
}
