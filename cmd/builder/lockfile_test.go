package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"builder/internal/lock"
	"builder/internal/pypi"
	"builder/pipelines"
)

// owner is a catalogue with a site that brings the recipe tiny.
func owner(t *testing.T) catalogue {
	t.Helper()
	return catalogue{site: t.TempDir(), owned: map[string]bool{"tiny": true}}
}

// release pins one release of tiny.
func release(n int) lock.File {
	return lock.File{Schema: lock.Schema, Recipe: "tiny", Sources: []lock.SourcePin{{File: pypi.File{
		Project: "tiny", Version: fmt.Sprint(n), Filename: "tiny.tar.gz", Size: 7,
		SHA256: "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
	}}}}
}

// Whoever resolves at the same time loses no pin, and reads no half of a lock.
func TestUpdateLockAtOnce(t *testing.T) {
	cat := owner(t)
	const many = 30
	var wg sync.WaitGroup
	for n := range many {
		wg.Go(func() {
			if done, err := cat.updateLock("", "tiny", update{pins: release(n)}); err != nil || !done.wrote {
				t.Errorf("release %d: %+v, %v", n, done, err)
			}
			if _, err := cat.readLock("", "tiny"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f, err := cat.readLock("", "tiny")
	if err != nil || len(f.Sources) != many {
		t.Errorf("%d pins of %d, %v", len(f.Sources), many, err)
	}
	left, err := os.ReadDir(filepath.Join(cat.site, "recipes"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUpdateLock(t *testing.T) {
	cat := owner(t)
	path := cat.lockPath("", "tiny")
	done, err := cat.updateLock("", "tiny", update{})
	if _, absent := os.Stat(path); done.wrote || err != nil || absent == nil {
		t.Errorf("nothing to write: %+v, %v", done, err)
	}
	if done, err = cat.updateLock("", "tiny", update{pins: release(1)}); !done.wrote || !done.before.None() || len(done.after.Sources) != 1 || err != nil {
		t.Errorf("the first pin: %+v, %v", done, err)
	}
	if done, err = cat.updateLock("", "tiny", update{pins: release(1)}); done.wrote || err != nil {
		t.Errorf("the same pin: %+v, %v", done, err)
	}
	drop := func(lock.File) lock.File { return release(1) }
	if done, err = cat.updateLock("", "tiny", update{pins: release(2), drop: drop}); !done.wrote || len(done.after.Sources) != 1 || done.after.Sources[0].Version != "2" || err != nil {
		t.Errorf("one goes, one comes: %+v, %v", done, err)
	}
	if err := os.WriteFile(path, []byte(`{"schema": 1, "recipe": "tiny", "sources": [], "images": [], "python": []}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if done, err = cat.updateLock("", "tiny", update{pins: release(3)}); done.wrote || !errors.Is(err, lock.ErrEdited) {
		t.Errorf("an edited lock: %+v, %v", done, err)
	}
	if done, err = cat.updateLock("", "tiny", update{pins: release(3), replace: true}); !done.wrote || !done.edited || err != nil {
		t.Errorf("an edited lock that is replaced: %+v, %v", done, err)
	}
}

// The steps of changes are steps of the pipeline, in its order, and the gates.
func TestChangesNameStepsOfThePipeline(t *testing.T) {
	last := -1
	all := stepsFrom(pipelines.Steps()[0].Name)
	for _, step := range lock.Steps() {
		i := slices.Index(all, step)
		if i <= last {
			t.Errorf("step %s is at %d of %v", step, i, all)
		}
		last = i
	}
	if last != len(all)-1 {
		t.Errorf("something is behind the gates: %v", all)
	}
}
