package app

import (
	"context"
	"sync"
	"time"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/progress"
)

// A Session is what the verbs of one invocation share.
type Session struct {
	Version   string // of the tool
	Home      string // the state directory
	Catalogue catalogue.Catalogue
	Sources
	Engines
	Keys
	Display *progress.Display // hears what happens to cells; verbs that build need it
	Format  progress.Format   // of the display
	Note    func(format string, args ...any)

	// Builder builds every cell in the place of the engines; nil outside tests. The
	// host is not asked whether it can do the work.
	Builder run.Engine

	asking sync.Mutex
	asked  bool
	found  daemon.Daemon // "" where none runs
}

// Sources say how names become digests, and where files come from.
type Sources struct {
	Locked    bool                // no name is resolved
	Offline   bool                // nothing but the store is used
	Overrides map[string][]string // other places for the same digests, by project
	Mirrors   []string            // of Debian
	Snapshot  string              // a mirror of Debian's snapshots
}

// Engines say which engines build, and how long they may take.
type Engines struct {
	Choices   []EngineChoice // at least one
	Native    native.Options
	StepLimit time.Duration // of one step of a build; 0 is without a bound
	Patience  time.Duration // until an engine that says nothing is lost
	Ccache    bool          // take objects from the compiler cache
}

// Keys say who signs, and whose signatures count.
type Keys struct {
	Key   string   // file of the key that signs; "" is the host's own
	Trust []string // files of public keys, beside the host's own
}

// A Selection chooses cells of a recipe.
type Selection struct {
	Recipe *recipe.Recipe
	Filter matrix.Filter
}

// Daemon returns the Docker or Podman that runs on this host. It is asked once in a
// session.
func (s *Session) Daemon(ctx context.Context) (d daemon.Daemon, found bool) {
	s.asking.Lock()
	defer s.asking.Unlock()
	if !s.asked {
		s.found, _ = daemon.Find(ctx)
		s.asked = ctx.Err() == nil
	}
	return s.found, s.found != ""
}

// Assembler makes entries of what the locks pin.
func (s *Session) Assembler() *assemble.Assembler {
	a := &assemble.Assembler{Locks: s.Catalogue.Locks(s.Home), Revision: Revision()}
	switch {
	case s.Locked:
		a.Forbids = "--locked"
	case s.Offline:
		a.Forbids = "--offline"
	}
	return a
}

// choose drafts the chosen cells and returns those that are excluded beside them.
func (s *Session) choose(of Selection) ([]lock.Draft, []matrix.Exclusion, error) {
	return assemble.Choose(s.Catalogue, of.Recipe, of.Filter)
}

// CacheFlag is the flag, and the key, of the bound of an engine's cache.
const CacheFlag = "engine-cache"
