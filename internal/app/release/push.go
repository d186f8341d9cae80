package release

import (
	"fmt"
	"sync"
	"time"

	"builder/internal/view/progress"
)

// quiet is the time before a log reports a push: most pushes finish sooner.
const quiet = 5 * time.Second

// push shows the progress of one wheel's upload.
type push struct {
	mu       sync.Mutex
	progress *progress.Display
	wheel    string
	since    time.Time
	shown    bool
	share    int64 // percentage in the last line
}

func newPush(d *progress.Display, wheel string) *push {
	p := &push{progress: d, wheel: wheel, since: time.Now()}
	if d.Format == progress.Live {
		p.show()
	}
	return p
}

func (p *push) show() {
	p.shown = true
	p.progress.Start(p.wheel, "push")
}

// bytes reports how many bytes were sent.
func (p *push) bytes(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown && time.Since(p.since) >= quiet {
		p.show()
	}
	if share := done * 100 / max(total, 1); share != p.share {
		p.share = share
		p.progress.Line(p.wheel, fmt.Sprintf("%.1f of %.1f MB", float64(done)/1e6, float64(total)/1e6))
	}
}

// end reports the result.
func (p *push) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.progress.Done(p.wheel, "push", time.Since(p.since), false, err)
	}
}
