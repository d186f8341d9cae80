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

// A need is a program of the host that the engine runs, and the Debian
// package that has it.
type need struct {
	program string
	pkg     string
	plugin  bool // a CNI plugin: not looked for in PATH, where iproute2 has another "bridge"
}

// name tells a plugin from the program of the same name.
func (n need) name() string {
	if n.plugin {
		return "cni/" + n.program
	}
	return n.program
}

// in returns where the program is looked for.
func (n need) in(d dirs) []string {
	if n.plugin {
		return d.plugins
	}
	return d.programs
}

var needs = []need{
	{"runc", "runc", false},
	{"iptables", "iptables", false},
	{"dnsmasq", "dnsmasq-base", false}, // not dnsmasq, which is a service
	{"ip", "iproute2", false},
	{"git", "git", false},
	{"mount", "mount", false},
	{"bridge", "containernetworking-plugins", true},
	{"firewall", "containernetworking-plugins", true},
	{"host-local", "containernetworking-plugins", true},
	{"loopback", "containernetworking-plugins", true},
}

// dirs is where programs and CNI plugins are looked for.
type dirs struct{ programs, plugins []string }

// hostDirs is where they are looked for on this host.
func hostDirs() dirs {
	return dirs{programs: host.ProgramDirs(os.Getenv("PATH")), plugins: plugins}
}

var plugins = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// A Program is one that the engine needs of the host.
type Program struct {
	Name    string
	Package string   // of Debian
	Dirs    []string // where it is looked for
}

// Needs lists the programs that the engine needs of a host with this PATH.
func Needs(path string) []Program {
	var all []Program
	for _, n := range needs {
		all = append(all, Program{n.program, n.pkg, n.in(dirs{host.ProgramDirs(path), plugins})})
	}
	return all
}

// tools returns the paths of the host's programs that the engine needs, by
// name ("cni/" before those of plugins), and installs what is missing.
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

// survey looks for all that is needed.
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

// find returns the first executable of a name.
func find(dirs []string, name string) (string, bool) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// lacking is the error for packages that are missing and stay so.
func lacking(packages []string, debian bool) error {
	list := strings.Join(packages, " ")
	err := diag.Errorf(diag.NoEngine, "the native engine lacks host packages: %s", list)
	if debian {
		return err.WithHint("let builder install them (without --no-install), or: apt-get install --no-install-recommends %s", list)
	}
	return err.WithHint("install them (the names are Debian's), %s", instead)
}

// install installs packages. The index is only fetched when it does not do:
// none is there, or it names files that the archive no longer has.
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
