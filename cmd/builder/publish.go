package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/input/pypi"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
	"builder/internal/view/term"
)

func publishCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "publish", Usage: "put what passed where others install it from", ArgsUsage: "PATH… --to DEST",
		Description: "PATH is the directory of a cell (out/<cell>) or its wheel. It is verified as builder\n" +
			"verify does, by the policy of the channel: candidate asks for every gate that needs no\n" +
			"GPU, stable for those on GPUs and a second build too. The same bytes again change\n" +
			"nothing; other bytes under a published name are refused (exit 7).\n\n" +
			"file:DIR is a static index: any web server that serves DIR makes DIR/simple an\n" +
			"--index-url for pip and uv, and DIR itself a page to choose from. oci:// takes the\n" +
			"cell as an artifact and what is said about it as referrers, with docker's\n" +
			"credentials. pypi:URL takes the wheel alone, with credentials from\n" +
			"BUILDER_PUBLISH_TOKEN, or _USERNAME and _PASSWORD, netrc or keyring. Afterwards it\n" +
			"looks there as those do who install: pip and uv by hash, a pull by digest that\n" +
			"verifies.\n\n" +
			"--prune publishes nothing and says which wheels of the channel may go: those that are\n" +
			"older than --older-than and not among the --keep newest of their kind, which is a\n" +
			"recipe with all axes but the version. With --yes they go. What is in another channel\n" +
			"too, what a tag of somebody else names, and what a lock known here needs, stays.",
		Flags: publishFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if c.Bool("prune") {
				return doPrune(c, cat, fault, out)
			}
			o, err := readPublishOptions(c)
			if err != nil {
				return err
			}
			return doPublish(c.Context, o, out)
		},
	}
}

func publishFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "to", Usage: "publish to `DEST`: " + publish.Destinations},
		channelFlag("publish into `CHANNEL`: candidate or stable"),
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done, and do nothing"},
		&cli.BoolFlag{Name: "no-check", Usage: "do not look at what was published as a client"},
		insecureFlag(),
		progressFlag(),
		&cli.BoolFlag{Name: "prune", Usage: "say what may go from DEST, and remove it with --yes"},
		&cli.IntFlag{Name: "older-than", Usage: "prune what was published (in a registry: built) more than `DAYS` ago"},
		&cli.IntFlag{Name: "keep", Usage: "keep the `N` newest of each kind"},
		&cli.BoolFlag{Name: "yes", Usage: "do what --prune says"},
	}
}

func insecureFlag() cli.Flag {
	return &cli.BoolFlag{Name: "insecure", Usage: "speak plain HTTP to hosts other than this one"}
}

func channelFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "channel", Value: "candidate", Usage: usage}
}

// publishOptions is what the flags of publish say.
type publishOptions struct {
	paths    []string
	to       string
	home     string
	trust    []string
	channel  attest.Policy
	dry      bool
	check    bool
	insecure bool
	json     bool
	display  displayOptions
}

