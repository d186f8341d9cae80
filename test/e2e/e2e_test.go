// Package e2e runs the tool as users do: the real engine builds the real wheel from
// nothing, with real input. The tests are slow (CONTRIBUTING.md has the times) and need
// root and a network, so they run only with BUILDER_E2E=1, as in make test. Then they
// fail, and never skip, if something is missing.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

// tool is the built program with its own state directory.
type tool struct {
	t     *testing.T
	path  string
	home  string
	dir   string   // working directory, with out/ in it
	cache []string // variables that set the user's cache directory
	first *first
}

// first is the home that builds the engine. An image brings the engine to other homes.
type first struct {
	home  string
	dir   string // of the image
	once  sync.Once
	image string // the line that `builder engine image` prints for other hosts
}

func newTool(t *testing.T) *tool {
	t.Helper()
	if os.Getenv("BUILDER_E2E") == "" {
		t.Skip("set BUILDER_E2E=1, or run make test")
	}
	temporary := oneTemporary(t)
	dir := t.TempDir()
	checkOut(t, dir)
	path := filepath.Join(dir, "builder")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "./cmd/builder")
	build.Dir = dir
	out, err := build.CombinedOutput()
	must.Hold(t, err == nil, "building the tool: %v\n%s", err, out)
	goCache := must.Get(exec.Command("go", "env", "GOCACHE").Output())(t)
	engine := cmp.Or(os.Getenv("BUILDER_ENGINE"), "native") // only one chapter uses Docker and Podman
	cache := filepath.Join(dir, "cache")
	b := &tool{t, path, filepath.Join(cache, "builder"), dir, []string{"XDG_CACHE_HOME=" + cache, "GOCACHE=" + strings.TrimSpace(string(goCache)), "BUILDER_ENGINE=" + engine, "BUILDER_ACCEPT=all"}, &first{}}
	must.Succeed(t, os.Mkdir(cache, 0o755))
	if home := os.Getenv("BUILDER_HOME"); home != "" {
		must.Succeed(t, os.MkdirAll(home, 0o755), os.Symlink(home, b.home))
		b.home = home
	}
	b.first.home, b.first.dir = b.home, cache
	b.stopsEngine()
	b.clearsUp(temporary)
	return b
}

// checkOut copies the files of the repository to dir, as git clone would after a commit
// of all changes. make wheel runs there.
func checkOut(t *testing.T, dir string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = "../.."
	names, err := list.Output()
	must.Hold(t, err == nil, "listing the files of the repository: %v", err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("..", "..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not committed yet
		}
		data, err2 := os.ReadFile(filepath.Join("..", "..", name))
		must.Succeed(t, err, err2, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), data, info.Mode().Perm()))
	}
}

// stopsEngine stops the engine of a home at the end of the test.
func (b *tool) stopsEngine() {
	own := *b
	b.t.Cleanup(func() { own.command(context.Background(), "engine", "down").Run() })
}

// engineImage matches the line for other hosts in the output of `builder engine image`.
var engineImage = regexp.MustCompile(`BUILDER_ENGINE_IMAGE=\S+@sha256:[0-9a-f]{64}`)

// copiesEngine makes a tool with another home copy the programs of the first one.
func (b *tool) copiesEngine() {
	b.t.Helper()
	b.first.once.Do(func() {
		own := *b
		own.home = b.first.home
		said := own.want(0, "engine", "image", "--to", filepath.Join(b.first.dir, "engine.tar")).stdout
		b.first.image = engineImage.FindString(said)
	})
	b.cache = append(slices.Clip(b.cache), b.first.image)
}

// beside returns the tool with another home and another working directory.
func (b *tool) beside(t *testing.T, name string) *tool {
	t.Helper()
	own := *b
	own.t, own.home, own.dir = t, filepath.Join(b.dir, name, "home"), filepath.Join(b.dir, name)
	must.Succeed(t, os.MkdirAll(own.dir, 0o755))
	own.stopsEngine()
	return &own
}

func (b *tool) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.Dir = b.dir
	cmd.Env = append(b.env(), "PLANTED=planted")
	return cmd
}

// env is the environment of the tool.
func (b *tool) env() []string {
	return append(append(os.Environ(), b.cache...), "BUILDER_HOME="+b.home)
}

