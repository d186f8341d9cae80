package judge

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/app/build"
	"builder/internal/base/diag"
	"builder/internal/gates/device"
	"builder/internal/gates/gate"
	"builder/internal/gates/overlay"
	"builder/internal/input/pypi"
	"builder/internal/machine/gpu"
	"builder/internal/machine/guest"
	"builder/internal/machine/host"
	"builder/internal/machine/locate"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/sourcetree"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
)

// tolerance is the ratio of our speed to theirs below which more rounds are compared.
const tolerance = 0.95

// A DeviceRequest configures the gates on GPUs.
type DeviceRequest struct {
	GPUs      int      // 0: all
	Launcher  []string // as in [device.Setup]
	Tests     string
	Against   string
	Transport device.Transport
	MaxBytes  int64
	Limit     time.Duration
	Env       map[string]string
	Python    string   // interpreter of an environment with the framework
	With      []string // wheels to install beside the artifact
}

// openGateRun makes the state of an invocation. The caller calls close.
func openGateRun(s build.Setup, r GateRequest) (*gateRun, error) {
	b := &gateRun{Setup: s, options: r, log: io.Discard, close: func() {}, pulled: map[string]publish.Digest{}}
	var err error
	if b.trust, err = s.Keys.Trusted(); err != nil {
		return nil, err
	}
	if r.Attach {
		if _, err := s.Keys.Signing(); err != nil {
			return nil, err
		}
	}
	if r.Log != "" {
		f, err := os.Create(r.Log)
		if err != nil {
			return nil, diag.Errorf(diag.Usage, "--log: %w", err)
		}
		b.log = f
		b.close = func() { f.Close() }
	}
	scratch, err := os.MkdirTemp("", "builder-gate-*")
	if err != nil {
		err = diag.Errorf(diag.Usage, "%w", err).WithHint("TMPDIR must name a directory: make it, or leave TMPDIR out")
	}
	if err == nil {
		err = os.Chmod(scratch, 0o711) // guests of another user read files in it
	}
	closeLog := b.close
	b.scratch, b.close = scratch, func() { closeLog(); os.RemoveAll(scratch) }
	return b, err
}

// prepareGPUs finds the host's GPUs and prepares the files for the gates on them.
func (b *gateRun) prepareGPUs(ctx context.Context) error {
	d := b.options.Device
	if d == nil {
		return nil
	}
	if d.Tests != "" {
		path, err := b.tool(ctx, d.Tests)
		if err != nil {
			return err
		}
		if b.tests, err = locate.TestsDir(path, b.scratch); err != nil {
			return err
		}
	}
	if d.Against != "" {
		var err error
		if b.against, err = b.library(ctx, "--against", d.Against, "against"); err != nil {
			return err
		}
	}
	for _, path := range d.With {
		path, err := b.tool(ctx, path)
		if err != nil {
			return err
		}
		b.with = append(b.with, path)
	}
	if len(d.Launcher) > 0 { // the ranks are on other hosts
		return nil
	}
	host, err := gpu.Find(ctx, host.Run)
	if b.err = err; err != nil {
		return nil // a verdict reports the error
	}
	host = host.VisibleTo(d.Env)
	host.GPUs = append([]gpu.GPU{}, host.GPUs...) // an empty list in JSON, not null
	b.host = &host
	if len(host.GPUs) == 0 {
		return nil
	}
	return b.isolate(ctx)
}

// isolate finds the way to run artifacts on this host: without the user's home, keys and
// sockets.
func (b *gateRun) isolate(ctx context.Context) error {
	if b.guest.Found() {
		return nil
	}
	w, err := b.Open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	dir, why := w.Programs.Bubblewrap(ctx)
	program := ""
	if why == nil {
		program = pypi.BubblewrapProgram(dir)
	}
	hidden := []string{b.Keys.Home}
	if b.Keys.Key != "" {
		hidden = append(hidden, b.Keys.Key)
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		hidden = append(hidden, home)
	}
	b.guest, err = guest.Find(ctx, program, why, hidden...)
	if weaker := b.guest.Weaker(); weaker != "" {
		b.Keys.Note("%s", weaker)
	}
	return err
}

