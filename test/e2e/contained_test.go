package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// inContainers builds a small cell through Docker and through Podman without a
// registry. The image is made of the native engine's files. Both daemons use their own
// directories, so that the other chapters do not see them.
func inContainers(b *tool) {
	image := filepath.Join(b.dir, "engine.tar")
	_, pinned, _ := strings.Cut(engineImage.FindString(b.want(0, "engine", "image", "--to", image).stdout), "=")
	b.want(2, "engine", "image", "--to", image)
	b.t.Run("native", func(t *testing.T) { copyEngine(b.beside(t, "native"), pinned) })
	site, _ := b.steady()
	cell := []string{"run", "steady", "--recipes", site, "--turn", "1", "--pace", "swift"}
	sums := map[string]string{}
	for _, d := range []struct {
		program string
		needs   [][2]string          // programs and their packages: a host may have only docker's client
		start   func(*tool) []string // returns the variables for clients
	}{
		{"docker", [][2]string{{"dockerd", "docker.io"}, {"docker", "docker-cli"}}, startDocker},
		{"podman", [][2]string{{"podman", "podman"}, {"nft", "nftables"}}, confinePodman},
	} {
		b.t.Run(d.program, func(t *testing.T) {
			own := *b.beside(t, d.program)
			for _, need := range d.needs {
				bring(t, need[0], need[1])
			}
			own.cache = append(own.cache, append(d.start(&own), "BUILDER_ENGINE=")...)
			own.stopsEngine() // uses the variables of the daemon
			if d.program == "docker" {
				own.ask("docker", "load", "--input", image)
				contains(t, own.run("doctor").stdout, "docker answers and has the image localhost/builder-engine:")
				sums[d.program] = own.contained(d.program, cell)
			} else {
				own.cache = append(own.cache, "BUILDER_ENGINE_IMAGE="+pinned)
				sums[d.program] = own.contained(d.program, cell)
			}
		})
	}
	b.want(0, append(cell, "--engine", "native")...)
	native := b.runJSON("out").Cells[0].Artifacts[0].SHA256
	for program, sum := range sums {
		check.That(b.t, sum == native, "through %s the wheel is %s, and by the native engine %s", program, sum, native)
	}
}

// copyEngine starts the native engine of a new home without Go and without a network.
func copyEngine(b *tool, pinned string) {
	b.cache = append(b.cache, "BUILDER_ENGINE=native", "HOME="+b.dir, "XDG_CACHE_HOME="+b.dir, "GOPROXY=off", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	file, digest, _ := strings.Cut(pinned, "@")
	b.cache = append(b.cache, "BUILDER_ENGINE_IMAGE="+file+"@sha256:"+strings.Repeat("0", 64))
	contains(b.t, b.want(8, "engine", "up").stderr, "wrong content")
	b.cache = append(b.cache, "BUILDER_ENGINE_IMAGE=file://"+file+"@"+digest)
	contains(b.t, b.want(0, "engine", "up").stderr, "copied the engine")
	contains(b.t, b.want(0, "engine", "status").stdout, "running")
}

// contained builds a cell in a container. The sandbox holds, the cache limit applies,
// and the cache can be freed. It returns the digest of the wheel.
func (b *tool) contained(program string, run []string) string {
	b.t.Helper()
	b.cache = append(b.cache, "BUILDER_ENGINE_CACHE=20GB")
	r := b.want(0, run...)
	cell := b.runJSON("out").Cells[0]
	check.That(b.t, strings.HasPrefix(cell.Engine, "container+"+program+"://builder-engine-") && cell.Status == "pass" &&
		cell.From == "build", "not built in %s: %+v\n%s", program, cell, r.stderr)
	name := strings.TrimPrefix(cell.Engine, "container+"+program+"://")
	contains(b.t, b.ask(program, "inspect", "--format", "{{.Args}} {{.Config.Cmd}}", name), "1000,2000,10000")
	r = b.want(0, "store", "gc", "--keep", "20GB")
	contains(b.t, r.stdout, "the engine's cache in "+program+" has 0.0 KB, had ")
	check.Same(b.t, "store gc left", "", b.ask(program, "volume", "ls", "--quiet")+b.ask(program, "ps", "--all", "--quiet"))
	return cell.Artifacts[0].SHA256
}

// ask runs a client program of a daemon with the tool's environment.
func (b *tool) ask(program string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = b.env()
	var stderr bytes.Buffer // podman logs warnings
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	must.Hold(b.t, err == nil, "%s %s: %v\n%s", program, strings.Join(args, " "), err, &stderr)
	return strings.TrimSpace(string(out))
}

// bring installs the Debian package of a program if it is missing.
func bring(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", pkg}} {
		cmd := exec.Command("apt-get", append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%s is not there and %s cannot be installed: %v\n%s", program, pkg, err, out)
		}
	}
}

