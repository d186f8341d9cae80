package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/files/difference"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
)

// RebuiltDir holds the output of a second build if it differs from the first, below the
// directory of a cell.
const RebuiltDir = "rebuilt"

// rebuild builds a passed cell again and adds the comparison to its verdicts. It keeps
// the result only if the bytes are equal.
func (r Runner) rebuild(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, dir string, result Result) (Result, error) {
	start := time.Now()
	events := secondTime{&recorded{Events: r.Watch(e.ID), result: &result}}
	job := Job{Entry: e, Inputs: inputs, Dir: filepath.Join(dir, RebuiltDir)}
	v, err := BuildAgain(ctx, r.Fetcher, r.Engine, job, result.Artifacts, events)
	if err != nil {
		return result, err
	}
	v.Seconds = time.Since(start).Seconds()
	v = v.Waive(e.Expect.Waivers, r.Now)
	result.Verdicts = append(result.Verdicts, v)
	if result, err = keepBack(dir, result); err != nil {
		return result, errors.Join(err, r.Finder.Forget(e))
	}
	return r.seal(e, result, []verdict.Verdict{v})
}

// BuildAgain builds an entry a second time and compares the files with those of the first
// build. Files that differ stay in the directory of the job.
func BuildAgain(ctx context.Context, f Fetcher, on Engine, job Job, first []artifact.Artifact, events Events) (verdict.Verdict, error) {
	if err := os.RemoveAll(job.Dir); err != nil {
		return verdict.Verdict{}, err
	}
	if err := Fetch(ctx, events, f, job.Entry); err != nil {
		return verdict.Verdict{}, err
	}
	var second []artifact.Artifact
	job.Again = true
	err := on.Build(ctx, job, events, func(_ context.Context, built Built) error {
		second = built.Artifacts
		return nil
	})
	if err != nil {
		return verdict.Verdict{}, fmt.Errorf("the second build: %w", err)
	}
	v := compare(first, second)
	if !v.Refuses() {
		err = os.RemoveAll(job.Dir)
	}
	return v, err
}

// Again is the prefix of step names of a second build.
const Again = "again "

// secondTime adds the prefix Again to the steps of a second build.
type secondTime struct{ Events }

func (s secondTime) StepStarted(step string) io.Writer { return s.Events.StepStarted(Again + step) }

func (s secondTime) StepDone(step string, d time.Duration, cached bool, err error) {
	s.Events.StepDone(Again+step, d, cached, err)
}

// compare returns the verdict of a comparison of two builds: by the names and digests of
// their files, and by the content of those that differ.
func compare(first, second []artifact.Artifact) verdict.Verdict {
	var problems, same []string
	for _, a := range first {
		i := slices.IndexFunc(second, func(b artifact.Artifact) bool { return b.Name == a.Name })
		switch {
		case i < 0:
			problems = append(problems, "the second build made no "+a.Name)
		case second[i].SHA256 != a.SHA256:
			problems = append(problems, fmt.Sprintf("%s has sha256 %s, and %s in the second build, which is in %s/", a.Name, a.SHA256, second[i].SHA256, RebuiltDir))
			if filepath.Ext(a.Name) == ".whl" {
				where, err := difference.OfWheels(a.Path, second[i].Path)
				if err != nil {
					where = []string{err.Error()}
				}
				problems = append(problems, where...)
			}
		default:
			same = append(same, a.Name)
		}
	}
	for _, b := range second {
		if !slices.ContainsFunc(first, func(a artifact.Artifact) bool { return a.Name == b.Name }) {
			problems = append(problems, "only the second build made "+b.Name)
		}
	}
	if len(problems) == 0 && len(same) > 0 {
		same = []string{fmt.Sprintf("%d files are equal in a second build", len(same))}
	}
	v := verdict.Judge(problems, same)
	if v.Gate = gate.Reproducible.Name; v.Refuses() {
		v.Remedy = gate.Reproducible.Remedy
	}
	return v
}
