package main

import (
	"sync"
	"time"

	"builder/internal/view/progress"
)

// quiet is how long a push may take before a log tells of it: most take no time.
const quiet = 5 * time.Second

// push shows how far one wheel has come on its way to a destination.
type push struct {
	mu       sync.Mutex
	progress *display
	wheel    string
	since    time.Time
	shown    bool
}

func newPush(d *display, wheel string) *push {
	p := &push{progress: d, wheel: wheel, since: time.Now()}
	if d.format == progress.Live || d.format == progress.JSON {
		p.show()
	}
	return p
}

func (p *push) show() {
	p.shown = true
	p.progress.Start(p.wheel, "push")
}

// Bytes implements [app.Sending].
func (p *push) Bytes(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown && time.Since(p.since) >= quiet {
		p.show()
	}
	p.progress.Bytes(p.wheel, done, total)
}

// End implements [app.Sending].
func (p *push) End(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.progress.Done(p.wheel, "push", time.Since(p.since), false, err)
	}
}
