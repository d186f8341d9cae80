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
	"builder/internal/build/queue"
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
	Choice    queue.Choice
	Native    native.Options
	Image     native.EngineImage // the engine's programs, to copy instead of building them
	StepLimit time.Duration      // limit for one build step; 0 is no limit
	Patience  time.Duration      // how long a silent engine counts as running
	Ccache    bool               // take objects from the compiler cache
	Daemon    *Daemon            // of this host
}

// CacheKey is the configuration key for the size limit of an engine's cache.
const CacheKey = "engine-cache"

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

// A Daemon is the running Docker or Podman of this host, and its image of the engine. It
// is looked for once.
type Daemon struct {
	mu    sync.Mutex
	asked bool
	found daemon.Daemon // "" if none runs
	image string        // of the engine in found; "" if nobody asked
	holds bool          // found holds image
}

// Find returns the running Docker or Podman.
func (m *Daemon) Find(ctx context.Context) (d daemon.Daemon, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked {
		m.found, _ = daemon.Find(ctx)
		m.asked = ctx.Err() == nil
	}
	return m.found, m.found != ""
}

// Image returns the engine's image in the daemon d. If d has none, Image returns the image
// to pull and false.
func (m *Daemon) Image(ctx context.Context, d daemon.Daemon) (image string, holds bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.image == "" {
		for _, name := range []string{native.ImageName, native.UpstreamImage} {
			if d.Has(ctx, name) {
				m.image, m.holds = name, true
				return name, true
			}
		}
		if ctx.Err() != nil {
			return native.UpstreamImage, false
		}
		m.image = native.UpstreamImage
	}
	return m.image, m.holds
}
