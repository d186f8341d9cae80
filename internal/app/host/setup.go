// Package host holds the verbs about this host: doctor, engine and store. It chooses and
// starts the engines, and checks before a run whether the host can do the work.
package host

import (
	"context"
	"sync"
	"time"

	"builder/internal/app/plan"
	"builder/internal/base/size"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/machine/host"
)

// A Setup is the state that the verbs of this package share.
type Setup struct {
	plan.Setup
	Version string // of builder
	Engines Engines
}

// Engines are the settings for the engine of an invocation.
type Engines struct {
	Choice    Choice
	Native    native.Options
	Image     native.EngineImage           // the engine's programs, to copy instead of building them
	StepLimit time.Duration                // limit for one build step; 0 is no limit
	Patience  time.Duration                // how long a silent engine counts as running
	Ccache    bool                         // take objects from the compiler cache
	Daemon    func() (daemon.Daemon, bool) // the running Docker or Podman, see [FindDaemon]
}

// CacheLimit returns the size limit of an engine's cache: a size, or a share of the disk of
// a home. It is 0 if the size of the disk is unknown, so that the engine chooses.
func CacheLimit(text, home string) (int64, error) {
	disk, unknown := host.DiskOf(home)
	bytes, err := size.Share(text, disk.Size)
	if err != nil || unknown != nil {
		return 0, err
	}
	return bytes, nil
}

// FindDaemon returns a function that finds the running Docker or Podman of this host. Only
// the first call asks.
func FindDaemon(ctx context.Context) func() (d daemon.Daemon, found bool) {
	return sync.OnceValues(func() (daemon.Daemon, bool) { return daemon.Find(ctx) })
}

// imageIn returns the engine's image in a daemon. If the daemon has none, it returns the
// image to pull and false.
func imageIn(ctx context.Context, d daemon.Daemon) (image string, holds bool) {
	for _, name := range []string{native.ImageName, native.UpstreamImage} {
		if d.Has(ctx, name) {
			return name, true
		}
	}
	return native.UpstreamImage, false
}
