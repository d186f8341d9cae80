package app

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/run"
	"builder/internal/input/oci"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/progress"
)

// A Session is the state shared by the verbs of one invocation.
type Session struct {
	Version   string // of builder
	Home      string // the state directory
	Catalogue catalogue.Catalogue
	Sources
	Engines
	Keys
	Display *progress.Display // receives the events of cells; required by verbs that build
	Format  progress.Format   // of the display
	Note    func(format string, args ...any)

	// Builder replaces the engines; nil outside tests. With it the host is not checked.
	Builder run.Engine

	asking sync.Mutex
	asked  bool
	found  daemon.Daemon // "" if none runs
	image  string        // of the engine in found; "" if nobody asked
	holds  bool          // found holds image
}

// Sources configures how names become digests and where files come from.
type Sources struct {
	Locked    bool                // resolve no name
	Offline   bool                // use only the store
	Overrides map[string][]string // --set: other locations of the same digests, by project
	// SourceMirrors are such locations for all recipes; a run need not use them.
	SourceMirrors map[string][]string
	Mirrors       []string // of Debian
	Snapshot      string   // a mirror of snapshot.debian.org
	// Registries are the mirrors of registries with images to build in.
	Registries oci.Mirrors
}

// Engines configures the engines and their time limits.
type Engines struct {
	Choices   []EngineChoice // at least one
	Native    native.Options
	Image     EngineImage   // the engine's programs, to copy instead of building them
	StepLimit time.Duration // limit for one build step; 0 is no limit
	Patience  time.Duration // how long a silent engine counts as running
	Ccache    bool          // take objects from the compiler cache
}

// Keys configures the signing key and the trusted keys.
type Keys struct {
	Key   string   // file of the signing key; "" is the host's key
	Trust []string // public key files, in addition to the host's key

	Keyless   string // URL of a Fulcio for signatures without a key; "" is none
	Timestamp string // URL of a timestamp authority for every signature; "" is none
	Rekor     string // URL of a log for signatures without a key; "" is none
}

// A Selection chooses cells of a recipe.
type Selection struct {
	Recipe *recipe.Recipe
	Filter matrix.Filter
	By     []Through // selectors of the recipe that chose values of the filter
}

// Through is a selector with its value and the values of axes that it chose.
type Through struct {
	Name    string            `json:"name"`
	Value   string            `json:"value"`
	Axes    map[string]string `json:"axes"`
	Because string            `json:"because"`
	Source  string            `json:"source"`
}

// Select applies the selectors given by name, such as torch: 2.11, to the filter.
func Select(r *recipe.Recipe, filter matrix.Filter, given map[string]string) (Selection, error) {
	of := Selection{Recipe: r, Filter: filter}
	var errs []error
	for _, s := range r.Selectors {
		text, is := given[s.Name]
		if !is {
			continue
		}
		v, err := s.Choose(text)
		if err != nil {
			errs = append(errs, matrix.FlagError(s.Name, err))
			continue
		}
		axes, err := r.Narrow(s, v, of.Filter)
		errs = append(errs, err)
		of.Filter = maps.Clone(of.Filter)
		maps.Copy(of.Filter, axes)
		of.By = append(of.By, Through{s.Name, v.Value, axes, s.Because, s.Source})
	}
	return of, errors.Join(errs...)
}

// Daemon returns the running Docker or Podman of this host. A session looks for it
// once.
func (s *Session) Daemon(ctx context.Context) (d daemon.Daemon, found bool) {
	s.asking.Lock()
	defer s.asking.Unlock()
	if !s.asked {
		s.found, _ = daemon.Find(ctx)
		s.asked = ctx.Err() == nil
	}
	return s.found, s.found != ""
}

// Assembler returns an assembler that makes entries from the pins of the locks.
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

// choose drafts the chosen cells and returns the excluded combinations.
func (s *Session) choose(of Selection) ([]lock.Draft, []matrix.Exclusion, error) {
	return assemble.Choose(s.Catalogue, of.Recipe, of.Filter)
}

// CacheKey is the configuration key for the size limit of an engine's cache.
const CacheKey = "engine-cache"
