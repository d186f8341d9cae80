package proven

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestStanding(t *testing.T) {
	cells := Cells{
		"a": {Recipe: "r", Key: "k1", Gates: 13, Day: "2026-11-22"},
		"b": {Recipe: "r", Key: "k2", Gates: 1, Rebuilt: true, GPUs: true, Day: "2026-11-23", Tests: "full"},
		"d": {Recipe: "r", Key: "k1", Gates: 2, Day: "2026-11-23", Tests: "none"},
		"e": {Recipe: "r", Key: "k1", Gates: 2, Day: "2026-11-24", Site: true},
	}
	for _, c := range []struct{ id, key, want string }{
		{"a", "k1", "2026-11-22: 13 gates passed, not rebuilt, no GPU"},
		{"a", "k2", "2026-11-22: 13 gates passed, not rebuilt, no GPU; its inputs have changed since"},
		{"a", "", "2026-11-22: 13 gates passed, not rebuilt, no GPU; its inputs have changed since"},
		{"b", "k2", "2026-11-23: 1 gates passed with upstream's tests (full), rebuilt to the same bytes, on GPUs"},
		{"e", "k1", "2026-11-24: 2 gates passed, not rebuilt, no GPU, as the site states"},
		{"d", "k1", "2026-11-23: 2 gates passed without upstream's tests, not rebuilt, no GPU"},
		{"c", "k1", "never built"},
	} {
		check.Same(t, fmt.Sprintf("%s with key %q", c.id, c.key), c.want, cells.Standing(c.id, c.key).String())
	}
}

// A second proof of the same bytes adds to the first. A proof of other bytes replaces
// it.
func TestRecordAddsToTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	first := Proof{Recipe: "r", Key: "k", Wheel: "w", Gates: 2, Rebuilt: true, Day: "2026-11-22", Tests: "full"}
	second := Proof{Recipe: "r", Key: "k", Wheel: "w", Gates: 3, GPUs: true, Day: "2026-11-23", Tests: "none"}
	other := Proof{Recipe: "r", Key: "k2", Wheel: "w2", Gates: 1, Day: "2026-11-24"}
	both := second
	both.Rebuilt, both.Tests = true, "full"
	for _, step := range []struct{ record, want Proof }{{first, first}, {second, both}, {other, other}} {
		must.Succeed(t, Record(path, Cells{"a": step.record}))
		got, err := Read(os.DirFS(dir))
		check.That(t, err == nil && got["a"] == step.want, "recorded %+v: read %+v, want %+v, %v", step.record, got["a"], step.want, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema": 2, "cells": {}}`:                        "schema 2, this version reads 1",
		`{"schema": 1, "cells": {"a": {"proof": "trust"}}}`: "unknown field",
		`{"schema": 1, "cells": {"a": 1}}`:                  "has the wrong type",
		`{`:                                                 "unexpected EOF",
	} {
		_, err := Read(fstest.MapFS{Name: {Data: []byte(text)}})
		check.Fails(t, err, want, text)
	}
	cells, err := Read(fstest.MapFS{})
	check.That(t, err == nil && len(cells) == 0, "without the file: %v, %v", cells, err)
}
