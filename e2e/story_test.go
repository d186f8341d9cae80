package e2e

import (
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A lane is chapters that are told in order: each uses the state that the one before
// it left.
type lane struct {
	home     string // its own, where it is not that of the first lane
	after    string // the chapter of another lane that has to be over, "" is the making of the engine
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

// story is told lane beside lane, because much of a chapter waits: for what a fault
// has killed, for the network, for one thread of a linker or a gate. The faults kill
// engines, so they have a home of their own. The first lane makes the engine; it and
// its wheel are what the others begin with.
var story = []lane{
	{"", "", []chapter{
		{fromNothing, mainJob},
		{onceMore, again},
		{"what the pages show", whatPagesShow},
		{"what was made can be checked", verified},
		{"published in three places and taken from there", published},
		{"the same bytes elsewhere", elsewhere},
		{"the workflow on real cells", workflow},
	}},
	{"", onceMore, []chapter{
		{"against a CPU TensorFlow, and as upstream released it", cpuTensorFlow},
		{"without the patch findhip", withoutFindHIP},
		{"a build that tries to leave", leaks},
		{"the ways out of a step and a gate", waysOut},
		{"a digest that does not match", wrongDigest},
		{"no engine and not root", notRoot},
		{"the neighbours on ROCm", neighbours},
		{"Ray with the edit that changes nothing", rayWithTheSetEdit},
	}},
	{"faults", "", []chapter{
		{"a failed step is looked at", lookedAt},
		{"what goes wrong", unlucky},
	}},
	{"contained", "", []chapter{
		{"through Docker and Podman", inContainers},
	}},
	{"others", "", []chapter{
		{"NCCL with verbs", ncclVerbs},
		{"the compiler cache", compilerCache},
		{"a stack of two parts", stacked},
	}},
}

// TestE2E tells the story. A chapter that fails ends its lane.
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

// chapter tells one, and reports whether it went well. It says so at once: Go does
// when all lanes are over.
func (b *tool) chapter(c chapter) bool {
	ran, start := false, time.Now()
	passed := b.t.Run(c.name, func(t *testing.T) {
		ran = true // -run may leave it out
		own := *b
		own.t = t
		c.tell(&own)
	})
	if ran {
		b.t.Logf("chapter %q: passed %v, %.0f s", c.name, passed, time.Since(start).Seconds())
	}
	return passed
}

// waitForEngine returns when the home has the programs of an engine, or will not get
// them.
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
