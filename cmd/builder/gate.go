package main

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/judge"
	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/files/inspect"
	"builder/internal/gates/device"
	"builder/internal/gates/gate"
	"builder/internal/machine/gpu"
	"builder/internal/plan/catalogue"
	"builder/internal/publishing/publish"
	"builder/internal/view/term"
)

func gateCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "gate", Usage: "run gates on a finished artifact on this host", ArgsUsage: "PATH|ADDRESS…",
		Description: "PATH is the directory of a cell (out/<cell>), a wheel or a library. The gates compare it\n" +
			"with the entry.json beside it, if a trusted key signed that, with --entry, or with\n" +
			"--expect. Without any of these the table only prints facts about the file. The gates\n" +
			"that read the file always run, gates on GPUs with --gpus. The command needs no engine.\n" +
			"The exit code is 0 only if every gate passed. With --env the gates run the interpreter of\n" +
			"an environment and check what its processes load.\n\n" +
			"ADDRESS is a published cell, " + publish.Digests + ". The\n" +
			"command copies what trusted keys signed, and --attach adds the verdicts to the registry.\n" +
			"--programs, --against and --with take such an address too.\n\n" +
			"Facts for --expect: " + strings.Join(inspect.Names(), ", ") + ".",
		Flags: gateFlags(),
		Action: func(c *cli.Context) error {
			if c.IsSet("env") {
				if err := errors.Join(environmentFlags(c)...); err != nil {
					return err
				}
				done, err := judge.JudgeEnvironment(c.Context, version, c.String("env"))
				return printResult(c, out, done, err, show.Gated)
			}
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			r, err2 := readGate(c)
			if err := in.begin(c.Context, err, err2); err != nil {
				return err
			}
			done, err := judge.Judge(c.Context, in.Setup, r)
			return printEnd(c, in, done, errors.Join(err, writeSARIF(c.String("sarif"), done)), show.Gated)
		},
	}
}

// writeSARIF writes the refusals of a report to a file, for the code scanners of CI
// servers. Nothing is written without a path, or if nothing was judged.
func writeSARIF(path string, done judge.GateReport) error {
	if path == "" || done.Schema == 0 {
		return nil
	}
	data, err := show.SARIF(done)
	if err == nil {
		err = atomicfile.Write(path, append(data, '\n'))
	}
	if err != nil {
		return diag.Errorf(diag.Usage, "--sarif: %w", err)
	}
	return nil
}

func gateFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		jsonFlag(),
		&cli.StringSliceFlag{Name: "only", Usage: "run these gates only: `GATE,…`"},
		&cli.StringSliceFlag{Name: "expect", Usage: "require these facts: `NAME=VALUE,…`, such as framework=tensorflow,nccl=rccl,arch=gfx90a"},
		&cli.StringFlag{Name: "entry", Usage: "compare with `FILE`, the entry.json of the artifact's cell, without checking its signature"},
		&cli.BoolFlag{Name: "attach", Usage: "sign the verdicts and write them to ARTIFACT.attestations beside the artifact, or add them to ADDRESS"},
	}, append(signFlags(), trustFlag()), []cli.Flag{
		&cli.StringFlag{Name: "sarif", Usage: "write the refusals as SARIF to `FILE`, for code scanning"},
		&cli.StringFlag{Name: "log", Usage: "write the output of the programs to `FILE`"},
		insecureFlag(),
		progressFlag(),
		&cli.StringFlag{Name: "env", Usage: "run the interpreter of the environment `PYTHON|DIR` instead, and check which NCCL, RCCL, NVSHMEM, CUDA and HIP its processes load"},
	}, deviceFlags())
}

func readGate(c *cli.Context) (judge.GateRequest, error) {
	if !c.Args().Present() {
		return judge.GateRequest{}, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/nccl-2.29.7+cuda13-verbs-sm_80+sm_90 --gpus all --programs DIR", c.Command.HelpName)
	}
	r := judge.GateRequest{Paths: c.Args().Slice(), Only: c.StringSlice("only"), Attach: c.Bool("attach"), Entry: c.String("entry"), Log: c.String("log"), Insecure: c.Bool("insecure")}
	var errs []error
	for _, name := range r.Only {
		switch {
		case name == gate.Reproducible.Name:
			errs = append(errs, diag.Errorf(diag.Usage, "--only: the gate %s compares two builds, and this command has one", name).WithHint("builder verify out/CELL --rebuild --attach"))
		case !slices.Contains(gate.Names(), name):
			errs = append(errs, diag.Errorf(diag.Usage, "--only: unknown gate %q", name).WithHint("%s", diag.DidYouMean(name, gate.Names())))
		}
	}
	var err1, err2 error
	r.Expect, err1 = inspect.ParseExpectations(c.StringSlice("expect"))
	r.Device, err2 = readDevice(c)
	return r, errors.Join(append(errs, err1, err2)...)
}

// environmentFlags rejects flags and operands that do not apply to an environment.
func environmentFlags(c *cli.Context) (errs []error) {
	if c.Args().Present() {
		errs = append(errs, diag.Errorf(diag.Usage, "--env and PATH exclude each other: %q", c.Args().First()).WithHint("run the command once for each"))
	}
	for _, name := range []string{"only", "expect", "entry", "attach", "gpus", "sarif", "log"} {
		if c.IsSet(name) {
			errs = append(errs, diag.Errorf(diag.Usage, "--%s has no effect on an environment", name).WithHint("leave it out"))
		}
	}
	return errs
}

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

func readDevice(c *cli.Context) (*judge.DeviceRequest, error) {
	if !c.IsSet("gpus") {
		for _, f := range deviceFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return nil, diag.Errorf(diag.Usage, "--%s has no effect without --gpus", name).WithHint("add --gpus N or --gpus all")
			}
		}
		return nil, nil
	}
	o := &judge.DeviceRequest{Tests: c.String("programs"), Library: c.String("against"), Python: c.String("python"), With: c.StringSlice("with")}
	o.Timeout, o.Env = c.Duration("time-limit"), map[string]string{}
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
			errs = append(errs, diag.Errorf(diag.Usage, "--transport: %w", err).WithHint("%s", diag.DidYouMean(text, words(device.Transports()))))
		}
	}
	if o.Timeout <= 0 {
		problem("--time-limit: %v is not a positive time", o.Timeout)
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

func readEnv(env map[string]string, inherited, settings []string) error {
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	var errs []error
	for _, s := range settings {
		name, value, ok := strings.Cut(s, "=")
		if !ok || !shell.Name(name) || strings.HasPrefix(name, "NCCL_DEBUG") {
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
