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

// A need is a host program that the engine runs, with its Debian package.
type need struct {
	program string
	pkg     string
	plugin  bool // a CNI plugin, not searched in PATH because iproute2 has another "bridge"
}

// name returns a name that distinguishes a plugin from a program of the same name.
func (n need) name() string {
	if n.plugin {
		return "cni/" + n.program
	}
	return n.program
}

// in returns the directories to search for the program.
func (n need) in(d dirs) []string {
	if n.plugin {
		return d.plugins
	}
	return d.programs
}

var needs = []need{
	{"runc", "runc", false},
	{"iptables", "iptables", false},
	{"dnsmasq", "dnsmasq-base", false}, // the package dnsmasq would start a service
	{"ip", "iproute2", false},
	{"git", "git", false},
	{"mount", "mount", false},
	{"bridge", "containernetworking-plugins", true},
	{"firewall", "containernetworking-plugins", true},
	{"host-local", "containernetworking-plugins", true},
	{"loopback", "containernetworking-plugins", true},
}

// dirs holds the directories to search for programs and CNI plugins.
type dirs struct{ programs, plugins []string }

// hostDirs returns the directories of this host.
func hostDirs() dirs {
	return dirs{programs: host.ProgramDirs(os.Getenv("PATH")), plugins: plugins}
}

var plugins = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// A Program is a host program required by the engine.
type Program struct {
	Name    string
	Package string   // Debian package
	Dirs    []string // directories to search
}

// Needs lists the programs required by the engine on a host with this PATH.
func Needs(path string) []Program {
	var all []Program
	for _, n := range needs {
		all = append(all, Program{n.program, n.pkg, n.in(dirs{host.ProgramDirs(path), plugins})})
	}
	return all
}

// tools returns the paths of the required host programs by name, with the prefix "cni/"
// for plugins. It installs missing packages.
func (e *Engine) tools(ctx context.Context) (map[string]string, error) {
	found, missing := survey(needs, hostDirs())
	if len(missing) == 0 {
		return found, nil
	}
	aptGet, ok := find(hostDirs().programs, "apt-get")
	if e.opts.NoInstall || !ok {
		return nil, lacking(missing, ok)
	}
	if err := e.install(ctx, aptGet, missing); err != nil {
		return nil, err
	}
	found, missing = survey(needs, hostDirs())
	if len(missing) > 0 {
		return nil, lacking(missing, ok)
	}
	return found, nil
}

// survey searches for all needs.
func survey(needs []need, in dirs) (found map[string]string, missing []string) {
	found = map[string]string{}
	for _, n := range needs {
		if path, ok := find(n.in(in), n.program); ok {
			found[n.name()] = path
		} else if !slices.Contains(missing, n.pkg) {
			missing = append(missing, n.pkg)
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
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH="+strings.Join(hostDirs().programs, ":"))
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
