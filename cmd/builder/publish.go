package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/diag"
	"builder/internal/index"
	"builder/internal/publish"
	"builder/internal/signing"
	"builder/internal/term"
)

func publishCommand(out printer) *cli.Command {
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
			"BUILDER_PUBLISH_TOKEN, or _USERNAME and _PASSWORD, netrc or keyring.",
		Flags: publishFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
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
		&cli.BoolFlag{Name: "no-check", Usage: "do not look at a directory as a client"},
		&cli.BoolFlag{Name: "insecure", Usage: "speak plain HTTP to hosts other than this one"},
	}
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
	channel  publish.Channel
	dry      bool
	check    bool
	insecure bool
	json     bool
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
	var err2, err3 error
	o.channel, err2 = publish.FindChannel(c.String("channel"))
	o.home, err3 = homeDir()
	return o, errors.Join(append(faults, err2, err3)...)
}

// indexAt reads the directory of --at.
func indexAt(c *cli.Context) (string, error) {
	dir, err := publish.DirectoryOf(c.String("at"))
	if err != nil {
		return "", diag.Errorf(diag.Usage, "--at: %w", err)
	}
	if _, err := os.Stat(dir); err != nil {
		return "", diag.Errorf(diag.Usage, "--at: %w", err)
	}
	return dir, nil
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
	to, err := publish.Open(ctx, o.to, o.insecure, out.note)
	if err != nil {
		return diag.Errorf(diag.Usage, "--to: %w", err)
	}
	if d, ok := to.(publish.Directory); ok && o.check {
		d.Client = checkAsClient
		to = d
	}
	bundles, err := loadBundles(o, trust)
	if err != nil {
		return err
	}
	report := publishReport{Schema: 1, To: to.String(), DryRun: o.dry, Published: []publish.Receipt{}}
	var faults []error
	for _, b := range bundles {
		if o.dry {
			report.Published = append(report.Published, b.Receipt(o.channel.Name, "", false))
			continue
		}
		receipt, err := to.Put(ctx, b, o.channel.Name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		report.Published = append(report.Published, receipt)
	}
	return errors.Join(append([]error{printPublished(report, o.json, out)}, faults...)...)
}

// loadBundles verifies the wheels of every path, and tells all that is wrong with
// any.
func loadBundles(o publishOptions, trust signing.Trust) ([]publish.Bundle, error) {
	wheels, err := passedWheels(o.paths)
	if err != nil {
		return nil, err
	}
	var bundles []publish.Bundle
	var faults []error
	for _, wheel := range wheels {
		b, err := publish.Load(wheel, trust, o.channel.Policy)
		bundles, faults = append(bundles, b), append(faults, err)
	}
	return bundles, errors.Join(faults...)
}

func checkAsClient(ctx context.Context, indexURL string, r index.Record) error {
	scratch, err := os.MkdirTemp("", "builder-client-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	return publish.CheckClient(ctx, runProgram, indexURL, r, scratch)
}

// runProgram implements [publish.Runner] on this host.
func runProgram(ctx context.Context, env []string, name string, args ...string) (string, error) {
	var b bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &b, &b
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
		rows = append(rows, []string{p.Wheel, state, cmp.Or(p.Channel, "-"), cmp.Or(p.Where, r.To)})
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{"wheel", "state", "channels", "where"}, rows)
	return nil
}

func promoteCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "promote", Usage: "put a published wheel into another channel, if its verdicts allow that", ArgsUsage: "CELL --at file:DIR --to stable",
		Description: "CELL is the id or the key of a published cell. Its statements are verified where they\n" +
			"lie, by the policy of the channel; nothing is built and no byte changes.",
		Flags: promoteFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error { return doPromote(c, out) },
	}
}

func promoteFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag(),
		trustFlag(),
		&cli.StringFlag{Name: "at", Usage: "the index: `DEST` as in file:DIR"},
		&cli.StringFlag{Name: "to", Value: "stable", Usage: "promote to `CHANNEL`: candidate or stable"},
	}
}

func doPromote(c *cli.Context, out printer) error {
	dir, err1 := indexAt(c)
	channel, err2 := publish.FindChannel(c.String("to"))
	home, err3 := homeDir()
	if c.Args().Len() != 1 {
		err1 = errors.Join(err1, diag.Errorf(diag.Usage, "%s: name one cell", c.Command.HelpName).WithHint("builder index --at DEST lists them"))
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	trust, err := trusted(c.StringSlice("trust"), home)
	if err != nil {
		return err
	}
	x, r, err := findPublished(dir, c.Args().First())
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "builder-promote-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	wheel, err := x.Take(c.Context, r, scratch)
	if err != nil {
		return diag.Errorf(diag.Publish, "%w", err)
	}
	b, err := publish.Load(wheel.Path, trust, channel.Policy)
	if err != nil {
		return err
	}
	receipt, err := publish.Directory{Dir: dir}.Put(c.Context, b, channel.Name)
	if err != nil {
		return err
	}
	return printPublished(publishReport{Schema: 1, To: "file:" + dir, Published: []publish.Receipt{receipt}}, c.Bool("json"), out)
}

// findPublished returns the record of a cell by its id or key.
func findPublished(dir, name string) (*index.Index, index.Record, error) {
	x := index.Open(dir)
	all, err := x.All()
	if err != nil {
		return nil, index.Record{}, err
	}
	var ids []string
	for _, r := range all {
		if r.Cell == name || r.Key == name {
			return x, r, nil
		}
		ids = append(ids, r.Cell)
	}
	return nil, index.Record{}, diag.Errorf(diag.Usage, "no published cell is called %q", name).WithHint("%s", diag.DidYouMean(name, ids))
}

func indexCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "index", Usage: "list what a destination holds", ArgsUsage: "--at file:DIR [WORD…]",
		Description: "Words narrow the list: every one has to be in the cell's id, in a value of an axis or in a channel.",
		Flags:       indexFlags(), OnUsageError: usageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			dir, err := indexAt(c)
			if err != nil {
				return err
			}
			all, err := index.Open(dir).All()
			if err != nil {
				return err
			}
			return printIndex(matching(all, c.Args().Slice()), c.Bool("json"), out)
		},
	}
}

func indexFlags() []cli.Flag {
	return []cli.Flag{jsonFlag(), &cli.StringFlag{Name: "at", Usage: "the index: `DEST` as in file:DIR"}}
}

// matching keeps the records that say every word.
func matching(all []index.Record, words []string) []index.Record {
	kept := []index.Record{}
	for _, r := range all {
		text := fmt.Sprint(r.Cell, " ", r.Axes, " ", r.Channels)
		lacks := false
		for _, w := range words {
			lacks = lacks || !strings.Contains(text, w)
		}
		if !lacks {
			kept = append(kept, r)
		}
	}
	return kept
}

func printIndex(all []index.Record, asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, map[string]any{"schema": 1, "wheels": all})
	}
	var rows [][]string
	for _, r := range all {
		refused := 0
		for _, status := range r.Gates {
			if status != "pass" {
				refused++
			}
		}
		rows = append(rows, []string{r.Cell, strings.Join(r.Channels, ", "), fmt.Sprintf("%d of %d", len(r.Gates)-refused, len(r.Gates)), r.Published.Format("2006-01-02"), r.Filename})
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{"cell", "channels", "gates", "published", "wheel"}, rows)
	return nil
}
