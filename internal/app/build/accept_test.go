package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// making is an engine that has made these files.
type making []artifact.Artifact

func (m making) Build(ctx context.Context, _ run.Job, _ run.Events, look run.Look) error {
	return look(ctx, run.Built{Artifacts: m})
}

// TestClaimingEngine gives files that a recipe of a site made under promises that claim
// nothing of builder's.
func TestClaimingEngine(t *testing.T) {
	judged := errors.New("judged")
	for _, c := range []struct {
		name, recipe, file string
		member             string // of the wheel
		accept             []string
		want               string // part of the refusal; "" for none
	}{
		{"a project of its own", "ours", "dotprod-1-py3-none-any.whl", "dotprod/__init__.py", nil, ""},
		{"a wheel of builder's name", "ours", "horovod-1-py3-none-any.whl", "dotprod/__init__.py", nil, "made horovod-1-py3-none-any.whl"},
		{"a package of builder's", "ours", "dotprod-1-py3-none-any.whl", "horovod/__init__.py", nil, "made horovod"},
		{"a library of builder's", "ours", "dotprod-1-py3-none-any.whl", "dotprod/lib/librccl.so.1", nil, "made dotprod/lib/librccl.so.1"},
		{"a program of builder's", "ours", "dotprod-1-py3-none-any.whl", "dotprod-1.data/scripts/horovodrun", nil, "made horovodrun"},
		{"an archive beside the wheel", "ours", "nccl_2.29.7_x86_64.txz", "", nil, "made nccl_2.29.7_x86_64.txz"},
		{"accepted", "ours", "horovod-1-py3-none-any.whl", "horovod/__init__.py", []string{"ours"}, ""},
		{"builder's own recipe", "horovod", "horovod-1-py3-none-any.whl", "horovod/__init__.py", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if c.member != "" {
				path = wheeltest.Wheel{Name: c.file, Files: []wheeltest.File{{Name: c.member}}}.Write(t)
			} else {
				must.Succeed(t, os.WriteFile(path, nil, 0o600))
			}
			engine := claimingEngine{making{{Name: c.file, Path: path}}, c.accept}
			err := engine.Build(t.Context(), run.Job{Entry: lock.Entry{Recipe: c.recipe, ID: "ours-1"}}, nil, func(context.Context, run.Built) error { return judged })
			if c.want == "" {
				check.That(t, errors.Is(err, judged), "got %v", err)
				return
			}
			check.That(t, err != nil && strings.Contains(err.Error(), c.want), "got %v, want %s", err, c.want)
		})
	}
}
