package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"builder/internal/app/build"
	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/evidence/signing"
	"builder/internal/input/cpython"
	"builder/internal/input/deb"
	"builder/internal/input/oci"
	"builder/internal/plan/catalogue"
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

// An invocation is the state shared by all verbs. All errors of its flags and variables are
// reported together. Flags not defined for the verb have their defaults.
type invocation struct {
	build.Setup
	progress string // value of --progress
	verbose  bool
	out      term.Printer
}

// host returns the part of the state for verbs about this host.
func (in invocation) host() host.Setup { return in.Setup.Setup }

// plan returns the part of the state for verbs about cells.
func (in invocation) plan() plan.Setup { return in.Setup.Setup.Setup }

// readInvocation reads the flags shared by all verbs.
func readInvocation(c *cli.Context, cat catalogue.Catalogue, out term.Printer) (invocation, error) {
	dir, err := home.Closed(out.Note)
	in := invocation{out: out}
	in.Version, in.Catalogue, in.NoInstall = version, cat, c.Bool("no-install")
	services := signing.Services{Fulcio: c.String("keyless"), Timestamp: c.String("timestamp"), Rekor: c.String("rekor")}
	in.Keys = signing.Keys{Key: c.String("key"), Trust: c.StringSlice("trust"), Keyless: services}
	in.Keys.Home, in.Keys.Offline, in.Keys.Note = dir, c.Bool("offline"), out.Note
	if err != nil {
		return in, err
	}
	in.Sources = plan.Sources{
		Locked: c.Bool("locked"), Offline: c.Bool("offline"),
		Snapshot: os.Getenv("BUILDER_MIRROR_DEBIAN_SNAPSHOT"),
		Mirrors:  mirrors("BUILDER_MIRROR_DEBIAN", func() []string { return deb.HostMirrors(c.Context) }),
		Maven:    mirrors("BUILDER_MIRROR_MAVEN", cpython.MavenRepositories),
	}
	var errs [6]error
	in.Sources.Registries, errs[0] = oci.ParseMirrors(list(os.Getenv("BUILDER_MIRROR_REGISTRY")))
	in.Sources.SourceMirrors, errs[1] = plan.ParsePlaces("BUILDER_MIRROR_SOURCE", "", list(os.Getenv("BUILDER_MIRROR_SOURCE")))
	in.Sources.Indexes, errs[2] = plan.ParseIndexes(list(os.Getenv("BUILDER_PYTHON_INDEX")))
	in.Sources.Overrides, errs[3] = plan.ParsePlaces("--set", "source.", c.StringSlice("set"))
	in.Engines, errs[4] = readEngines(c, dir)
	in.progress, errs[5] = readProgress(c)
	in.verbose = c.Bool("verbose")
	return in, errors.Join(errs[:]...)
}

// begin shows progress on stderr until the display is ended. It returns the errors of
// reading the command line, if there are any, and then shows nothing.
func (in *invocation) begin(ctx context.Context, reading ...error) error {
	if err := errors.Join(reading...); err != nil {
		return err
	}
	d, err := progress.Begin(ctx, in.out.Stderr, progress.Format(in.progress), in.verbose)
	if err == nil {
		in.Display, in.Keys.Note = d, d.Note
	}
	return err
}

// printEnd ends the progress of a verb and prints its result.
func printEnd[T any](c *cli.Context, in invocation, done T, err error, show func(term.Printer, T)) error {
	in.Display.Close()
	return in.Display.End(in.Catalogue.Hinted(printResult(c, in.out, done, err, show)))
}

// printResult prints a result, also beside an error. If there is an error and the result
// is empty, it returns the error alone.
func printResult[T any](c *cli.Context, out term.Printer, done T, err error, show func(term.Printer, T)) error {
	if err != nil && reflect.ValueOf(done).IsZero() {
		return err
	}
	return errors.Join(out.Print(c.Bool("json"), done, func() { show(out, done) }), err)
}

// onHost returns the action of a verb about this host, without operands.
func onHost(out term.Printer, do func(*cli.Context, host.Setup) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := unexpected(c, 0); err != nil {
			return err
		}
		in, err := readInvocation(c, catalogue.Catalogue{}, out)
		if err != nil {
			return err
		}
		return do(c, in.host())
	}
}

// mirrors returns a function that returns the addresses in a variable, or else those of
// this host. Only the first call asks the host: most commands fetch nothing.
func mirrors(variable string, ofHost func() []string) func() []string {
	return sync.OnceValue(func() []string {
		named := list(os.Getenv(variable))
		for i, m := range named {
			named[i] = fileURL(m)
		}
		if len(named) > 0 {
			return named
		}
		return ofHost()
	})
}

// fileURL returns the URL of a directory given as a path or as file:DIR. Other addresses
// stay unchanged.
func fileURL(place string) string {
	dir := strings.TrimPrefix(place, "file:")
	if strings.Contains(place, "://") || dir == "" {
		return place
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return place // the first use reports it
	}
	return "file://" + abs
}

func progressFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "progress", EnvVars: []string{"BUILDER_PROGRESS"}, Value: string(progress.Auto),
		Usage: "show progress as `" + strings.Join(words(progress.Formats()), "|") + "`",
	}
}

// words returns the values of a flag as texts.
func words[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

func readProgress(c *cli.Context) (string, error) {
	format, known := cmp.Or(c.String("progress"), string(progress.Auto)), words(progress.Formats())
	if !slices.Contains(known, format) {
		return "", diag.Errorf(diag.Usage, "--progress: unknown format %q", format).WithHint("%s", diag.DidYouMean(format, known))
	}
	return format, nil
}