func readPublishOptions(c *cli.Context) (publishOptions, error) {
	o := publishOptions{
		paths: c.Args().Slice(), trust: c.StringSlice("trust"), dry: c.Bool("dry-run"), check: !c.Bool("no-check"), json: c.Bool("json"),
		to: c.String("to"), insecure: c.Bool("insecure"),
	}
	var faults []error
	if len(o.paths) == 0 {
		faults = append(faults, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/<cell> --to file:DIR", c.Command.HelpName))
	}
	if o.to == "" {
		faults = append(faults, diag.Errorf(diag.Usage, "--to: name a destination").WithHint("write %s", publish.Destinations))
	}
	for _, name := range []string{"older-than", "keep", "yes"} {
		if c.IsSet(name) {
			faults = append(faults, diag.Errorf(diag.Usage, "--%s: it belongs to --prune", name))
		}
	}
	var err2, err3, err4 error
	if o.channel, err2 = publish.Channel(c.String("channel")); err2 != nil {
		err2 = placeFault("channel", c.String("channel"), "channel", "to", err2)
	}
	o.home, err3 = homeDir()
	o.display, err4 = readDisplay(c)
	return o, errors.Join(append(faults, err2, err3, err4)...)
}

// publishReport is the result of publish --json.
type publishReport struct {
	Schema    int               `json:"schema"`
	To        string            `json:"to"`
	DryRun    bool              `json:"dry_run,omitempty"`
	Published []publish.Receipt `json:"published"`
}

// doPublish verifies every wheel before the first is published: one that is
// refused keeps all back.
func doPublish(ctx context.Context, o publishOptions, out printer) error {
	trust, err := trusted(o.trust, o.home)
	if err != nil {
		return err
	}
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	return progress.end(publishAll(ctx, o, trust, progress, out))
}

func publishAll(ctx context.Context, o publishOptions, trust signing.Trust, progress *display, out printer) error {
	var current *push
	to, err := publish.Open(ctx, o.to, publish.Options{
		Insecure: o.insecure, Warn: progress.Note,
		Progress: func(done, total int64) { current.bytes(done, total) },
	})
	if err != nil {
		return placeFault("to", o.to, "channel", "to", err)
	}
	bundles, err := loadBundles(o, trust)
	if err != nil {
		return err
	}
	report := publishReport{Schema: 1, To: to.String(), DryRun: o.dry, Published: []publish.Receipt{}}
	client := o.client(trust)
	var faults []error
	for _, b := range bundles {
		if o.dry {
			report.Published = append(report.Published, b.Receipt(string(o.channel), "", false))
			continue
		}
		current = newPush(progress, b.Wheel.Name)
		receipt, err := publish.Publish(ctx, to, b, string(o.channel), client)
		current.end(err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		report.Published = append(report.Published, receipt)
	}
	progress.Close()
	return errors.Join(append([]error{printPublished(report, o.json, out)}, faults...)...)
}

// loadBundles verifies the wheels of every path, and tells all that is wrong with
// any.
func loadBundles(o publishOptions, trust signing.Trust) ([]publish.Bundle, error) {
	wheels, err := subject.Passed(o.paths)
	if err != nil {
		return nil, err
	}
	var bundles []publish.Bundle
	var faults []error
	for _, wheel := range wheels {
		b, err := publish.Load(wheel, trust, o.channel)
		bundles, faults = append(bundles, b), append(faults, err)
	}
	return bundles, errors.Join(faults...)
}

// client is what looks at the published, nil where nobody shall.
func (o publishOptions) client(trust signing.Trust) *publish.Client {
	if !o.check {
		return nil
	}
	return &publish.Client{
		Run: runProgram, UV: pypi.KeptUV(o.home),
		Take: func(ctx context.Context, from publish.Shelf, key, dir string) (publish.Bundle, error) {
			return publish.Take(ctx, from, key, dir, trust, o.channel)
		},
	}
}

// ordinary is what a program needs of an environment: where programs, the user and
// the network are. What is left out holds tokens, and settings of the installer.
func ordinary(environ []string) []string {
	return slices.DeleteFunc(environ, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains([]string{
			"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "TZ", "XDG_CACHE_HOME", "XDG_DATA_HOME", "PYTHONHOME", "LD_LIBRARY_PATH",
			"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
			"http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
		}, name) && !strings.HasPrefix(name, "LC_")
	})
}

// runProgram implements [publish.Runner] on this host.
func runProgram(ctx context.Context, env []string, name string, args ...string) (string, error) {
	var b bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(ordinary(os.Environ()), env), &b, &b
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return b.String(), err
}

func printPublished(r publishReport, asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, r)
	}
	var rows [][]string
	for _, p := range r.Published {
		state := "published"
		switch {
		case r.DryRun:
			state = "would be published"
		case p.Existed:
			state = "was there"
		}
		rows = append(rows, []string{p.Wheel, state, cmp.Or(p.Channel, "-"), cmp.Or(strings.Join(p.Checked, ", "), "-"), cmp.Or(p.Where, r.To)})
	}
	if len(rows) > 0 {
		term.Table(out.stdout, term.Width(out.stdout), []string{"wheel", "state", "channels", "checked by", "where"}, rows)
	}
	return nil
}
