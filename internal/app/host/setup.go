// Package host holds the verbs about this host: doctor, engine and store. It chooses and
// starts the engines, and checks before a run whether the host can do the work.
package host

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/base/size"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/build/run"
	"builder/internal/machine/host"
)

// A Setup is the state that the verbs of this package share.
type Setup struct {
	plan.Setup
	Version string // of builder
	Engines Engines

	// Builder replaces the engines; nil outside tests. With it the host is not checked.
	Builder run.Engine
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

// A Choice is the requested engine and the limits for its use.
type Choice struct {
	Address    string // "" finds one: in Docker, in Podman, or the native engine
	Jobs       int    // cells at a time
	NativeOnly bool   // use only the native engine
}

// ParseEngine parses the address of an engine, which may be empty. It rejects addresses
// unsupported by the client, before anything is fetched.
func ParseEngine(address string) (c Choice, err error) {
	switch address {
	case "":
		return c, nil
	case nativeName:
		return Choice{NativeOnly: true}, nil
	}
	c.Address = address
	scheme, place, _ := strings.Cut(address, "://")
	kind, _, _ := strings.Cut(scheme, "+")
	// A dialer's error message repeats an address it cannot parse. Without the scheme
	// the password in it would not be recognized and redacted.
	if user, _, found := strings.Cut(place, "@"); found && strings.Contains(user, ":") {
		return c, diag.Errorf(diag.Usage, "--engine: the address contains a password").
			WithHint("engines have no passwords: leave it out, and protect the socket")
	}
	if place != "" && slices.Contains(kinds, kind) {
		return c, nil
	}
	return c, diag.Errorf(diag.Usage, "--engine: %q is not the address of an engine", address).
		WithHint("write unix:///PATH, tcp://HOST:PORT or native; known: %s; without --engine, builder uses Docker or Podman if one answers", strings.Join(kinds, ", "))
}

// kinds are the URL schemes supported by the Dagger client of version
// native.Version. A scheme can include a program, as in container+podman.
var kinds = []string{
	"unix", "tcp", "ssh", "kube-pod", "docker-container", "docker-image", "container", "image", "dagger-cloud",
}

// nativeName selects the native engine, which has no address until it runs.
const nativeName = "native"