// startDocker starts a daemon with all its files in the chapter's directory.
func startDocker(b *tool) []string {
	b.t.Helper()
	dir, err := os.MkdirTemp("", "d") // a short path, because it holds sockets
	must.Succeed(b.t, err)
	socket := "unix://" + filepath.Join(dir, "sock")
	args := []string{
		"--host", socket, "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
		"--add-runtime", "fit=" + fittingRuntime(b), "--default-runtime", "fit",
	}
	log := must.Get(os.Create(filepath.Join(b.dir, "dockerd.log")))(b.t)
	defer log.Close()
	cmd := exec.Command("dockerd", args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(b.t, cmd.Start())
	b.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		_ = syscall.Unmount(filepath.Join(dir, "data"), syscall.MNT_DETACH) // dockerd may mount it over itself and leave that
		err := os.RemoveAll(dir)
		check.That(b.t, err == nil, "%v", err)
	})
	for range 60 {
		if exec.Command("docker", "--host", socket, "info").Run() == nil {
			return []string{"DOCKER_HOST=" + socket}
		}
		time.Sleep(time.Second)
	}
	text, _ := os.ReadFile(log.Name())
	b.t.Fatalf("dockerd does not come up: %s", text)
	return nil
}

// confinePodman makes Podman keep its files in the chapter's directory, and hides
// Docker.
func confinePodman(b *tool) []string {
	b.t.Helper()
	storage, settings := filepath.Join(b.dir, "storage.conf"), filepath.Join(b.dir, "containers.conf")
	graph, run := filepath.Join(b.dir, "graph"), filepath.Join(b.dir, "run")
	err := errors.Join(
		os.WriteFile(storage, []byte("[storage]\ndriver = \"overlay\"\ngraphroot = "+strconv.Quote(graph)+"\nrunroot = "+strconv.Quote(run)+"\n"), 0o644),
		os.WriteFile(settings, []byte("[engine]\nruntime = \"fit\"\n[engine.runtimes]\nfit = ["+strconv.Quote(fittingRuntime(b))+"]\n"), 0o644),
	)
	must.Succeed(b.t, err)
	b.t.Cleanup(func() { // Podman mounts the directory over itself and never unmounts it
		if err := syscall.Unmount(filepath.Join(graph, "overlay"), syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) {
			b.t.Errorf("unmounting what Podman left: %v", err)
		}
	})
	return []string{"CONTAINERS_STORAGE_CONF=" + storage, "CONTAINERS_CONF=" + settings, "DOCKER_HOST=unix:///nonexistent"}
}

// fittingRuntime writes a wrapper of runc that requests only the capabilities of this
// host. A privileged container requests all capabilities, but a machine that is itself
// a container often lacks CAP_SYS_RESOURCE.
func fittingRuntime(b *tool) string {
	b.t.Helper()
	path := filepath.Join(b.dir, "fit")
	must.Succeed(b.t, os.WriteFile(path, []byte(fitting), 0o755))
	return path
}

const fitting = `#!/bin/sh
read -r caps <<END
$(sed -n 's/^CapEff:\t//p' /proc/self/status)
END
if [ $(((0x$caps >> 24) & 1)) = 1 ]; then exec runc "$@"; fi
last=
for word; do
	case $last in
	--bundle) last=$word/config.json ;;
	--process) last=$word ;;
	*) last=$word; continue ;;
	esac
	sed -i 's/"CAP_SYS_RESOURCE",//g; s/,"CAP_SYS_RESOURCE"//g; s/"rlimits":\[[^]]*\]/"rlimits":[]/' "$last"
done
exec runc "$@"
`
