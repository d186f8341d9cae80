package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		Name: "publish", Usage: "put what passed where others install it from", ArgsUsage: "PATH… --to file:DIR",
		Description: "PATH is the directory of a cell (out/<cell>) or its wheel. It is verified as builder\n" +
			"verify does, by the policy of the channel: candidate asks for every gate that needs no\n" +
			"GPU, stable for those on GPUs and a second build too. The same bytes again change\n" +
			"nothing; other bytes under a published name are refused (exit 7).\n\n" +
			"file:DIR is a static index: any web server that serves DIR makes DIR/simple an\n" +
			"--index-url for pip and uv, and DIR itself a page to choose from.",
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
		&cli.StringFlag{Name: "to", Usage: "publish to `DEST`: file:DIR"},
		channelFlag("publish into `CHANNEL`: candidate or stable"),
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done, and do nothing"},
		&cli.BoolFlag{Name: "no-check", Usage: "do not look at the result as a client"},
	}
}

func channelFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "channel", Value: "candidate", Usage: usage}
}

// publishOptions is what the flags of publish say.
type publishOptions struct {
	paths   []string
	dir     string
	home    string
	trust   []string
	channel publish.Channel
	dry     bool
	check   bool
	json    bool
}

func readPublishOptions(c *cli.Context) (publishOptions, error) {
	o := publishOptions{
		paths: c.Args().Slice(), trust: c.StringSlice("trust"), dry: c.Bool("dry-run"), check: !c.Bool("no-check"), json: c.Bool("json"),
	}
	var faults []error
	if len(o.paths) == 0 {
		faults = append(faults, diag.Errorf(diag.Usage, "%s: name the directory of a cell, or a wheel", c.Command.HelpName).
			WithHint("%s out/<cell> --to file:DIR", c.Command.HelpName))
	}
	var err1, err2, err3 error
	o.dir, err1 = destination(c.String("to"), "--to")
	o.channel, err2 = publish.FindChannel(c.String("channel"))
	o.home, err3 = homeDir()
	return o, errors.Join(append(faults, err1, err2, err3)...)
}

// destination reads file:DIR.
func destination(text, flag string) (string, error) {
	dir, ok := strings.CutPrefix(text, "file:")
	dir = strings.TrimPrefix(dir, "//")
	if !ok || dir == "" {
		return "", diag.Errorf(diag.Usage, "%s: %q is no destination", flag, text).WithHint("write file:DIR")
	}
	return filepath.Abs(dir)
}

// published is what came of one wheel.
type published struct {
	index.Record
	Existed bool `json:"existed"`
	Dry     bool `json:"dry_run,omitempty"`
}

// publishReport is the result of publish --json.
type publishReport struct {
	Schema    int         `json:"schema"`
	Index     string      `json:"index"`
	Published []published `json:"published"`
}

// doPublish verifies every wheel before the first is published: one that is
// refused keeps all back.
func doPublish(ctx context.Context, o publishOptions, out printer) error {
	trust, err := trusted(o.trust, o.home)
	if err != nil {
		return err
	}
	bundles, err := loadBundles(o, trust)
	if err != nil {
		return err
	}
	report := publishReport{Schema: 1, Published: []published{}}
	if o.dry {
		for _, b := range bundles {
			p := b.Publication(o.channel.Name)
			p.Record.Filename, p.Record.SHA256, p.Record.Size = b.Wheel.Name, b.Wheel.SHA256, b.Wheel.Size
			report.Published = append(report.Published, published{Record: p.Record, Dry: true})
		}
		return printPublished(report, o.json, out)
	}
	x, err := index.Open(o.dir)
	if err != nil {
		return err
	}
	report.Index = x.URL()
	var faults []error
	for _, b := range bundles {
		done, err := publishOne(ctx, x, b, o)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		report.Published = append(report.Published, done)
	}
	return errors.Join(append([]error{printPublished(report, o.json, out)}, faults...)...)
}

// loadBundles verifies the wheels of every path, and tells all that is wrong with
// any.
func loadBundles(o publishOptions, trust signing.Trust) ([]publish.Bundle, error) {
	artifacts, err := artifactsOf(o.paths)
	if err != nil {
		return nil, err
	}
	var bundles []publish.Bundle
	var faults []error
	for _, a := range artifacts {
		b, err := publish.Load(a.Path, trust, o.channel.Policy)
		bundles, faults = append(bundles, b), append(faults, err)
	}
	return bundles, errors.Join(faults...)
}

// publishOne adds a wheel and looks at it as a client; what a client cannot use is
// withdrawn, if it came just now.
func publishOne(ctx context.Context, x *index.Index, b publish.Bundle, o publishOptions) (published, error) {
	r, existed, err := x.Add(ctx, b.Publication(o.channel.Name))
	if err != nil {
		return published{}, err
	}
	if o.check {
		err = checkAsClient(ctx, x, r)
	}
	if err != nil && !existed {
		return published{}, errors.Join(err, x.Withdraw(ctx, r))
	}
	return published{Record: r, Existed: existed}, err
}

func checkAsClient(ctx context.Context, x *index.Index, r index.Record) error {
	scratch, err := os.MkdirTemp("", "builder-client-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	return publish.CheckClient(ctx, runProgram, x.URL(), r, scratch)
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
		what := "published"
		switch {
		case p.Dry:
			what = "would be published"
		case p.Existed:
			what = "was there"
		}
		rows = append(rows, []string{p.Filename, what, strings.Join(p.Channels, ", "), p.SHA256})
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{"wheel", "state", "channels", "sha256"}, rows)
	if r.Index != "" {
		out.say("index: %s", r.Index)
	}
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
	dir, err1 := destination(c.String("at"), "--at")
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
	if r, _, err = x.Add(c.Context, b.Publication(channel.Name)); err != nil {
		return err
	}
	return printPublished(publishReport{Schema: 1, Index: x.URL(), Published: []published{{Record: r, Existed: true}}}, c.Bool("json"), out)
}

// findPublished returns the record of a cell by its id or key.
func findPublished(dir, name string) (*index.Index, index.Record, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, index.Record{}, diag.Errorf(diag.Usage, "--at: %w", err)
	}
	x, err := index.Open(dir)
	if err != nil {
		return nil, index.Record{}, err
	}
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
			dir, err := destination(c.String("at"), "--at")
			if err != nil {
				return err
			}
			if _, err := os.Stat(dir); err != nil {
				return diag.Errorf(diag.Usage, "--at: %w", err)
			}
			x, err := index.Open(dir)
			if err != nil {
				return err
			}
			all, err := x.All()
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