// result is the visible outcome of one invocation.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// run runs the tool to its end and copies its output to the test's log.
func (b *tool) run(args ...string) result {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := b.command(b.t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	r := result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), took: time.Since(start)}
	var exit *exec.ExitError
	must.Hold(b.t, err == nil || errors.As(err, &exit), "%v", err)
	b.t.Logf("$ builder %s  # exit %d, %.2fs\n%s%s", strings.Join(args, " "), r.code, r.took.Seconds(), r.stderr, r.stdout)
	return r
}

// want runs the tool and fails the test on another exit code.
func (b *tool) want(code int, args ...string) result {
	b.t.Helper()
	r := b.run(args...)
	must.Hold(b.t, r.code == code, "builder %s: exit %d, want %d", strings.Join(args, " "), r.code, code)
	return r
}

// runFile holds the used parts of run.json.
type runFile struct{ Cells []cellFile }

type cellFile struct {
	ID, Key, Status, From, Engine string
	Axes                          map[string]string
	Artifacts                     []struct{ Path, SHA256 string }
	Verdicts                      []struct{ Gate, Status, Evidence, Remedy string }
	Steps                         []struct {
		Name    string
		Seconds float64
		Cached  bool
	}
}

// quick fails the test if a command took more than a twentieth of the build that it
// replaced. The bound is wide, because the host may be busy.
func (b *tool) quick(r result, made cellFile) {
	b.t.Helper()
	var whole float64
	for _, s := range made.Steps {
		if s.Name == "build" && s.Cached {
			return // cached by the engine of an earlier story: no time to compare with
		}
		whole += s.Seconds
	}
	ratio := r.took.Seconds() / whole
	check.That(b.t, ratio <= 1./20, "it took %v, %.3f of the %.0f s of the build", r.took, ratio, whole)
}

func (b *tool) runJSON(out string) runFile {
	b.t.Helper()
	if !filepath.IsAbs(out) {
		out = filepath.Join(b.dir, out)
	}
	data := must.Get(os.ReadFile(filepath.Join(out, "run.json")))(b.t)
	var f runFile
	must.Succeed(b.t, json.Unmarshal(data, &f))
	return f
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		check.That(t, strings.Contains(text, want), "%q is not in:\n%s", want, text)
	}
}

const gates = 19

// mainJob runs the commands of the README.
func mainJob(b *tool) {
	b.getsGo()
	b.shows(readme)
	cell := b.runJSON("out").Cells[0]
	must.Hold(b.t, cell.Status == "pass" && cell.From == "build" && len(cell.Verdicts) == gates, "got %+v", cell)
	for _, v := range cell.Verdicts {
		check.That(b.t, v.Status == "pass" && v.Evidence != "", "gate %s: %s: %q", v.Gate, v.Status, v.Evidence)
	}
	wheel := cell.Artifacts[0].Path
	check.That(b.t, strings.Contains(wheel, "+rocm5.7.tf2.13.0-cp311"), "the wheel's version does not name the stack: %s", wheel)
	log := must.Get(os.ReadFile(filepath.Join(b.dir, "out", cell.ID, "logs", "build.log")))(b.t)
	contains(b.t, string(log), "-DHAVE_ROCM=1", "-DHAVE_NCCL=1")
}

