package e2e

import (
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A lane is a list of chapters in order. Each uses the state of the one before.
type lane struct {
	home     string // home of the lane, if not that of the first lane
	after    string // chapter of another lane to wait for; "" means the build of the engine
	chapters []chapter
}

type chapter struct {
	name string
	tell func(*tool)
}

const (
	fromNothing = "the main job from nothing"
	onceMore    = "again, nothing changed"
)

// The lanes of the story run in parallel, because much of a chapter is waiting: for
// killed processes, for the network, for a single thread of a linker or a gate. The
// faults kill engines, so they have their own home. The first lane builds the engine,
// and the others start with the engine and its wheel.
var story = []lane{
	{"", "", []chapter{
		{fromNothing, mainJob},
		{onceMore, again},
		{"the commands on the pages", whatPagesShow},
		{"verification of the results", verified},
		{"installed from a wheel, as nobody", installed},
		{"published in two places and taken from there", published},
		{"the same bytes on another host", elsewhere},
		{"the workflow on real cells", workflow},
	}},
	{"", onceMore, []chapter{
		{"with a framework of the other vendor", frameworkOfTheOtherVendor},
		{"without the patch findhip", withoutFindHIP},
		{"a build that accesses the host", leaks},
		{"escapes from a step and a gate", waysOut},
		{"an image whose Python is a virtual environment", venvImage},
		{"Ray and OpenRLHF on ROCm", neighbours},
	}},
	{"faults", "", []chapter{{"a shell at a failed step", lookedAt}, {"faults", unlucky}}},
	{"contained", "", []chapter{{"through Docker and Podman", inContainers}}},
	{"others", "", []chapter{{"NCCL with verbs", ncclVerbs}, {"the compiler cache", compilerCache}}},
}

// TestE2E runs the story. A failed chapter ends its lane.
func TestE2E(t *testing.T) {
	b := newTool(t)
	over := map[string]chan struct{}{}
	for _, l := range story {
		for _, c := range l.chapters {
			over[c.name] = make(chan struct{})
		}
	}
	var lanes sync.WaitGroup
	for i, l := range story {
		teller := b
		if l.home != "" {
			teller = b.beside(t, l.home)
		}
		lanes.Go(func() {
			switch {
			case l.after != "":
				<-over[l.after]
			case i > 0:
				b.waitForEngine(over[fromNothing])
			}
			failed := false
			for _, c := range l.chapters {
				failed = failed || !teller.chapter(c)
				close(over[c.name])
			}
		})
	}
	lanes.Wait()
}

// chapter runs one chapter and reports whether it passed. It logs the result at once,
// because go test prints it only after all lanes have ended.
func (b *tool) chapter(c chapter) bool {
	ran, start := false, time.Now()
	passed := b.t.Run(c.name, func(t *testing.T) {
		ran = true // -run may skip it
		own := *b
		own.t = t
		if own.home != own.first.home {
			own.copiesEngine()
		}
		c.tell(&own)
	})
	if ran {
		b.t.Logf("chapter %q: passed %v, %.0f s", c.name, passed, time.Since(start).Seconds())
	}
	return passed
}

// waitForEngine waits until the home has the programs of an engine or the first chapter
// has ended.
func (b *tool) waitForEngine(ended <-chan struct{}) {
	for {
		made, _ := filepath.Glob(filepath.Join(b.home, "engine", "build-*[0-9a-f]", "bin"))
		if len(made) > 0 {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(time.Second):
		}
	}
}
