package guest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// system lists the directories of the host that every guest may read.
var system = []string{"/usr", "/opt", "/sys", "/nix/store"}

// loaders lists the directories of programs and libraries. Merged into /usr, they are links.
var loaders = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// settings lists what every guest may read below /etc. The rest holds secrets of the host.
var settings = []string{
	"OpenCL", "alternatives", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "libibverbs.d", "localtime",
	"nccl.conf", "nsswitch.conf", "openmpi", "passwd", "rccl.conf",
}

// gpuDevices matches the devices of GPUs and of the networks between them.
var gpuDevices = []string{
	"/dev/nvidia*", "/dev/kfd", "/dev/dri", "/dev/dri/render*", "/dev/infiniband", "/dev/gdrdrv", "/dev/knem", "/dev/xpmem",
}

// devices lists the devices of this host for guests.
func devices() []string {
	var all []string
	for _, pattern := range gpuDevices {
		found, _ := filepath.Glob(pattern) // the patterns are right
		all = append(all, found...)
	}
	return all
}

// arguments returns bubblewrap's command line for a program. A path below another one is
// mounted over it: a hidden directory hides that part of a visible one, and a directory
// that the program reads is visible inside of a hidden one.
func (g Guest) arguments(p Program) ([]string, error) {
	args := append(slices.Clone(g.bwrap),
		"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL")
	if slices.Contains(g.bwrap, "--unshare-user") {
		args = append(args, "--uid", fmt.Sprint(nobody), "--gid", fmt.Sprint(nobody))
	}
	if !p.Network {
		args = append(args, "--unshare-net")
	}
	for _, dir := range loaders {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	for _, name := range settings {
		path := filepath.Join("/etc", name)
		args = append(args, "--ro-bind-try", path, path)
	}
	mounts, err := g.mounts(p)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.SortedFunc(maps.Keys(mounts), byDepth) {
		args = append(args, mounts[path]...)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	for _, path := range devices() {
		args = append(args, "--dev-bind-try", path, path)
	}
	args = append(args, "--clearenv")
	for _, pair := range p.Env {
		name, value, _ := strings.Cut(pair, "=")
		args = append(args, "--setenv", name, value)
	}
	return slices.Concat(args, []string{"--chdir", p.Dir, "--", p.Path}, p.Args), nil
}

// mounts returns bubblewrap's options for each path of a program.
func (g Guest) mounts(p Program) (map[string][]string, error) {
	mounts := map[string][]string{"/tmp": {"--tmpfs", "/tmp"}}
	for _, dir := range system {
		mounts[dir] = []string{"--ro-bind-try", dir, dir}
	}
	for _, path := range p.Read {
		path = filepath.Clean(path)
		mounts[path] = []string{"--ro-bind", path, path}
	}
	for _, path := range p.Write {
		path = filepath.Clean(path)
		mounts[path] = []string{"--bind", path, path}
	}
	if err := g.hide(mounts); err != nil {
		return nil, err
	}
	if _, all := mounts["/"]; all {
		return nil, fmt.Errorf("the artifact under test would read all files of the host")
	}
	return mounts, nil
}

// hide adds a mount over each hidden path, wherever a visible directory shows it.
func (g Guest) hide(mounts map[string][]string) error {
	visible := slices.Collect(maps.Keys(mounts))
	for _, path := range g.hidden {
		secret, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // nothing is there to hide
		}
		info, err := os.Stat(secret)
		if err != nil {
			return err
		}
		for _, shown := range append(visible, "/") {
			real, err := filepath.EvalSymlinks(shown)
			if err != nil {
				continue // not on this host
			}
			below, err := filepath.Rel(real, secret)
			switch {
			case err != nil || !filepath.IsLocal(below):
				continue
			case below == "." && shown != "/tmp":
				return fmt.Errorf("%s holds secrets, and the artifact under test would read them: move what it needs to a directory of its own", path)
			}
			place := filepath.Join(shown, below)
			if _, chosen := mounts[place]; !chosen { // what the program asks for by its own name stays
				mounts[place] = []string{"--ro-bind", "/dev/null", place}
				if info.IsDir() {
					mounts[place] = []string{"--tmpfs", place}
				}
			}
		}
	}
	return nil
}

// byDepth sorts a directory before what lies in it.
func byDepth(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
}
