package term

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// heartbeat is how long a running step may be silent in a plain log, so that a
// CI system does not take a long compilation for a dead one.
const heartbeat = 30 * time.Second

// plain is a log: one line with the time for everything that happened.
type plain struct{ w io.Writer }

func (p *plain) draw(now time.Time, events []event, running []*task) {
	var b strings.Builder
	line := func(parts ...string) {
		fmt.Fprintf(&b, "%s %s\n", now.Format(time.TimeOnly), strings.TrimSpace(strings.Join(parts, " ")))
	}
	for _, e := range events {
		line(oneLine(e.cell), oneLine(e.step), e.text)
	}
	for _, t := range running {
		if now.Sub(t.shown) >= heartbeat {
			t.shown = now
			line(oneLine(t.cell), oneLine(t.step), "running "+seconds(now.Sub(t.since))+said(t))
		}
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(p.w, b.String()) // nobody is left to be told
	}
}

func said(t *task) string {
	if t.last == "" {
		return ""
	}
	return ": " + truncate(t.last, maxText)
}
