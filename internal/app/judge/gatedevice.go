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

	"builder/internal/app/build"
	"builder/internal/app/home"
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

// A DeviceRequest configures the gates on GPUs. Its setup lacks what the host decides.
type DeviceRequest struct {
	device.Setup
	Tests   string   // place of the programs of nccl-tests
	Library string   // place of the library to compare with
	Python  string   // interpreter of an environment with the framework
	With    []string // wheels to install beside the artifact
}

// openGateRun makes the state of an invocation. The caller calls close.
func openGateRun(s build.Setup, r GateRequest) (*gateRun, error) {
	b := &gateRun{Setup: s, options: r, log: io.Discard, closeLog: func() error { return nil }, pulled: map[string]publish.Digest{}}
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
		b.log, b.closeLog = f, f.Close
	}
	b.scratch, err = os.MkdirTemp("", "builder-gate-*")
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "%w", err).WithHint("TMPDIR must name a directory: make it, or leave TMPDIR out")
	}
	return b, os.Chmod(b.scratch, 0o711) // guests of another user read files in it
}

// close removes the files of an invocation.
func (b *gateRun) close() {
	b.closeLog()
	os.RemoveAll(b.scratch)
}

// prepareGPUs finds the host's GPUs and prepares the files for the gates on them.
func (b *gateRun) prepareGPUs(ctx context.Context) error {
	o := b.options.Device
	if o == nil {
		return nil
	}
	d := o.Setup
	b.gpus = &d
	d.Sweep, d.Log = nccltests.Run, b.log
	if o.Tests != "" {
		path, err := b.tool(ctx, o.Tests)
		if err != nil {
			return err
		}
		if d.Programs, err = locate.TestsDir(path, b.scratch); err != nil {
			return err
		}
	}
	if o.Library != "" {
		other, err := b.library(ctx, "--against", o.Library, "against")
		if err != nil {
			return err
		}
		d.Against, d.Baseline = other.Dir, other.Name
	}
	for _, path := range o.With {
		path, err := b.tool(ctx, path)
		if err != nil {
			return err
		}
		b.with = append(b.with, path)
	}
	if len(d.Launcher) > 0 { // the ranks are on other hosts
		d.Guest = guest.AsCaller()
		return nil
	}
	found, err := gpu.Find(ctx, host.Run)
	if d.Fault = err; err != nil {
		return nil // a verdict reports the error
	}
	found = found.VisibleTo(d.Env)
	found.GPUs = append([]gpu.GPU{}, found.GPUs...) // an empty list in JSON, not null
	b.host, d.Host = &found, found
	if d.GPUs == 0 {
		d.GPUs = len(found.GPUs)
	}
	if len(found.GPUs) == 0 {
		return nil
	}
	d.Guest, err = b.isolate(ctx)
	return err
}

// isolate finds the way to run artifacts on this host: without the user's home, keys and
// sockets.
func (b *gateRun) isolate(ctx context.Context) (guest.Guest, error) {
	w, err := home.Open(ctx, b.Keys, b.NoInstall)
	if err != nil {
		return guest.Guest{}, err
	}
	defer w.Close()
	dir, why := w.Programs.Install(ctx, pypi.Bubblewrap)
	program := ""
	if why == nil {
		program = pypi.Bubblewrap.Path(dir)
	}
	hidden := []string{b.Keys.Home}
	if b.Keys.Key != "" {
		hidden = append(hidden, b.Keys.Key)
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		hidden = append(hidden, home)
	}
	found, err := guest.Find(ctx, program, why, hidden...)
	if weaker := found.Weaker(); weaker != "" {
		b.Keys.Note("%s", weaker)
	}
	return found, err
}

// openDir makes a directory below scratch for files that guests may read.
func openDir(scratch, pattern string) (string, error) {
	dir, err := os.MkdirTemp(scratch, pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// unpackLibrary returns the setup for the gates on GPUs, with the library of an artifact. It
// returns nil if no gate on GPUs was requested.
func (b *gateRun) unpackLibrary(s subject.Subject) (*device.Setup, error) {
	if b.gpus == nil || s.Library == "" {
		return b.gpus, nil
	}
	d := *b.gpus
	var err error
	if d.Library, err = openDir(b.scratch, "library-*"); err != nil {
		return nil, err
	}
	return &d, locate.Unpack(s.Artifact.Path, func(name string) bool { return name == s.Library }, d.Library)
}

// framework installs a wheel over the environment named by the user. It returns nil
// without one, or if no chosen gate runs the wheel there.
func (b *gateRun) framework(ctx context.Context, s subject.Subject) (gate.Box, error) {
	runs := func(g gate.Gate) bool { return g.Framework && g.Wants(s.Expect) && b.chosen(g, s) }
	if b.gpus == nil || b.options.Device.Python == "" || !slices.ContainsFunc(gate.All(), runs) {
		return nil, nil
	}
	if !b.gpus.Guest.Found() { // the host has no GPU
		var err error
		if b.gpus.Guest, err = b.isolate(ctx); err != nil {
			return nil, err
		}
	}
	dir, err := openDir(b.scratch, "overlay-*")
	if err != nil {
		return nil, err
	}
	wheels := append([]string{s.Artifact.Path}, b.with...)
	made, err := overlay.New(ctx, overlay.Overlay{
		Python: b.options.Device.Python, Dir: dir, Guest: b.gpus.Guest, Network: b.gpus.Network(), Read: []string{b.scratch}, Env: b.gpus.Env, Timeout: b.gpus.Timeout,
	}, wheels...)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// testsTree unpacks the tree of upstream's tests and returns its directory. It returns
// "" if the artifact names no tests, if no chosen gate runs them, or if neither the store
// nor --set has the tree, which a gate reports.
func (b *gateRun) testsTree(ctx context.Context, s subject.Subject, framework gate.Box) (string, error) {
	pin := s.Entry.Tests
	for name := range b.Sources.Overrides {
		if name != pin.Project {
			return "", diag.Errorf(diag.Usage, "--set: %s has no source.%s", s.Artifact.Name, name).WithHint("the tests of its recipe are source.%s", cmp.Or(pin.Project, "NAME"))
		}
	}
	runs := func(g gate.Gate) bool { return g.Name == gate.UpstreamOnGPUs && b.chosen(g, s) }
	if framework == nil || pin.SHA256 == "" || !slices.ContainsFunc(gate.All(), runs) {
		return "", nil
	}
	w, err := home.Open(ctx, b.Keys, b.NoInstall)
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
	dir, err := openDir(b.scratch, "tests-*")
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
