package build

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/view/progress"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A shell opens before the step that failed, if a step can be reproduced there.
func TestStepToDebug(t *testing.T) {
	out := t.TempDir()
	check.Same(t, "the step without a run", "build", StepToDebug(out, "tiny-1"))
	for failed, want := range map[string]string{"patch": "patch", "source": "source", "gate import": "build", "": "build"} {
		steps := []report.Step{{Name: "image"}, {Name: "source"}, {Name: "patch"}, {Name: "build"}, {Name: "gate import"}}
		for i := range steps {
			steps[i].Failed = steps[i].Name == failed
		}
		run := report.Run{Schema: report.Schema, Started: time.Now(), Cells: []report.Cell{{ID: "tiny-1", Steps: steps}}}
		must.Succeed(t, report.Write(filepath.Join(out, "run.json"), run))
		check.Same(t, fmt.Sprintf("%q failed: the step", failed), want, StepToDebug(out, "tiny-1"))
	}
}

// A part of a cell's id names it, if no other cell has the part.
func TestFindByName(t *testing.T) {
	ids := []string{"tool-1", "tool-10", "other-2"}
	for word, want := range map[string]string{"tool-1": "tool-1", "oth": "other-2", "-2": "other-2"} {
		id, err := findByName(word, ids)
		check.That(t, err == nil && id == want, "%s: got %s, %v", word, id, err)
	}
	for word, want := range map[string]string{"tool": "matches 2 cells", "tol-1": "unknown cell"} {
		_, err := findByName(word, ids)
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), want), "%s: %v", word, err)
	}
}

// noEngine stands for an engine that is never asked.
type noEngine struct{ run.Engine }

// TestWriteRootfsLeavesNothing: after a failure the directory is free for the next try.
// A directory that was there before stays.
func TestWriteRootfsLeavesNothing(t *testing.T) {
	shown := progress.New(io.Discard, progress.Options{})
	t.Cleanup(shown.Close)
	s := Setup{Display: shown}
	s.Builder = noEngine{}
	s.Keys.Home, s.Keys.Offline, s.Sources = t.TempDir(), true, plan.Sources{Offline: true, Locked: true}
	e := lock.Entry{Recipe: "tiny", ID: "tiny-1"}
	e.Image.Wheels = []pypi.File{{Filename: "tool-1-py3-none-any.whl", SHA256: strings.Repeat("0", 64), Size: 1}}
	made, there := filepath.Join(t.TempDir(), "new"), t.TempDir()
	for _, dir := range []string{made, there} {
		err := WriteStepRootfs(t.Context(), s, e, "build", dir)
		must.Hold(t, diag.CodeOf(err) == diag.Fetch, "an empty store offline: %v", err)
	}
	_, err := os.Stat(made)
	check.That(t, err != nil, "the directory is left")
	_, err = os.Stat(there)
	check.That(t, err == nil, "%v", err)
}
