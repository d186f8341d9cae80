package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/input/pypi"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
)

// A PublishRequest names the wheels to publish and the destination.
type PublishRequest struct {
	Paths    []string
	To       string
	Channel  attest.Policy
	DryRun   bool
	Check    bool // check the published wheels as a client
	Insecure bool
}

// A PublishReport lists the published wheels.
type PublishReport struct {
	Schema    int               `json:"schema"`
	To        string            `json:"to"`
	DryRun    bool              `json:"dry_run,omitempty"`
	Already   bool              `json:"already,omitempty"` // promote: the wheel was in the channel before
	Published []publish.Receipt `json:"published"`
}

// Publish verifies every wheel before it publishes the first. One refused wheel stops
// all. The report is empty if no wheel was started.
func Publish(ctx context.Context, s *Session, r PublishRequest) (PublishReport, error) {
	trust, err := s.Trusted()
	if err != nil {
		return PublishReport{}, err
	}
	var current *push
	to, err := publish.Open(r.To, publish.Options{
		Insecure: r.Insecure,
		Progress: func(done, total int64) { current.bytes(done, total) },
		Send:     s.uvPublish,
	})
	if err != nil {
		return PublishReport{}, diag.Errorf(diag.Usage, "--to: %w", err)
	}
	bundles, err := loadBundles(r, trust)
	if err != nil {
		return PublishReport{}, err
	}
	report := PublishReport{Schema: 1, To: to.String(), DryRun: r.DryRun, Published: []publish.Receipt{}}
	client := s.client(r, trust)
	var errs []error
	for _, b := range bundles {
		if r.DryRun {
			receipt, err := publish.Preview(ctx, to, b, string(r.Channel))
			if err != nil {
				errs = append(errs, err)
				continue
			}
			report.Published = append(report.Published, receipt)
			continue
		}
		current = newPush(s.Display, s.Format, b.Wheel.Name)
		receipt, err := publish.Publish(ctx, to, b, string(r.Channel), client)
		current.end(err)
		if ctx.Err() != nil {
			return PublishReport{}, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if receipt.Existed && receipt.More > 0 && publish.Mixed(ctx, to, b) {
			s.Note("%s: its earlier statements at %s are by another key: its users must trust both keys, until you remove its files there and publish it again", b.Entry.ID, to)
		}
		report.Published = append(report.Published, receipt)
	}
	if !r.DryRun {
		errs = append(errs, s.sayLacking(ctx, to, bundles))
	}
	return report, errors.Join(errs...)
}

// uvPublish uploads a wheel with the pinned uv, which it fetches on the first call.
func (s *Session) uvPublish(ctx context.Context, address, wheel string) error {
	w, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	uv, err := w.uv(ctx)
	if err != nil {
		return err
	}
	return uv.Publish(ctx, address, wheel)
}

// sayLacking notes the input cells whose wheels the requirements of published cells name
// and the destination lacks. An upload server is not asked.
func (s *Session) sayLacking(ctx context.Context, to publish.Destination, bundles []publish.Bundle) error {
	at, ok := to.(publish.Source)
	needs := func(b publish.Bundle) bool { return b.Entry.Expect.Wheelhouse == nil && len(b.Entry.Inputs) > 0 }
	if !ok || !slices.ContainsFunc(bundles, needs) {
		return nil
	}
	records, err := at.List(ctx)
	if err != nil {
		return err
	}
	for _, b := range bundles {
		for _, in := range b.Entry.Inputs {
			there := func(r index.Record) bool { return r.Key == in.Key }
			if needs(b) && !slices.ContainsFunc(records, there) {
				s.Note("%s: its requirements file names the wheel of %s, which %s lacks: publish the directory of that cell too", b.Entry.ID, in.ID, to)
			}
		}
	}
	return nil
}

// loadBundles verifies the wheels of every path and returns all errors.
func loadBundles(r PublishRequest, trust signing.Trust) ([]publish.Bundle, error) {
	wheels, err := subject.Passed(r.Paths)
	if err != nil {
		return nil, err
	}
	var bundles []publish.Bundle
	var errs []error
	for _, wheel := range wheels {
		b, err := publish.Load(wheel, trust, r.Channel)
		bundles, errs = append(bundles, b), append(errs, err)
	}
	return bundles, errors.Join(errs...)
}

// client returns the client for checking published wheels, or nil without --check.
func (s *Session) client(r PublishRequest, trust signing.Trust) *publish.Client {
	if !r.Check {
		return nil
	}
	return &publish.Client{
		Run: runProgram, UV: pypi.KeptUV(s.Home),
		Take: func(ctx context.Context, from publish.Source, key, dir string) (publish.Bundle, error) {
			return publish.Take(ctx, from, key, dir, trust, r.Channel)
		},
	}
}

// ordinary filters an environment down to the variables that programs need to find
// other programs, the user and the network. It drops tokens and installer settings.
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

// Promote puts a published cell into another channel if its signed statements allow it.
// It builds nothing and changes no byte.
func Promote(ctx context.Context, s *Session, at publish.Catalogue, cell string, channel attest.Policy) (PublishReport, error) {
	trust, err := s.Trusted()
	if err != nil {
		return PublishReport{}, err
	}
	r, err := publish.FindCell(ctx, at, cell)
	if err != nil {
		return PublishReport{}, err
	}
	scratch, err := os.MkdirTemp("", "builder-promote-*")
	if err != nil {
		return PublishReport{}, err
	}
	defer os.RemoveAll(scratch)
	b, err := publish.Take(ctx, at, r.Key, scratch, trust, channel)
	if err == nil && b.Entry.ID != cell && b.Entry.Key() != cell {
		err = fmt.Errorf("the destination names it %s, but the signed entry names it %s", cell, b.Entry.ID)
	}
	if err != nil && diag.CodeOf(err) != diag.Gate {
		failed := diag.Errorf(diag.Publish, "promoting %s: %w", r.Cell, err)
		switch {
		case errors.Is(err, publish.ErrYanked):
			failed = failed.WithHint("`builder publish yank %s --at %s --undo` removes the mark", r.Cell, at)
		case errors.Is(err, index.ErrChanged), errors.Is(err, regular.ErrLarger), errors.Is(err, fs.ErrNotExist):
			failed = failed.WithHint("publish the cell again from the host that built it: `builder publish` replaces a damaged or missing file")
		}
		err = failed
	}
	if err != nil {
		return PublishReport{}, err
	}
	receipt, err := at.Put(ctx, b, string(channel))
	if err != nil {
		return PublishReport{}, err
	}
	already := slices.Contains(r.Channels, string(channel))
	return PublishReport{Schema: 1, To: at.String(), Already: already, Published: []publish.Receipt{receipt}}, nil
}

// Listed returns the records of a place containing every word.
func Listed(ctx context.Context, at publish.Source, words []string) ([]index.Record, error) {
	all, err := at.List(ctx)
	if err != nil {
		return nil, err
	}
	return matching(all, words), nil
}

// matching keeps the records containing every word.
func matching(all []index.Record, words []string) []index.Record {
	kept := []index.Record{}
	for _, r := range all {
		text := fmt.Sprint(r.Cell, " ", slices.Collect(maps.Values(r.Axes)), " ", r.Channels)
		if r.Yanked != "" {
			text += " yanked"
		}
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

// Yank marks a published cell as not to be used. An empty because removes the mark.
func Yank(ctx context.Context, place publish.Directory, cell, because string) (index.Record, error) {
	r, err := publish.FindCell(ctx, place, cell)
	if err != nil {
		return r, err
	}
	if r, err = place.Yank(ctx, r.Key, because); err != nil {
		code := diag.CodeOf(err)
		if code == diag.Unexpected {
			code = diag.Publish
		}
		return r, diag.Errorf(code, "yanking %s: %w", cell, err)
	}
	return r, nil
}
