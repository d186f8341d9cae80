package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app/judge"
	"builder/internal/base/diag"
	"builder/internal/gates/device"
	"builder/internal/machine/gpu"
)

// deviceFlags are the flags for the gates on GPUs.
func deviceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "gpus", Usage: "run the gates on GPUs too, on `N|all` GPUs of this host"},
		&cli.StringFlag{Name: "launcher", Usage: "start a rank for each GPU with `COMMAND`, split at spaces, on any hosts: \"mpirun -np 16 -H a:8,b:8\". --gpus is then the number of ranks"},
		&cli.StringFlag{Name: "programs", Usage: "take the programs of nccl-tests or rccl-tests from `DIR|WHEEL`"},
		&cli.StringFlag{Name: "python", Usage: "run a wheel with a framework in the environment of the interpreter `PYTHON`, installed over it without dependencies"},
		&cli.StringSliceFlag{Name: "with", Usage: "install `WHEEL,…` beside it, such as its MPI"},
		&cli.StringSliceFlag{Name: "set", Usage: "take the tree of upstream's tests from `source.NAME=PATH`, a clone or an archive with the pinned commit"},
		&cli.StringFlag{Name: "against", Usage: "compare speeds with the library in `DIR|WHEEL|LIB`"},
		&cli.StringFlag{Name: "transport", Usage: "require this transport between the GPUs: `nvlink|p2p|shm|ib|gdrdma|socket`"},
		&cli.StringFlag{Name: "max-bytes", Value: "1G", Usage: "measure sizes up to `BYTES` (K, M and G are powers of 1024)"},
		&cli.DurationFlag{Name: "time-limit", Value: 10 * time.Minute, Usage: "kill a program that runs longer than `TIME`"},
		&cli.GenericFlag{Name: "set-env", Value: &texts{}, Usage: "set `NAME=VALUE` for the programs, which otherwise inherit only LD_LIBRARY_PATH and *_VISIBLE_DEVICES; repeatable"},
	}
}

// readLauncher reads the launcher, which needs a number of ranks.
func readLauncher(c *cli.Context) ([]string, error) {
	launcher := strings.Fields(c.String("launcher"))
	if len(launcher) > 0 && (!c.IsSet("gpus") || c.String("gpus") == "all") {
		return nil, diag.Errorf(diag.Usage, "--launcher needs the number of ranks").WithHint("add --gpus N, with the number of ranks that %s starts", launcher[0])
	}
	return launcher, nil
}

// handed are the variables passed to the programs: the library path and the visible
// GPUs.
var handed = slices.Concat(handedToRanks, gpu.VisibleVariables)

// handedToRanks are those passed to the ranks of a launcher, which need its MPI. It gives
// each rank its own GPUs.
var handedToRanks = []string{"LD_LIBRARY_PATH"}

func transportNames() []string {
	var names []string
	for _, t := range device.Transports() {
		names = append(names, string(t))
	}
	return names
}

func readDevice(c *cli.Context) (*judge.DeviceRequest, error) {
	if !c.IsSet("gpus") {
		for _, f := range deviceFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, diag.Errorf(diag.Usage, "--%s has no effect without --gpus", name).WithHint("add --gpus N or --gpus all")
			}
		}
		return nil, nil
	}
	o := &judge.DeviceRequest{Tests: c.String("programs"), Against: c.String("against"), Limit: c.Duration("time-limit"), Python: c.String("python"), With: c.StringSlice("with"), Env: map[string]string{}}
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, diag.Errorf(diag.Usage, format, args...)) }
	if text := c.String("gpus"); text != "all" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			problem("--gpus: %q is not a number of GPUs or all", text)
		}
		o.GPUs = n
	}
	var err error
	if o.MaxBytes, err = judge.ParseBytes(c.String("max-bytes")); err != nil {
		problem("--max-bytes: %w", err)
	}
	if text := c.String("transport"); text != "" {
		if o.Transport, err = device.TransportNamed(text); err != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "--transport: %w", err).WithHint("%s", diag.DidYouMean(text, transportNames())))
		}
	}
	if o.Limit <= 0 {
		problem("--time-limit: %v is not a positive time", o.Limit)
	}
	o.Launcher, err = readLauncher(c)
	errs = append(errs, err)
	if len(o.Launcher) > 0 && o.Python != "" {
		errs = append(errs, diag.Errorf(diag.Usage, "--launcher and --python exclude each other").WithHint("horovodrun starts the ranks of a wheel with a framework; --launcher is for a library with --tests"))
	}
	if len(o.With) > 0 && o.Python == "" {
		errs = append(errs, diag.Errorf(diag.Usage, "--with has no effect without --python").WithHint("add --python PYTHON"))
	}
	inherited := handed
	if len(o.Launcher) > 0 {
		inherited = handedToRanks
	}
	errs = append(errs, readEnv(o.Env, inherited, *c.Generic("set-env").(*texts)))
	return o, errors.Join(errs...)
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func readEnv(env map[string]string, inherited, settings []string) error {
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	var errs []error
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok || !variable.MatchString(name) || strings.HasPrefix(name, "NCCL_DEBUG") {
			errs = append(errs, diag.Errorf(diag.Usage, "--set-env: %q is not NAME=VALUE, or belongs to the gates", s))
		}
		env[name] = value
	}
	return errors.Join(errs...)
}

// texts are the values of a repeatable flag. Unlike those of package cli they can
// contain a comma.
type texts []string

// Set implements [cli.Generic].
func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// String implements [cli.Generic].
func (t *texts) String() string { return strings.Join(*t, " ") }
