package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/regular"
)

// damage holds error texts of the engine (v0.19.10) and of its cache's databases for a
// damaged cache, for example after a power loss or with a deleted file.
var damage = []string{
	"input/output error",
	"structure needs cleaning",
	"invalid database",
	"database disk image is malformed",
	"file is not a database",
	"checksum error",
	"missing content",
}

// damaged reports whether err shows a damaged cache: by its text, or because it names a
// file of the cache.
func (e *Engine) damaged(err error) bool {
	text := err.Error()
	return strings.Contains(text, e.path("state", "worker")) ||
		slices.ContainsFunc(damage, func(words string) bool { return strings.Contains(text, words) })
}

// diedOfCache returns the engine's message if it last ended in a panic of its database,
// else "". Damaged pages may be read long after the start. bbolt (v1.4.3), which holds
// the cache's databases, then panics during a build, and would panic again in the next.
func (e *Engine) diedOfCache() string {
	text, _ := os.ReadFile(e.path("log-start"))
	start, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return ""
	}
	log, err := regular.Read(e.path("engine.log"), 2*logLimit)
	if err != nil || int64(len(log)) < start {
		return ""
	}
	since := string(log[start:])
	i := max(strings.Index(since, "\npanic: "), strings.Index(since, "\nfatal error: "), strings.Index(since, "\nunexpected fault address"))
	if i < 0 || !strings.Contains(since[i:], "go.etcd.io/bbolt") {
		return ""
	}
	line, _, _ := strings.Cut(since[i+1:], "\n")
	return line
}

// Mend repairs an engine that failed a build for a reason of its own. It restarts an
// engine that hangs. With a damaged cache the engine restarts with an empty one,
// because damage in one place makes all of it unreliable. Builds of other processes on
// the engine end and start again there.
func (e *Engine) Mend(ctx context.Context, why error, hangs bool) error {
	switch {
	case e.damaged(why):
		e.log("the engine's cache is damaged, starting with an empty one: %v", why)
		return e.again(ctx, e.forget)
	case hangs:
		e.log("the engine does not answer, restarting it: %v", why)
		return e.again(ctx, func() error { return nil })
	}
	return nil
}

// hungTimeout is the time a hanging engine gets to stop.
const hungTimeout = 10 * time.Second

// again stops the engine, calls between, and starts the engine.
func (e *Engine) again(ctx context.Context, between func() error) error {
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.stop(ctx, hungTimeout); err != nil {
		return fmt.Errorf("stopping the native engine: %w", err)
	}
	if err := between(); err != nil {
		return noEngine(ctx, err)
	}
	return noEngine(ctx, e.up(ctx))
}

// comeAgain tries again to start an engine after a failure. The first attempt keeps the
// cache, because the cause may be external, such as a kill. The second uses an empty
// cache. The old cache is removed only if that helps, because it may be the work of
// days.
func (e *Engine) comeAgain(ctx context.Context, problem error, start func() error) error {
	if !exists(e.path("state")) || ctx.Err() != nil {
		return problem
	}
	if start() == nil {
		return nil
	}
	if ctx.Err() != nil {
		return problem
	}
	aside, err := e.setAside()
	if err != nil {
		return errors.Join(problem, err)
	}
	if start() != nil { // same failure without the cache: restore it
		return errors.Join(problem, os.RemoveAll(e.path("state")), os.Rename(aside, e.path("state")))
	}
	e.log("removing the engine's cache, the engine starts only without it: %v", problem)
	return os.RemoveAll(aside)
}

// forget removes the cache. It first renames the cache, because removing many files
// takes long and may be interrupted.
func (e *Engine) forget() error {
	aside, err := e.setAside()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(aside)
}

// setAside moves the cache to a path that no engine uses.
func (e *Engine) setAside() (aside string, err error) {
	aside = e.path("state.old")
	if err := os.RemoveAll(aside); err != nil {
		return "", err
	}
	return aside, os.Rename(e.path("state"), aside)
}
