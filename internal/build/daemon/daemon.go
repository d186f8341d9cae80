// Package daemon runs the engine as a container of Docker or Podman: it finds the
// daemon and the image, starts the container and removes it. The container belongs to a
// home, like the native engine. Callers choose between the two engines and talk to
// them.
package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// A Daemon is a running Docker or Podman, named by its client program.
type Daemon string

// Find returns the first daemon that answers. A client program without a running daemon
// does not count.
func Find(ctx context.Context) (Daemon, bool) {
	for _, d := range []Daemon{"docker", "podman"} {
		if d.runs(ctx) {
			return d, true
		}
	}
	return "", false
}

// infoTime bounds the question to a daemon. Podman makes its storage at its first start,
// which took more than 5 s on a busy host with two processors.
const infoTime = 20 * time.Second

// runs reports whether the daemon answers its client in time. Docker's `info` has an ID and
// Podman's a version. Without a daemon the docker client fails, or it prints an answer
// without an ID, or nothing, and exits with 0 (version 26 of Debian 13).
func (d Daemon) runs(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, infoTime)
	defer cancel()
	answer, err := d.run(ctx, "info", "--format", "{{json .}}")
	var of struct {
		ID      string
		Version struct{ Version string }
	}
	return err == nil && json.Unmarshal([]byte(answer), &of) == nil && of.ID+of.Version.Version != ""
}

// run runs the client program and returns its output. The last line of its stderr
// becomes the error.
func (d Daemon) run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, string(d), args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		lines := strings.Split(strings.TrimSpace(string(failed.Stderr)), "\n")
		err = fmt.Errorf("%s %s: %s", d, args[0], cmp.Or(lines[len(lines)-1], failed.Error()))
	}
	return strings.TrimSpace(string(out)), err
}

// Has reports whether the daemon holds an image.
func (d Daemon) Has(ctx context.Context, image string) bool {
	_, err := d.run(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}

// pullTime bounds the pull of an image.
const pullTime = 10 * time.Minute

// Pull fetches an image from its registry.
func (d Daemon) Pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	_, err := d.run(ctx, "pull", "--quiet", image)
	return err
}

// Load reads an image from a file.
func (d Daemon) Load(ctx context.Context, image string) error {
	_, err := d.run(ctx, "load", "--quiet", "--input", image)
	return err
}

// CopyOut copies a file out of an image.
func (d Daemon) CopyOut(ctx context.Context, image, from, to string) error {
	container, err := d.run(ctx, "create", image)
	if err != nil {
		return err
	}
	defer func() { _, _ = d.run(context.WithoutCancel(ctx), "rm", "--volumes", container) }()
	_, err = d.run(ctx, "cp", container+":"+from, to)
	return err
}

// A Container is an engine in a container. Its data is in a volume of the same name.
type Container struct {
	Name  string
	Image string
	Args  []string // arguments of the engine
}

// Of returns the engine container of a home.
func Of(home string) Container {
	return Container{Name: "builder-engine-" + digest(filepath.Clean(home))[:8]}
}

func digest(parts ...string) string { return regular.Sum([]byte(strings.Join(parts, "\x00"))) }

// label holds the digest of the image and arguments of a container.
const label = "builder.engine"

// Up starts the container if it does not run, and returns the address of its engine. It
// replaces a container with another image or other arguments, unless a client uses it.
// The volume stays.
func (d Daemon) Up(ctx context.Context, c Container) (address string, err error) {
	id, err := d.run(ctx, "image", "inspect", "--format", "{{.Id}}", c.Image)
	if err != nil {
		return "", err
	}
	address, wanted := "container+"+string(d)+"://"+c.Name, digest(append([]string{id}, c.Args...)...)
	is, there := d.look(ctx, c)
	if there && (is == wanted || d.busy(ctx, c)) {
		_, err := d.run(ctx, "start", c.Name)
		return address, err
	}
	if there {
		if err := d.Down(ctx, c); err != nil {
			return "", err
		}
	}
	args := []string{
		"run", "--detach", "--privileged", "--name", c.Name, "--label", label + "=" + wanted,
		"--volume", c.Name + ":/var/lib/dagger", c.Image,
	}
	if _, err := d.run(ctx, append(args, c.Args...)...); err != nil {
		return "", diag.Errorf(diag.NoEngine, "starting the engine in %s: %w", d, errors.Join(err, d.Down(context.WithoutCancel(ctx), c))).
			WithHint("the engine needs a privileged container and a daemon that runs as root")
	}
	return address, nil
}

// look returns the container's label, and whether the container exists.
func (d Daemon) look(ctx context.Context, c Container) (is string, there bool) {
	is, err := d.run(ctx, "container", "inspect", "--format", `{{index .Config.Labels "`+label+`"}}`, c.Name)
	return is, err == nil
}

// busy reports whether a client is connected. Each client has a dial-stdio process in
// the container that forwards its connection. busy looks at processes, because Podman
// keeps ended clients in its list of sessions.
func (d Daemon) busy(ctx context.Context, c Container) bool {
	processes, err := d.run(ctx, "top", c.Name)
	return err == nil && strings.Contains(processes, "dial-stdio")
}

// removeTime bounds how long Down repeats a removal that failed.
const removeTime = time.Minute

// Down stops the container and removes it; its volume stays. It repeats a removal that
// failed: after its kill, Podman waits a fixed time for the processes to end ("given PID
// did not die within timeout"), and an engine that frees its cache on a busy host needs
// longer.
func (d Daemon) Down(ctx context.Context, c Container) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	var failed error // of the last removal
	_, err := backoff.Retry(ctx, func() (_ any, err error) {
		if _, there := d.look(ctx, c); !there {
			return nil, context.Cause(ctx)
		}
		_, failed = d.run(ctx, "rm", "--force", "--volumes", c.Name)
		return nil, failed
	}, backoff.WithBackOff(backoff.NewConstantBackOff(time.Second)))
	if err != nil {
		return errors.Join(failed, err)
	}
	return nil
}

// Empty removes the container and its volume. It returns an error and removes nothing
// if a client uses the container.
func (d Daemon) Empty(ctx context.Context, c Container) error {
	if d.busy(ctx, c) {
		return diag.Errorf(diag.NoEngine, "the engine in %s is in use, its cache was not removed", d).WithHint("wait for the other run")
	}
	if err := d.Down(ctx, c); err != nil {
		return err
	}
	_, err := d.run(ctx, "volume", "rm", c.Name)
	return err
}

// Volume returns the host directory of the container's volume, or "" if it is unknown.
func (d Daemon) Volume(ctx context.Context, c Container) string {
	place, _ := d.run(ctx, "volume", "inspect", "--format", "{{.Mountpoint}}", c.Name) // prints nothing without the volume
	return place
}
