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

// damage is what the engine (v0.19.10) and what it keeps its cache with say when
// the cache is not what was written: a disk that lost power, a file that somebody
// removed.
var damage = []string{
	"input/output error",
	"structure needs cleaning",
	"invalid database",
	"database disk image is malformed",
	"file is not a database",
	"checksum error",
	"missing content",
}

// damaged reports whether an error says that the cache is damaged: in words, or
// because it is about one of its files.
func (e *Engine) damaged(err error) bool {
	text := err.Error()
	return strings.Contains(text, e.path("state", "worker")) ||
		slices.ContainsFunc(damage, func(words string) bool { return strings.Contains(text, words) })
}

// diedOfCache returns what the engine said when its database ended it, "" where it did
// not. Pages that are damaged may be read long after the start: bbolt, which keeps the
// databases of the cache (v1.4.3), then panics in a build, and would in the next.
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

// Mend puts an engine in order that failed a build for a reason of its own. One
// that hangs is stopped and started; where the reason is a damaged cache it begins
// with an empty one, because what is damaged in one place is trusted in none. The
// builds that others have on it end, and begin again there.
func (e *Engine) Mend(ctx context.Context, why error, hangs bool) error {
	switch {
	case e.damaged(why):
		e.log("the engine's cache is damaged, it begins with an empty one: %v", why)
		return e.again(ctx, e.forget)
	case hangs:
		e.log("the engine says nothing, it is stopped and started: %v", why)
		return e.again(ctx, func() error { return nil })
	}
	return nil
}

// hungTimeout is how long an engine that hangs is given to stop.
const hungTimeout = 10 * time.Second

// again stops the engine, does something while it is not there, and starts it.
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

// comeAgain starts an engine that did not start: once more as it is, because what
// stopped it may not be its own fault (somebody killed it), and then with an empty
// cache. Only where nothing else helps is the cache given up: it may have cost days.
func (e *Engine) comeAgain(ctx context.Context, fault error, start func() error) error {
	if !exists(e.path("state")) || ctx.Err() != nil {
		return fault
	}
	if start() == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault
	}
	aside, err := e.setAside()
	if err != nil {
		return errors.Join(fault, err)
	}
	if start() != nil { // it says the same as before
		return errors.Join(fault, os.RemoveAll(e.path("state")), os.Rename(aside, e.path("state")))
	}
	e.log("the engine does not start with its cache and does without it: the cache is given up (%v)", fault)
	return os.RemoveAll(aside)
}

// forget removes the cache. It is out of the way at once; to remove many files
// takes a while, and may be interrupted.
func (e *Engine) forget() error {
	aside, err := e.setAside()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(aside)
}

// setAside moves the cache to where no engine looks for it.
func (e *Engine) setAside() (aside string, err error) {
	aside = e.path("state.old")
	if err := os.RemoveAll(aside); err != nil {
		return "", err
	}
	return aside, os.Rename(e.path("state"), aside)
}
