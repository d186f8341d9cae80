package doctor

import "context"

// Work is what the host is examined for.
type Work struct {
	Home   string // absolute path of the state directory, which need not exist
	Engine EngineState
	Recipe *Needs // nil: only the engine counts
}

// EngineKind says where builds run.
type EngineKind string

// The kinds of engines.
const (
	Named     EngineKind = "named"     // an address was given
	Container EngineKind = "container" // a running Docker or Podman holds it
	Native    EngineKind = "native"    // it belongs to the state directory
)

// An EngineState is what is known of the engine without starting it, or of the
// engines that were named.
type EngineState struct {
	Kind      EngineKind
	Addresses []string // of those that were named, or of the one that runs
	Program   string   // docker or podman
	Image     string   // of the engine: the one that they hold, or would have to pull; "" is not known
	Holds     bool     // they hold it
	Wanted    string   // the version that this tool speaks with
	Built     bool     // native: its programs are there
	Running   bool     // native
	Current   bool     // native: what runs is what is wanted, and answers
	NoInstall bool     // native: missing host packages may not be installed
	// Version asks an engine that runs; nil where nothing here can ask it.
	Version func(ctx context.Context, address string) (string, error)
}

// Needs are what the cell that a recipe prefers asks of a host.
type Needs struct {
	Name, Cell string
	Memory     int64    // bytes that the build takes at its peak; 0 is not known
	Total      int64    // bytes of all files that the lock names
	Fetch      int64    // bytes of them that the store lacks
	Unpinned   string   // what the lock does not pin, and whose size is not known
	Debian     bool     // files come from a Debian archive
	Python     bool     // files come from a Python package index
	Mirrors    []string // addresses of Debian archives, from the configuration
	Indexes    []string // addresses of Python package indexes, from the configuration
	Places     []Place  // where else its inputs come from
	CUDA, ROCm string   // releases that the result is for; empty where it is for none
}

// A Place is an address that inputs come from.
type Place struct {
	For    string // what comes from there
	URL    string
	Cached bool // it may be here already: what an engine keeps is not known
}

// fetches reports whether something is still to come over the network.
func (r *Needs) fetches() bool { return r != nil && (r.Fetch > 0 || r.Unpinned != "") }

// When a check is needed.

func never(Work) bool            { return false }
func always(Work) bool           { return true }
func nativeEngine(w Work) bool   { return w.Engine.Kind == Native }
func localBuild(w Work) bool     { return w.Recipe != nil && w.Engine.Kind != Named }
func reached(w Work) bool        { return w.Recipe != nil && len(w.Recipe.Places) > 0 }
func somethingComes(w Work) bool { return w.Recipe.fetches() }
