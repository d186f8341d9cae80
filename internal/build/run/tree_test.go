package run_test

import (
	"context"
	"path/filepath"
	"testing"

	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/sourcetreetest"
)

// packer is an engine. Its artifact is an archive of its input.
type packer struct {
	*fake
	source, text string
}

func (p packer) Build(ctx context.Context, job run.Job, _ run.Events, look run.Look) error {
	e, dir := job.Entry, job.Dir
	if err := sourcetreetest.Write(p.source, map[string]string{"tool-1/train.py": "backend = 'nccl'\n"}); err != nil {
		return err
	}
	path := filepath.Join(dir, e.Expect.Tree)
	if err := sourcetreetest.Write(path, map[string]string{"tool-1+gloo/train.py": p.text}); err != nil {
		return err
	}
	a, err := artifact.Of(path, e.Key())
	if err != nil {
		return err
	}
	return look(ctx, run.Built{Artifacts: []artifact.Artifact{a}, Source: p.source})
}

// The gates receive the source tree and the patches of the entry.
func TestATreeIsComparedWithItsSource(t *testing.T) {
	e := lock.Entry{
		ID: "tool-1+gloo", Expect: recipe.Expect{Tree: "tool-1+gloo.tar"},
		Source:  lock.SourcePin{File: pypi.File{Filename: "tool-1.tar"}},
		Patches: []patch.Patch{{Name: "gloo", Edits: []patch.Edit{{Kind: patch.Replace, File: "train.py", Search: "nccl", Replace: "gloo", Count: 1}}}},
	}
	for text, want := range map[string]verdict.Status{"backend = 'gloo'\n": verdict.Pass, "backend = 'nccl'\n": verdict.Fail} {
		f := &fake{}
		p := packer{f, filepath.Join(t.TempDir(), "0f1e2d"), text}
		r := run.Runner{Fetcher: p, Engine: p, Finder: p, Sealer: p, Out: t.TempDir(), Jobs: 1, Watch: watch, Done: func(int, run.Outcome) {}}
		o := r.Run(t.Context(), []lock.Entry{e})[0]
		check.That(t, len(o.Verdicts) == 1 && o.Verdicts[0].Gate == "changes" && o.Verdicts[0].Status == want && (o.Err == nil) == (want == verdict.Pass),
			"%q: %+v, %v", text, o.Verdicts, o.Err)
	}
}
