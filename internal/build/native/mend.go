package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/regular"
)

// diedOfCache returns the engine's message if it last ended in a panic of its database,
// else "". Damaged pages may be read long after the start. bbolt (v1.4.3), which holds
// the cache's databases, then panics during a build, and would panic again in the next.
// Only a panic shows a damaged cache: a step can cause errors that name the cache's files.
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
	if i < 0 || !strings.Contains(crashed(since[i:]), "go.etcd.io/bbolt") {
		return ""
	}
	line, _, _ := strings.Cut(since[i+1:], "\n")
	return line
}

// crashed returns the stack of the goroutine that ended a Go program. The stacks of others
// may follow, and say nothing about the cause.
func crashed(text string) string {
	_, stack, _ := strings.Cut(text, "\ngoroutine ")
	stack, _, _ = strings.Cut(stack, "\n\n")
	return stack
}

// hungTimeout is the time a hanging engine gets to stop.
const hungTimeout = 10 * time.Second

// Restart stops an engine that does not answer, and starts it. Builds of other processes
// on the engine end and start again there.
func (e *Engine) Restart(ctx context.Context, why error) error {
	e.log("the engine does not answer, restarting it: %v", why)
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := e.stop(ctx, hungTimeout); err != nil {
		return fmt.Errorf("stopping the native engine: %w", err)
	}
	return noEngine(ctx, e.up(ctx))
}

// comeAgain tries again to start an engine after a failure. The first attempt keeps the
// cache, because the cause may be external, such as a kill. The second uses an empty
// cache, and puts the old one back if that does not help.
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
	if err := e.setAside(); err != nil {
		return errors.Join(problem, err)
	}
	if start() != nil { // same failure without the cache: restore it
		return errors.Join(problem, os.RemoveAll(e.path("state")), os.Rename(e.aside(), e.path("state")))
	}
	e.log("the engine's cache keeps it from starting, and is set aside until another has served a build: %v", problem)
	return nil
}

// aside is the path of a cache that no engine uses.
func (e *Engine) aside() string { return e.path("state.old") }

// setAside takes the cache from the engine. A cache may be the work of days, so it stays
// until another has served a build. One that has not is removed.
func (e *Engine) setAside() error {
	if exists(e.aside()) {
		return os.RemoveAll(e.path("state"))
	}
	if err := os.Rename(e.path("state"), e.aside()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Served removes a cache that was set aside. The caller has built something on the engine.
func (e *Engine) Served() error { return os.RemoveAll(e.aside()) }

// forget removes the cache. It first renames the cache, because removing many files
// takes long and may be interrupted.
func (e *Engine) forget() error { return errors.Join(e.Served(), e.setAside(), e.Served()) }
