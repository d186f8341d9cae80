package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/needs"
	"builder/internal/base/diag"
	"builder/internal/build/history"
	"builder/internal/build/native"
	"builder/internal/build/results"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

// vast is an entry with one wheel larger than any disk.
func vast() lock.Entry {
	e := lock.Entry{Recipe: "tiny", ID: "tiny-1"}
	e.Image.Wheels = []pypi.File{{Filename: "vast-1-py3-none-any.whl", SHA256: strings.Repeat("0", 64), Size: 1 << 50}}
	return e
}

// A run too large for the disk is refused before anything is fetched or started. The
// error gives the required size and a remedy.
func TestRunThatDoesNotFit(t *testing.T) {
	home := t.TempDir()
	s, err := store.Open(home + "/store")
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{Session: &Session{Home: home, Note: t.Logf}, store: s, results: results.New(s)}
	w.engines = []*engine{{Session: w.Session}}
	t.Setenv("PATH", "")
	err = w.makeRoom(t.Context(), []lock.Entry{vast()})
	if diag.CodeOf(err) != diag.NoEngine || !strings.Contains(err.Error(), "the run fetches 1125899.9 GB, and tiny-1 needs about ") || !strings.Contains(firstHint(err), "builder store gc") {
		t.Errorf("got %v, hint %q", err, firstHint(err))
	}
	if err := w.makeRoom(t.Context(), nil); err != nil {
		t.Errorf("nothing to build: %v", err)
	}
}

// Cells that need more than the limit of the cache are refused before anything is
// fetched, all at once. With a second engine they may fit there.
func TestCellsBeyondTheCacheLimit(t *testing.T) {
	home := t.TempDir()
	s, err := store.Open(home + "/store")
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{Session: &Session{Home: home, Engines: Engines{Native: native.Options{Cache: 20e9}}, Note: t.Logf}, store: s, results: results.New(s)}
	w.engines = []*engine{{Session: w.Session}}
	t.Setenv("PATH", "")
	entries := []lock.Entry{{Recipe: "tiny", ID: "tiny-1"}, {Recipe: "tiny", ID: "tiny-2"}, {Recipe: "tiny", ID: "tiny-3"}}
	for id, bytes := range map[string]int64{"tiny-1": 34e9, "tiny-2": 1e9, "tiny-3": 21e9} {
		if err := history.AddDisk(t.Context(), home, "tiny", id, bytes); err != nil {
			t.Fatal(err)
		}
	}
	err = w.makeRoom(t.Context(), entries)
	if diag.CodeOf(err) != diag.NoEngine || !strings.Contains(err.Error(), "tiny-1 needs about 34.0 GB") || !strings.Contains(err.Error(), "tiny-3 needs about 21.0 GB") || strings.Contains(err.Error(), "tiny-2") {
		t.Errorf("got %v", err)
	}
	w.engines = append(w.engines, &engine{EngineChoice: EngineChoice{Address: "tcp://far:1"}, Session: w.Session})
	if err := w.makeRoom(t.Context(), entries); err != nil {
		t.Errorf("with a second engine: %v", err)
	}
}

// The recorded cache use of a cell overrides the estimate from its lock. A cell larger
// than the cache bound is refused. The hint names the flag to raise the bound.
func TestCellThatDoesNotFit(t *testing.T) {
	home := t.TempDir()
	e := &engine{disk: home, Session: &Session{Home: home, Engines: Engines{Native: native.Options{Cache: 20e9}}, Note: t.Logf}}
	entry := lock.Entry{Recipe: "tiny", ID: "tiny-1"}
	if need, how := e.need(t.Context(), entry); need != needs.Cache(entry) || how != "estimated from the files of its lock" {
		t.Errorf("nothing is known: %d, %s", need, how)
	}
	if err := history.AddDisk(t.Context(), home, "tiny", "tiny-1", 34e9); err != nil {
		t.Fatal(err)
	}
	need, how := e.need(t.Context(), entry)
	if need != 34e9 || how != "measured in an earlier build" {
		t.Errorf("built before: %d, %s", need, how)
	}
	err := e.enough(need, how, entry)
	if diag.CodeOf(err) != diag.NoEngine || !strings.Contains(err.Error(), "34.0 GB of the engine's cache (measured in an earlier build), whose limit is 20.0 GB") || !strings.Contains(firstHint(err), "--engine-cache 90%, or a size such as 35GB") {
		t.Errorf("got %v, hint %q", err, firstHint(err))
	}
	e.Native.Cache = 0
	if err := e.enough(1<<60, how, entry); !strings.Contains(err.Error(), " free: tiny-1 needs about ") {
		t.Errorf("got %v", err)
	}
}

// The layers of an image that the engine lacks count. Doctor names an image whose size
// nobody knows.
func TestRoomForImages(t *testing.T) {
	entry := lock.Entry{Recipe: "tiny", ID: "tiny-1"}
	entry.Image.Pin = lock.ImagePin{Registry: "x/rocm", Digest: "sha256:1"}
	entry.Runtime = entry.Image
	asked := 0
	est := needs.Estimator{Held: func(string) bool { return false }, Size: func(_ context.Context, image string) (int64, error) {
		asked++
		if image != "x/rocm@sha256:1" {
			t.Errorf("asked for %s", image)
		}
		return 6e9, nil
	}}
	bytes, how, unsized := est.Cache(t.Context(), entry)
	if bytes != needs.Cache(entry)+24e9 || !strings.Contains(how, "layers of its images") || len(unsized) > 0 || asked != 1 {
		t.Errorf("%d, %s, %v, asked %d times", bytes, how, unsized, asked)
	}
	est.Size = func(context.Context, string) (int64, error) { return 0, errors.New("silent") }
	if bytes, _, unsized := est.Cache(t.Context(), entry); bytes != needs.Cache(entry) || len(unsized) != 1 {
		t.Errorf("%d, %v", bytes, unsized)
	}
	est.Held = func(string) bool { return true }
	if bytes, _, unsized := est.Cache(t.Context(), entry); bytes != needs.Cache(entry) || len(unsized) > 0 {
		t.Errorf("the engine has it: %d, %v", bytes, unsized)
	}
}

// A cell whose use of the cache is known, or whose image was made before, asks the
// engine nothing while the disk has room beyond doubt.
func TestRoomWithoutQuestion(t *testing.T) {
	home := t.TempDir()
	entry := lock.Entry{Recipe: "tiny", ID: "tiny-1"}
	// An engine that is asked has no client, and notes that it cannot measure.
	asks := func(e *engine) bool {
		asked := false
		e.Note = func(string, ...any) { asked = true }
		ended, err := e.room(t.Context(), entry)
		if err != nil {
			t.Fatal(err)
		}
		ended()
		return asked
	}
	unreachable := "unix://" + filepath.Join(home, "none.sock")
	with := func(bound int64) *engine {
		return &engine{
			disk: home, scratch: home, chosen: &pipelines.Engine{Address: unreachable},
			Session: &Session{Home: home, Engines: Engines{Native: native.Options{Cache: bound}}},
		}
	}
	if !asks(with(0)) {
		t.Error("nothing is known, and nobody asked")
	}
	if err := os.WriteFile(imageMark(home, entry.Image), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if asks(with(0)) {
		t.Error("the image was made before")
	}
	if !asks(with(1)) {
		t.Error("the limit may be reached")
	}
	if err := errors.Join(os.Remove(imageMark(home, entry.Image)), history.AddDisk(t.Context(), home, "tiny", "tiny-1", 1000)); err != nil {
		t.Fatal(err)
	}
	if asks(with(0)) {
		t.Error("the use was measured")
	}
}
