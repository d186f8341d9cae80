package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/host"
)

// Needs lists the host programs that the engine runs.
var Needs = []host.Needed{
	{Name: "runc", Package: "runc"},
	{Name: "git", Package: "git"},
	{Name: "mount", Package: "mount"},
	{Name: "umount", Package: "mount"},
}

// hostDirs returns the directories to search for programs.
func hostDirs() []string { return host.ProgramDirs(os.Getenv("PATH")) }

// find returns the path of a program of this host.
func find(name string) (string, bool) { return host.This().Program(name, hostDirs()) }

// findTools returns the paths of [Needs] by name. It installs missing packages if it may.
func findTools(ctx context.Context, mayInstall bool, logFile string, log func(format string, args ...any)) (map[string]string, error) {
	found, missing := host.This().Find(Needs)
	aptGet, debian := find("apt-get")
	if len(missing) > 0 && mayInstall && debian {
		log("installing host packages with apt-get: %s", strings.Join(missing, " "))
		if err := install(ctx, aptGet, missing, logFile); err != nil {
			return nil, err
		}
		found, missing = host.This().Find(Needs)
	}
	if len(missing) > 0 {
		return nil, lacking(missing, debian)
	}
	return found, nil
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
// failed: the index is missing, or lists files no longer in the archive. An update fails as
// a whole if one of the host's repositories cannot be reached.
func install(ctx context.Context, aptGet string, packages []string, logFile string) error {
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, aptGet, append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH="+strings.Join(hostDirs(), ":"))
		return runLogged(ctx, cmd, logFile)
	}
	get := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	err := run(get...)
	if err != nil && ctx.Err() == nil {
		if err = run("update"); err == nil {
			err = run(get...)
		}
	}
	if failed, ok := errors.AsType[*diag.Error](err); ok {
		return failed.WithHint("install them by hand: apt-get install --no-install-recommends %s", strings.Join(packages, " "))
	}
	if err != nil {
		return fmt.Errorf("installing %s: %w", strings.Join(packages, " "), err)
	}
	return nil
}

// The engine's containers have no network. builder's sandbox would take it from them
// anyway, and setting it up took 0.1 s of processor time for each container. The host
// therefore needs no bridge, packet filter, name server or address range.
const (
	// networkConfig is the engine's list of CNI plugins. The engine adds the network of
	// go-cni, whose only plugin is loopback too.
	networkConfig = `{"cniVersion": "0.3.1", "name": "none", "plugins": [{"type": "loopback"}]}` + "\n"

	// networkPlugin is the CNI plugin loopback. It leaves the loopback interface down:
	// the sandbox has its own. Without a command it fails, as a CNI plugin must.
	//
	// The engine reads the counters of a container's interface in /sys/class/net, takes
	// the one whose name begins with veth, and crashes if there is none (v0.19.10,
	// engine/buildkit/resources/netstat.go). This name leads it to the host's lo.
	networkPlugin = `#!/bin/sh
case ${CNI_COMMAND:?} in
ADD) echo '{"cniVersion": "0.3.1", "interfaces": [{"name": "veth/../lo"}]}' ;;
VERSION) echo '{"cniVersion": "0.3.1", "supportedVersions": ["0.3.1"]}' ;;
esac
`

	// nameServer replaces dnsmasq. The engine mounts a file over its /etc/resolv.conf
	// that names dnsmasq as the only name server, and then starts it. Without dnsmasq
	// the engine itself could reach no registry, so this undoes the mount.
	nameServer = `#!/bin/sh
exec umount /etc/resolv.conf
`
)
