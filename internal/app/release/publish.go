// Package release holds the verb publish: it verifies wheels and puts them at their
// destination.
package release

import (
	"context"
	"errors"
	"time"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
	"builder/internal/view/progress"
)

// A Setup is what publishing needs of an invocation.
type Setup struct {
	Keys      signing.Keys
	NoInstall bool // never install host packages
	Display   *progress.Display
}

// A Request names the wheels to publish and the destination.
type Request struct {
	Paths    []string
	To       string
	Channel  attest.Policy
	Check    bool // take the wheels as a client before they are published
	Insecure bool
}

// A Report lists the published wheels.
type Report struct {
	Schema    int               `json:"schema"`
	To        string            `json:"to"`
	Already   bool              `json:"already,omitempty"` // promote: the wheel was in the channel before
	Published []publish.Receipt `json:"published"`
}

// Publish verifies every wheel before it publishes the first. One refused wheel stops
// all. The report is empty if no wheel was started.
func Publish(ctx context.Context, s Setup, r Request) (Report, error) {
	trust, err := s.Keys.Trusted()
	if err != nil {
		return Report{}, err
	}
	to, err := publish.Open[publish.Destination](r.To, publish.Options{Insecure: r.Insecure, Send: s.sendWithUV})
	if err != nil {
		return Report{}, diag.Errorf(diag.Usage, "--to: %w", err)
	}
	bundles, err := loadBundles(r, trust)
	if err != nil {
		return Report{}, err
	}
	report := Report{Schema: 1, To: to.String(), Published: []publish.Receipt{}}
	var take publish.Taker
	if r.Check {
		take = publish.Verified(trust, r.Channel)
	}
	var errs []error
	for _, b := range bundles {
		done := s.showPush(b.Wheel.Name)
		receipt, err := to.Put(ctx, b, string(r.Channel), take)
		done(err)
		if ctx.Err() != nil {
			return Report{}, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		report.Published = append(report.Published, receipt)
	}
	return report, errors.Join(errs...)
}

// showPush shows the upload of a wheel on a terminal until done is called. A log has no
// line for it.
func (s Setup) showPush(wheel string) (done func(error)) {
	if s.Display.Format != progress.Live {
		return func(error) {}
	}
	start := time.Now()
	s.Display.Start(wheel, "push")
	return func(err error) { s.Display.Done(wheel, "push", time.Since(start), false, err) }
}

// sendWithUV uploads a wheel with the pinned uv, which it fetches on the first call.
func (s Setup) sendWithUV(ctx context.Context, address, wheel string) error {
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return err
	}
	defer w.Close()
	uv, err := w.Programs.UV(ctx)
	if err != nil {
		return err
	}
	return uv.Publish(ctx, address, wheel)
}

// loadBundles verifies the wheels of every path and returns all errors.
func loadBundles(r Request, trust signing.Trust) ([]publish.Bundle, error) {
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
