package doctor

import (
	"context"

	"builder/internal/machine/host"
)

// Work is the work to examine the host for.
type Work struct {
	Home   string // absolute path of the state directory, which may be missing; "" without one
	Engine EngineState
	Recipe *Needs // nil: check the engine only
}

// EngineKind is the kind of engine that runs builds.
type EngineKind string

// The kinds of engines.
const (
	Named     EngineKind = "named"     // given by address
	Container EngineKind = "container" // in a running Docker or Podman
	Native    EngineKind = "native"    // builder's own, below the state directory
)

// An EngineState describes the engine without starting it, or the engines given by
// address.
type EngineState struct {
	Kind      EngineKind
	Address   string        // of the given engine, or of the native engine
	Program   string        // docker or podman
	Image     string        // the engine's image in Docker or Podman, or the image to pull; "" is unknown
	Holds     bool          // Docker or Podman has the image
	Wanted    string        // the version required by builder
	From      string        // the place of BUILDER_ENGINE_IMAGE, where a run gets the engine if it has none; "" if none is set
	Built     bool          // native: its programs are built
	Running   bool          // native
	Current   bool          // native: the running engine is the wanted one and answers
	Programs  []host.Needed // the programs that a run needs from the host
	NoInstall bool          // do not install missing host packages
	// Version queries the version of a running engine. It is nil if this host cannot
	// query it.
	Version func(ctx context.Context, address string) (string, error)
}

// Needs are the requirements of a recipe's preferred cell.
type Needs struct {
	Name, Cell string
	CUDA       string // target release, empty if none
}

// Conditions under which a check is needed.

func never(Work) bool          { return false }
func always(Work) bool         { return true }
func nativeEngine(w Work) bool { return w.Engine.Kind == Native }