// openDir makes a directory for files that guests may read.
func (b *gateRun) openDir(pattern string) (string, error) {
	dir, err := os.MkdirTemp(b.scratch, pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// device returns the setup for the programs of nccl-tests, without a library.
func (b *gateRun) device() *device.Setup {
	o := b.options.Device
	host := gpu.Host{}
	if b.host != nil {
		host = *b.host
	}
	d := &device.Setup{
		Sweep: nccltests.Run, Host: host, Fault: b.err, GPUs: o.GPUs, Launcher: o.Launcher, Guest: b.guest, Programs: b.tests,
		Against: b.against.Dir, Baseline: b.against.Name, Transport: o.Transport, MaxBytes: o.MaxBytes,
		Rounds: 3, Tolerance: tolerance, Env: o.Env, Timeout: o.Limit, Log: b.log,
	}
	if len(o.Launcher) > 0 {
		d.Guest = guest.AsCaller()
	}
	if d.GPUs == 0 {
		d.GPUs = len(host.GPUs)
	}
	return d
}

// setup unpacks the library of an artifact and returns the setup for the gates on GPUs.
// It returns nil if no gate on GPUs was requested.
func (b *gateRun) setup(s subject.Subject) (*device.Setup, func(), error) {
	if b.options.Device == nil {
		return nil, func() {}, nil
	}
	d := b.device()
	if s.Library == "" {
		return d, func() {}, nil
	}
	dir, err := b.openDir("library-*")
	if err != nil {
		return nil, nil, err
	}
	d.Library = dir
	return d, func() { os.RemoveAll(dir) }, locate.Unpack(s.Artifact.Path, func(name string) bool { return name == s.Library }, dir)
}

// framework installs a wheel over the environment named by the user. It returns nil
// without one, or if no chosen gate runs the wheel there.
func (b *gateRun) framework(ctx context.Context, s subject.Subject, gpus *device.Setup) (gate.Box, error) {
	o := b.options.Device
	runs := func(g gate.Gate) bool { return g.Framework && g.Wants(s.Expect) && b.chosen(g, s, gpus) }
	if gpus == nil || o.Python == "" || !slices.ContainsFunc(gate.All(), runs) {
		return nil, nil
	}
	if err := b.isolate(ctx); err != nil {
		return nil, err
	}
	dir, err := b.openDir("overlay-*")
	if err != nil {
		return nil, err
	}
	wheels := append([]string{s.Artifact.Path}, b.with...)
	made, err := overlay.New(ctx, overlay.Overlay{
		Python: o.Python, Dir: dir, Guest: b.guest, Network: gpus.Network(), Read: []string{b.scratch}, Env: o.Env, Timeout: o.Limit,
	}, wheels...)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// testsTree unpacks the tree of upstream's tests and returns its directory. It returns
// "" if the artifact names no tests, if no chosen gate runs them, or if neither the store
// nor --set has the tree, which a gate reports.
func (b *gateRun) testsTree(ctx context.Context, s subject.Subject, gpus *device.Setup, framework gate.Box) (string, error) {
	pin := s.Entry.Tests
	for name := range b.Sources.Overrides {
		if name != pin.Project {
			return "", diag.Errorf(diag.Usage, "--set: %s has no source.%s", s.Artifact.Name, name).WithHint("the tests of its recipe are source.%s", cmp.Or(pin.Project, "NAME"))
		}
	}
	runs := func(g gate.Gate) bool { return g.Name == gate.UpstreamOnGPUs && b.chosen(g, s, gpus) }
	if framework == nil || pin.SHA256 == "" || !slices.ContainsFunc(gate.All(), runs) {
		return "", nil
	}
	w, err := b.Open(ctx)
	if err != nil {
		return "", err
	}
	defer w.Close()
	archive, err := b.Sources.Fetcher(w).Source(ctx, pin, io.Discard)
	if errors.Is(err, fs.ErrNotExist) && len(b.Sources.Places()[pin.Project]) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	tree, err := sourcetree.Read(archive, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	dir, err := b.openDir("tests-*")
	if err != nil {
		return "", err
	}
	return dir, tree.WriteTo(dir)
}

var byteText = regexp.MustCompile(`^(\d{1,9})([KMG]?)$`)

// ParseBytes parses a size in the notation of nccl-tests: 8, 64K, 128M, 8G.
func ParseBytes(text string) (int64, error) {
	m := byteText.FindStringSubmatch(strings.ToUpper(text))
	if m == nil {
		return 0, errors.New(strconv.Quote(text) + " is not a size such as 8, 64K, 128M or 8G")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, err
	}
	n <<= map[string]int{"": 0, "K": 10, "M": 20, "G": 30}[m[2]]
	if n < 8 || n > 1<<40 {
		return 0, errors.New(text + " is not between 8 bytes and 1024G")
	}
	return n, nil
}
