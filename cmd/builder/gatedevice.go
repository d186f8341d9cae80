package main

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/gates/device"
	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
	"builder/internal/machine/locate"
	"builder/internal/machine/nccltests"
	"builder/internal/publishing/subject"
	"builder/internal/view/progress"
)

func deviceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "gpus", Usage: "run the gates on GPUs too, on `N` of this host or all"},
		&cli.StringFlag{Name: "tests", Usage: "programs of nccl-tests or rccl-tests: `DIR|WHEEL`"},
		&cli.StringFlag{Name: "against", Usage: "compare speeds with the library in `DIR|WHEEL|LIB`"},
		&cli.StringFlag{Name: "transport", Usage: "the way that the GPUs shall talk: `nvlink|p2p|shm|ib|gdrdma|socket`"},
		&cli.StringFlag{Name: "max-bytes", Value: "1G", Usage: "measure sizes up to `BYTES` (K, M and G are powers of 1024)"},
		&cli.Float64Flag{Name: "tolerance", Value: 0.95, Usage: "the least that ours/theirs may be: `RATIO`"},
		&cli.DurationFlag{Name: "time-limit", Value: 10 * time.Minute, Usage: "kill a program that runs longer than `TIME`"},
		&cli.StringSliceFlag{Name: "env", Usage: "set `NAME=VALUE` for the programs, which get nothing else of the environment but LD_LIBRARY_PATH and *_VISIBLE_DEVICES"},
	}
}

// deviceOptions is what the flags say about the gates on GPUs.
type deviceOptions struct {
	gpus      int // 0: all
	tests     string
	against   string
	transport device.Transport
	maxBytes  int64
	tolerance float64
	limit     time.Duration
	env       map[string]string
}

// handed are the variables that reach the programs: where libraries lie, and
// which GPUs belong to this user.
var handed = append([]string{"LD_LIBRARY_PATH"}, gpu.VisibleVariables...)

func transportNames() []string {
	var names []string
	for _, t := range device.Transports() {
		names = append(names, string(t))
	}
	return names
}

func readDeviceOptions(c *cli.Context) (*deviceOptions, error) {
	if !c.IsSet("gpus") {
		for _, f := range deviceFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, diag.Errorf(diag.Usage, "--%s is of no use without --gpus", name).WithHint("add --gpus N or --gpus all")
			}
		}
		return nil, nil
	}
	o := &deviceOptions{tests: c.String("tests"), against: c.String("against"), tolerance: c.Float64("tolerance"), limit: c.Duration("time-limit"), env: map[string]string{}}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, diag.Errorf(diag.Usage, format, args...)) }
	if text := c.String("gpus"); text != "all" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fault("--gpus: %q is no number of GPUs, and not all", text)
		}
		o.gpus = n
	}
	var err error
	if o.maxBytes, err = parseBytes(c.String("max-bytes")); err != nil {
		fault("--max-bytes: %w", err)
	}
	if text := c.String("transport"); text != "" {
		if o.transport, err = device.TransportNamed(text); err != nil {
			faults = append(faults, diag.Errorf(diag.Usage, "--transport: %w", err).WithHint("%s", diag.DidYouMean(text, transportNames())))
		}
	}
	if !(o.tolerance > 0 && o.tolerance <= 1) {
		fault("--tolerance: %v is not between 0 and 1", o.tolerance)
	}
	if o.limit <= 0 {
		fault("--time-limit: %v is no time", o.limit)
	}
	faults = append(faults, o.readEnv(c.StringSlice("env")))
	return o, errors.Join(faults...)
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (o *deviceOptions) readEnv(settings []string) error {
	for _, name := range handed {
		if value, ok := os.LookupEnv(name); ok {
			o.env[name] = value
		}
	}
	var faults []error
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok || !variable.MatchString(name) || strings.HasPrefix(name, "NCCL_DEBUG") {
			faults = append(faults, diag.Errorf(diag.Usage, "--env: %q is not NAME=VALUE, or belongs to the gates", s))
		}
		o.env[name] = value
	}
	return errors.Join(faults...)
}

var byteText = regexp.MustCompile(`^(\d{1,9})([KMG]?)$`)

// parseBytes reads a size as nccl-tests does: 8, 64K, 128M, 8G.
func parseBytes(text string) (int64, error) {
	m := byteText.FindStringSubmatch(strings.ToUpper(text))
	if m == nil {
		return 0, errors.New(strconv.Quote(text) + " is no size such as 8, 64K, 128M or 8G")
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

// openGateRun asks the host for its GPUs and lays out what the gates need.
func openGateRun(ctx context.Context, o gateOptions, shown *progress.Display) (*gateRun, error) {
	b := &gateRun{options: o, log: io.Discard, progress: shown}
	scratch, err := os.MkdirTemp("", "builder-gate-*")
	if err != nil {
		return nil, err
	}
	b.scratch, b.close = scratch, func() { os.RemoveAll(scratch) }
	if b.trust, err = trusted(o.trust, o.home); err != nil {
		b.close()
		return nil, err
	}
	if err := b.fill(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *gateRun) fill(ctx context.Context) error {
	if b.options.log != "" {
		f, err := os.Create(b.options.log)
		if err != nil {
			return diag.Errorf(diag.Usage, "--log: %w", err)
		}
		remove := b.close
		b.log, b.close = f, func() { f.Close(); remove() }
	}
	d := b.options.device
	if d == nil {
		return nil
	}
	var err error
	if d.tests != "" {
		if b.tests, err = locate.TestsDir(d.tests, b.scratch); err != nil {
			return err
		}
	}
	if d.against != "" {
		if b.against, err = locate.FindRival(d.against, b.scratch); err != nil {
			return err
		}
	}
	host, err := gpu.Find(ctx, host.Run)
	if b.fault = err; err != nil {
		return nil // a verdict says it
	}
	host = host.VisibleTo(d.env)
	host.GPUs = append([]gpu.GPU{}, host.GPUs...) // no GPU is a list too
	b.host = &host
	return nil
}

// setup lays the library of an artifact out and returns what the gates on GPUs
// work with; nil where none is asked for.
func (b *gateRun) setup(s subject.Subject) (*device.Setup, func(), error) {
	o := b.options.device
	if o == nil {
		return nil, func() {}, nil
	}
	host := gpu.Host{}
	if b.host != nil {
		host = *b.host
	}
	d := &device.Setup{
		Sweep: nccltests.Run, Host: host, Fault: b.fault, GPUs: o.gpus, Programs: b.tests,
		Against: b.against.Dir, Rival: b.against.Name, Transport: o.transport, MaxBytes: o.maxBytes,
		Rounds: 3, Tolerance: o.tolerance, Env: o.env, Timeout: o.limit, Log: b.log,
	}
	if d.GPUs == 0 {
		d.GPUs = len(host.GPUs)
	}
	if s.Library == "" {
		return d, func() {}, nil
	}
	dir, err := os.MkdirTemp(b.scratch, "library-*")
	if err != nil {
		return nil, nil, err
	}
	d.Library = dir
	return d, func() { os.RemoveAll(dir) }, locate.Unpack(s.Artifact.Path, func(name string) bool { return name == s.Library }, dir)
}