// getsGo checks that a host without Go gets the pinned one.
func (b *tool) getsGo() {
	b.t.Helper()
	cmd := exec.Command("./toolchain.sh")
	cmd.Dir = b.dir
	cmd.Env = append(b.env(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	cmd.Stderr = b.t.Output()
	bin, err := cmd.Output()
	must.Hold(b.t, err == nil, "toolchain.sh: %v", err)
	said, err := exec.Command(filepath.Join(strings.TrimSpace(string(bin)), "go"), "version").Output()
	check.That(b.t, err == nil && strings.HasPrefix(string(said), "go version go1."), "the Go in %q says %q: %v", bin, said, err)
}

// again runs the main job once more. The key is in the store, so neither engine nor
// network is used.
func again(b *tool) {
	before := b.runJSON("out").Cells[0]
	b.want(0, "engine", "down")
	r := b.want(0, "run", "horovod", "--rocm", "5.7", "--locked", "--offline")
	b.quick(r, before)
	cell := b.runJSON("out").Cells[0]
	check.That(b.t, cell.From == "store" && cell.Artifacts[0].SHA256 == before.Artifacts[0].SHA256 && len(cell.Verdicts) == gates,
		"got %+v", cell)
	contains(b.t, b.want(0, "engine", "status").stdout, "not running")
}

// makeSite makes a directory for --recipes with these files.
func (b *tool) makeSite(files map[string]string) string {
	b.t.Helper()
	dir := b.t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Succeed(b.t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// read returns a file of the repository.
func (b *tool) read(path string) string {
	b.t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join("..", "..", path)))(b.t))
}

func withoutFindHIP(b *tool) {
	patch := b.read("patches/horovod/10-findhip.yaml")
	never := strings.Replace(patch, `when: {rocm: ">=5.2"}`, `when: {rocm: ">=99"}`, 1)
	must.Hold(b.t, never != patch, "the patch's condition has moved")
	site := b.makeSite(map[string]string{"patches/horovod/10-findhip.yaml": never})
	cell := []string{"run", "horovod", "--recipes", site, "--rocm", "5.7", "--out", "out-nofindhip", "--accept"}
	contains(b.t, b.want(2, append(cell, "nccl")...).stderr, "brings code that no gate can answer for: horovod-0.28.1+rocm5.7-tf2.13.0-cp311 (patch findhip)")
	r := b.want(5, append(cell, "horovod")...)
	contains(b.t, r.stderr, `Unknown CMake command "hip_add_library"`, "hint: ", "apply the patch findhip", "logs/build.log")
	failed := b.runJSON("out-nofindhip").Cells[0]
	check.That(b.t, failed.Status == "error", "got %+v", failed)
}

// verified checks the results of a run with only the public key, and detects a changed
// byte.
func verified(b *tool) {
	cell := b.runJSON("out").Cells[0]
	dir := filepath.Join("out", cell.ID)
	r := b.want(0, "verify", dir)
	contains(b.t, r.stdout, "signatures  pass", "provenance  pass", "sbom        pass", "verdicts    pass", cell.ID)
	b.quick(r, cell)
	// The cell promises glibc 2.35, which Ubuntu 22.04 has.
	check.Same(b.t, "auditwheel reads", "manylinux_2_35_x86_64", auditwheel(b.t, filepath.Join(b.dir, cell.Artifacts[0].Path)))
	copied := filepath.Join(b.t.TempDir(), cell.ID)
	out, err := exec.Command("cp", "-r", filepath.Join(b.dir, dir), copied).CombinedOutput()
	must.Hold(b.t, err == nil, "%v: %s", err, out)
	wheels, err := filepath.Glob(filepath.Join(copied, "*.whl"))
	must.Hold(b.t, err == nil && len(wheels) == 1, "%v, %v", wheels, err)
	data := must.Get(os.ReadFile(wheels[0]))(b.t)
	data[len(data)/2] ^= 1
	must.Succeed(b.t, os.WriteFile(wheels[0], data, 0o600))
	contains(b.t, b.want(6, "verify", copied).stderr, "the statement is about other bytes")
}

// published puts the wheel into an index and a registry, where clients without knowledge
// of builder find it. Hosts with only the public key take it back. TestRealServers of
// internal/publishing/upload uploads to servers.
func published(b *tool) {
	made := b.runJSON("out").Cells[0]
	dir := filepath.Join("out", made.ID)
	place := "file:" + filepath.Join(b.t.TempDir(), "index")
	registry, stop := ocitest.Serve(false)
	defer stop()

	contains(b.t, b.want(0, "publish", dir, "--to", place).stdout, "published", "candidate", "pip")
	contains(b.t, b.want(0, "publish", dir, "--to", place).stdout, "was there")
	contains(b.t, b.want(6, "publish", "promote", made.ID, "--at", place).stderr, "gate reproducible")
	b.takenFrom(place, made)

	contains(b.t, b.want(0, "publish", dir, "--to", registry).stdout, "published", "candidate", "pull and verify")
	contains(b.t, b.want(0, "publish", "list", "--at", place).stdout, made.ID, strconv.Itoa(gates)+" of "+strconv.Itoa(gates))
	files, err := ocitest.Pull(registry, strings.ReplaceAll(made.ID, "+", "_")+"-candidate")
	check.That(b.t, err == nil && sum(files[filepath.Base(made.Artifacts[0].Path)]) == made.Artifacts[0].SHA256,
		"pulled %d files, %v", len(files), err)
	b.takenFrom(registry, made)
}

// takenFrom takes a cell from its place of publication on a host with an empty home.
func (b *tool) takenFrom(place string, made cellFile) {
	own := *b
	own.home = filepath.Join(b.t.TempDir(), "home")
	trust := filepath.Join(b.home, "key.pem.pub")
	out := filepath.Join(b.t.TempDir(), "out")
	r := own.want(0, "run", "horovod", "--rocm", "5.7", "--locked", "--from", place, "--from-only", "--trust", trust, "--out", out)
	b.quick(r, made)
	taken := b.runJSON(out).Cells[0]
	check.That(b.t, taken.From == "registry" && taken.Artifacts[0].SHA256 == made.Artifacts[0].SHA256 && len(taken.Verdicts) == gates,
		"got %+v", taken)
	own.want(0, "verify", filepath.Join(out, taken.ID), "--trust", trust)
}

// elsewhere builds the main wheel once more from its bundle and the exported store,
// without a network. The state directory, the engine and the key are new; only the
// engine's programs are copied from an image of the first home. TestFull covers a build on one
// processor.
func elsewhere(b *tool) {
	cell := b.runJSON("out").Cells[0]
	own := *b
	own.home = filepath.Join(b.t.TempDir(), "another", "home")
	own.copiesEngine()
	own.stopsEngine()
	carried := filepath.Join(b.t.TempDir(), "carried.tar")
	b.want(0, "store", "export", "horovod", "--rocm", "5.7", "--offline", "--to", carried)
	contains(b.t, own.want(0, "store", "import", carried).stdout, "the store already had 0 files")
	must.Succeed(b.t, os.Remove(carried))
	r := own.want(0, "verify", filepath.Join("out", cell.ID), "--rebuild", "--attach", "--offline", "--trust", filepath.Join(b.home, "key.pem.pub"))
	contains(b.t, r.stdout, "rebuild     pass", "2 files are equal in a second build")

	// Device code must pass a gate on a GPU before stable, even if another host rebuilt
	// it.
	place := "file:" + filepath.Join(b.t.TempDir(), "index")
	b.want(0, "publish", filepath.Join("out", cell.ID), "--to", place, "--trust", filepath.Join(own.home, "key.pem.pub"))
	r = b.want(6, "publish", "promote", cell.ID, "--at", place, "--trust", filepath.Join(own.home, "key.pem.pub"))
	contains(b.t, r.stderr, "gate gpu-allreduce did not run, and the policy stable requires it")

	// A wheel without device code reaches stable after another host has rebuilt it.
	site := must.Get(filepath.Abs("../../docs/examples/jinja"))(b.t)
	b.want(0, "run", "jinja", "--recipes", site, "--out", "out-jinja", "--locked")
	cell = b.runJSON("out-jinja").Cells[0]
	b.want(0, "publish", filepath.Join("out-jinja", cell.ID), "--to", place)
	r = b.want(6, "publish", "promote", cell.ID, "--at", place)
	contains(b.t, r.stderr, "gate reproducible did not run, and the policy stable requires it")
	own.want(0, "verify", filepath.Join("out-jinja", cell.ID), "--rebuild", "--attach", "--trust", filepath.Join(b.home, "key.pem.pub"))
	b.want(0, "publish", filepath.Join("out-jinja", cell.ID), "--to", place, "--trust", filepath.Join(own.home, "key.pem.pub"))
	r = b.want(0, "publish", "promote", cell.ID, "--at", place, "--trust", filepath.Join(own.home, "key.pem.pub"))
	contains(b.t, r.stdout, "candidate, stable")
}

// leaks runs a build that tries to reach the network, to read the host's files, and to
// use the host's processor. Each attempt is refused, gives the same result everywhere,
// or is detected.
func leaks(b *tool) {
	built := b.read("recipes/horovod.yaml")
	from, to := strings.Index(built, "\nbuild: |\n"), strings.Index(built, "\nrequires:\n")
	must.Hold(b.t, from >= 0 && to >= from, "the recipe's build script has moved")
	site := b.makeSite(map[string]string{
		"recipes/horovod.yaml":      built[:from] + leakyBuild + built[to:],
		"recipes/horovod.lock.json": b.read("recipes/horovod.lock.json"),
	})
	r := b.want(6, "run", "horovod", "--recipes", site, "--rocm", "5.7", "--out", "out-leaks")
	contains(b.t, r.stderr, "gate cpu-isa: fail")
	cell := b.runJSON("out-leaks").Cells[0]
	log := must.Get(os.ReadFile(filepath.Join(b.dir, "out-leaks", cell.ID, "logs", "build.log")))(b.t)
	contains(b.t, string(log), "http: refused", "names: refused", "host: localhost", "model name\t: builder", "processors in cpuinfo: 1")
	for _, never := range []string{"got out", "TRACEPARENT", "OTEL_", "planted"} {
		check.That(b.t, !strings.Contains(string(log), never), "%q is in the log of the build:\n%s", never, log)
	}
}

// leakyBuild is a build script that writes its observations into a wheel.
const leakyBuild = `
build: |
  tried() {
    name=$1
    shift
    if ! command -v "$1" >/dev/null; then echo "$name: absent"
    elif timeout 20 "$@" >/dev/null 2>&1 </dev/null; then echo "$name: got out"
    else echo "$name: refused"; fi
  }
  tried pip pip download --no-deps six
  tried curl curl --fail --max-time 5 http://192.0.2.1/
  tried git git ls-remote https://github.com/horovod/horovod
  tried http python -c 'import urllib.request; urllib.request.urlopen("http://192.0.2.1/", timeout=5)'
  tried names python -c 'import socket; socket.getaddrinfo("github.com", 443)'
  tried loopback-of-the-host python -c 'import socket; socket.create_connection(("127.0.0.1", 53), 5)'
  echo "host: $(hostname)"
  grep 'model name' /proc/cpuinfo
  echo "processors in cpuinfo: $(grep -c ^processor /proc/cpuinfo)"
  env
  mkdir -p w/horovod/tensorflow w/horovod-0.28.1.dist-info
  printf 'void add(int *a, int *b, int n) { for (int i = 0; i < n; i++) a[i] = a[i] * 3 + b[i]; }\n' > add.c
  "$CC" -O3 -march=native -shared -fPIC -o w/horovod/tensorflow/mpi_lib.so add.c
  printf 'Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n' > w/horovod-0.28.1.dist-info/METADATA
  printf 'Wheel-Version: 1.0\nGenerator: leaky\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n' > w/horovod-0.28.1.dist-info/WHEEL
  python -m wheel pack w --dest-dir "$BUILDER_DIST"
`

// withCPUTensorFlow is the recipe of Horovod against tensorflow-cpu.
func (b *tool) withCPUTensorFlow() string {
	b.t.Helper()
	built := b.read("recipes/horovod.yaml")
	recipe := strings.ReplaceAll(built, "tensorflow-rocm=={{tensorflow}}.570", "tensorflow-cpu==2.15.1")
	must.Hold(b.t, recipe != built, "the recipe's requirement has moved")
	return recipe
}

// frameworkOfTheOtherVendor builds against tensorflow-cpu. builder refuses it before
// anything is compiled.
func frameworkOfTheOtherVendor(b *tool) {
	site := b.makeSite(map[string]string{
		"recipes/horovod.yaml":      b.withCPUTensorFlow(),
		"recipes/horovod.lock.json": b.read("recipes/horovod.lock.json"),
	})
	r := b.want(5, "run", "horovod", "--recipes", site, "--rocm", "5.7", "--out", "out-asked")
	contains(b.t, r.stderr, "nothing was compiled", "the framework 2.15.1 reports platform none, expected rocm", "hint: the framework is of the other vendor")
}

// cpuTensorFlow waives the answer of the framework, and builds without the patch that
// seals the rendezvous. The build succeeds silently, and the gates refuse a wheel that
// cannot load.
func cpuTensorFlow(b *tool) {
	recipe := b.withCPUTensorFlow()
	// The wheel is refused anyway, so it need not be fast.
	debug := strings.Replace(recipe, "\nenv:\n", "\nenv:\n  HOROVOD_DEBUG: \"1\"\n", 1)
	must.Hold(b.t, debug != recipe, "the recipe's environment has moved")
	patch := b.read("patches/horovod/70-rendezvous-seal.yaml")
	never := strings.Replace(patch, `when: {hardening: "on"}`, `when: {hardening: "on", rocm: ">=99"}`, 1)
	must.Hold(b.t, never != patch, "the patch's condition has moved")
	waived := strings.Replace(debug, "\nexpect:\n", `
expect:
  waivers:
    - {gate: platform, because: the other gates are on trial, issue: "https://github.com/horovod/horovod/issues/1", until: "2099-12-31"}
`, 1)
	must.Hold(b.t, waived != debug, "the recipe's promises have moved")
	site := b.makeSite(map[string]string{
		"recipes/horovod.yaml":                     waived,
		"recipes/horovod.lock.json":                b.read("recipes/horovod.lock.json"),
		"patches/horovod/70-rendezvous-seal.yaml":  never,
		"patches/horovod/70-rendezvous-seal.patch": b.read("patches/horovod/70-rendezvous-seal.patch"),
	})
	r := b.want(6, "run", "horovod", "--recipes", site, "--rocm", "5.7", "--out", "out-cpu")
	contains(b.t, r.stderr, "gate import: fail", "undefined symbol", "gate check-build: fail", "framework [ ] TensorFlow")
	contains(b.t, r.stderr, "gate rendezvous: fail")
	cell := b.runJSON("out-cpu").Cells[0]
	check.That(b.t, cell.Status == "fail" && len(cell.Verdicts) == gates && strings.Contains(cell.Artifacts[0].Path, "/rejected/"),
		"got %+v", cell)
	for _, v := range cell.Verdicts {
		check.That(b.t, v.Status == "pass" || v.Remedy != "", "gate %s has no remedy", v.Gate)
	}
}

// smallNCCL builds a library with one function of NCCL. All functions would take an
// hour.
var smallNCCL = []string{"run", "nccl", "--version", "2.29.7", "--arch", "sm_90", "--functions", "allreduce-sum-f32", "--rdma", "verbs"}

func ncclVerbs(b *tool) {
	b.want(0, append(smallNCCL, "--out", "out-nccl")...)
	cell := b.runJSON("out-nccl").Cells[0]
	must.Hold(b.t, cell.Status == "pass" && len(cell.Artifacts) == 4, "got %+v", cell)
	contains(b.t, b.evidence(cell.Verdicts),
		"needs libibverbs.so.1", "libibverbs is linked", "in libibverbs.so.1", "functions of the vendor's 2.29.7",
		"reports 2.29.7+cuda13.0 and 22907", "requires GLIBC_2.29", ".txz: ")
	path := filepath.Join(b.dir, cell.Artifacts[0].Path)
	tag := auditwheel(b.t, path)
	check.That(b.t, strings.HasSuffix(path, "-py3-none-"+tag+".whl"), "auditwheel reads %s from %s", tag, filepath.Base(path))
}

// ncclUnlinked builds NCCL as upstream's makefiles do on Debian: the link succeeds, but
// no symbol of libibverbs can be resolved.
func ncclUnlinked(b *tool) {
	patch := b.read("patches/nccl/12-rdma-libverbs-order.yaml")
	never := strings.Replace(patch, `version: ">=2.27"`, `version: ">=99"`, 1)
	must.Hold(b.t, never != patch, "the patch's condition has moved")
	site := b.makeSite(map[string]string{"patches/nccl/12-rdma-libverbs-order.yaml": never})
	r := b.want(6, append(smallNCCL, "--recipes", site, "--out", "out-unlinked")...)
	contains(b.t, r.stderr, "gate elf-needed: fail", "gate elf-symbols: fail", "requires 25 symbols", "ibv_reg_mr_iova2", "gate rdma: fail", "used but not linked")
	cell := b.runJSON("out-unlinked").Cells[0]
	check.That(b.t, cell.Status == "fail" && strings.Contains(cell.Artifacts[0].Path, "/rejected/"), "got %+v", cell)
}

// evidence joins the evidence of the gates and fails the test unless all passed.
func (b *tool) evidence(verdicts []struct{ Gate, Status, Evidence, Remedy string }) string {
	b.t.Helper()
	var all []string
	for _, v := range verdicts {
		check.That(b.t, v.Status == "pass", "gate %s: %s: %s", v.Gate, v.Status, v.Evidence)
		all = append(all, v.Evidence)
	}
	return strings.Join(all, "\n")
}
