package history_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"builder/internal/build/history"
)

const recipe = "horovod"

func add(t *testing.T, dir, id string, steps map[string]float64) {
	t.Helper()
	if err := history.Add(t.Context(), dir, recipe, id, steps); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) history.History {
	t.Helper()
	h, err := history.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestNothingIsKnown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	h := read(t, dir)
	if s, known := h.Cell(recipe, "a"); known || s != 0 {
		t.Errorf("%g, %v", s, known)
	}
	if s, known := h.Step(recipe, "a", "build"); known || s != 0 {
		t.Errorf("%g, %v", s, known)
	}
	add(t, dir, "a", nil)
	if _, err := os.Stat(dir); err == nil {
		t.Error("nothing was to be kept, and a directory was made")
	}
}

// Times of the same cell come first, then those of the recipe's other cells.
func TestEstimates(t *testing.T) {
	dir := t.TempDir()
	add(t, dir, "a", map[string]float64{"image": 60, "build": 100})
	add(t, dir, "b", map[string]float64{"build": 300})
	add(t, dir, "c", map[string]float64{"build": 200, "gate import": 5})
	for _, seconds := range []float64{900, 110, 120, 130, 140, 150} { // the first is dropped
		add(t, dir, "a", map[string]float64{"build": seconds})
	}
	h := read(t, dir)
	for _, c := range []struct {
		recipe, id, step string
		want             float64
	}{
		{recipe, "a", "build", 130},
		{recipe, "a", "image", 60},
		{recipe, "b", "build", 300},
		{recipe, "b", "image", 60}, // from another cell
		{recipe, "new", "build", 200},
		{recipe, "new", "gate import", 5},
		{recipe, "new", "unheard", 0},
		{"nccl", "a", "build", 0},
	} {
		if got, known := h.Step(c.recipe, c.id, c.step); got != c.want || known != (c.want > 0) {
			t.Errorf("step %s of %s of %s: %g, %v, want %g", c.step, c.id, c.recipe, got, known, c.want)
		}
	}
	for id, want := range map[string]float64{"a": 190, "b": 300, "new": 200} { // only one of three cells has the step image
		if got, known := h.Cell(recipe, id); got != want || !known {
			t.Errorf("cell %s: %g, %v, want %g", id, got, known, want)
		}
	}
	if got := h.Steps(recipe, "a"); !maps.Equal(got, map[string]float64{"image": 60, "build": 130}) {
		t.Errorf("steps %v", got)
	}
}

func TestItIsBounded(t *testing.T) {
	dir := t.TempDir()
	var cells []any
	for i := range 500 {
		cells = append(cells, map[string]any{"recipe": recipe, "id": fmt.Sprint("cell-", i), "steps": map[string][]float64{"build": {float64(i)}}})
	}
	keep(t, dir, map[string]any{"schema": 1, "cells": cells})
	many := map[string]float64{}
	for i := range 300 {
		many[fmt.Sprint("step ", i)] = 1
	}
	add(t, dir, "cell-0", many) // becomes the newest
	add(t, dir, "new", map[string]float64{"build": 1})
	h := read(t, dir)
	if len(h.Cells) != 500 {
		t.Errorf("%d cells", len(h.Cells))
	}
	if s, known := h.Step(recipe, "cell-0", "build"); !known || s != 0 {
		t.Errorf("the cell that was added to just now: %g, %v", s, known)
	}
	if n := len(h.Steps(recipe, "cell-0")); n != 100 {
		t.Errorf("%d steps", n)
	}
}

func keep(t *testing.T, dir string, v any) {
	t.Helper()
	data, ok := v.(string)
	if !ok {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		data = string(text)
	}
	if err := os.WriteFile(filepath.Join(dir, "history.json"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Any damaged file is reported once and then replaced.
func TestDamage(t *testing.T) {
	for name, text := range map[string]string{
		"cut":       `{"schema":1,"cells":[{"recipe":"horovod","id":"a","steps":{"bu`,
		"empty":     "",
		"no JSON":   "\x00\x01",
		"newer":     `{"schema":2,"cells":[]}`,
		"negative":  `{"schema":1,"cells":[{"recipe":"horovod","id":"a","steps":{"build":[-1]}}]}`,
		"for ever":  `{"schema":1,"cells":[{"recipe":"horovod","id":"a","steps":{"build":[1e300]}}]}`,
		"too large": strings.Repeat(" ", 17<<20),
	} {
		dir := t.TempDir()
		keep(t, dir, text)
		if h, err := history.Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "starting a new record") || len(h.Cells) > 0 {
			t.Errorf("%s: %v, %d cells", name, err, len(h.Cells))
		}
		read(t, dir)
		keep(t, dir, text)
		add(t, dir, "a", map[string]float64{"build": 3}) // Add alone does not fail
		if s, known := read(t, dir).Cell(recipe, "a"); s != 3 || !known {
			t.Errorf("%s: %g, %v", name, s, known)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "history.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Read(t.Context(), dir); err == nil {
		t.Error("a link was followed")
	}
	read(t, dir)
}

func TestManyAtATime(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := history.Add(t.Context(), dir, recipe, fmt.Sprint("cell-", i), map[string]float64{"build": 1}); err != nil {
				t.Error(err)
			}
			if _, err := history.Read(t.Context(), dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(read(t, dir).Cells); n != 20 {
		t.Errorf("%d cells", n)
	}
}

// The largest size counts, because a build with a partly filled cache needs less.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	for _, bytes := range []int64{3e9, 7e9, 1e9} {
		if err := history.AddDisk(t.Context(), dir, recipe, "a", bytes); err != nil {
			t.Fatal(err)
		}
	}
	add(t, dir, "a", map[string]float64{"build": 1})
	if bytes, known := read(t, dir).Disk(recipe, "a"); !known || bytes != 7e9 {
		t.Errorf("%d, %v", bytes, known)
	}
	if s, known := read(t, dir).Cell(recipe, "a"); !known || s != 1 {
		t.Errorf("%g, %v", s, known)
	}
	if bytes, known := read(t, dir).Disk(recipe, "b"); known {
		t.Errorf("%d of a cell that was never built", bytes)
	}
}
