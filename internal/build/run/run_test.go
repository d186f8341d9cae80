package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// fake implements every interface of a Runner. The cell's ID selects its behaviour.
type fake struct {
	mu        sync.Mutex
	kept      []string
	built     []string
	done      []int
	rebuilt   []string
	sealed    []string // cell and its number of verdicts
	forgotten []string
	inputs    []string // cell and the wheel it received
	known     map[string]run.Result
}

func (f *fake) Fetch(_ context.Context, e lock.Entry, _ io.Writer) error {
	if e.ID == "unfetchable" {
		return diag.Errorf(diag.Fetch, "unreachable")
	}
	return nil
}

func (f *fake) Build(ctx context.Context, job run.Job, ev run.Events, look run.Look) error {
	if job.Again {
		return f.buildAgain(ctx, job, ev, look)
	}
	e, dir := job.Entry, job.Dir
	f.mu.Lock()
	f.built = append(f.built, e.ID)
	for _, in := range job.Inputs {
		f.inputs = append(f.inputs, e.ID+" "+in.Name)
	}
	f.mu.Unlock()
	fmt.Fprintln(ev.StepStarted("build"), "compiling")
	ev.StepDone("build", time.Second, false, nil)
	switch e.ID {
	case "broken":
		return &diag.Error{Code: diag.Build, Err: errors.New("exit 1")}
	case "panics":
		panic("boom")
	case "slow":
		<-ctx.Done()
		return ctx.Err()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The gates refuse this file because it is not a wheel.
	path := filepath.Join(dir, "x-1-py3-none-any.whl")
	if err := os.WriteFile(path, []byte("no wheel"), 0o644); err != nil {
		return err
	}
	a, err := artifact.Of(path, e.Key())
	if err != nil {
		return err
	}
	return look(ctx, run.Built{Artifacts: []artifact.Artifact{a}, Engine: "unix:///engine"})
}

// buildAgain makes the same files as Build, or different bytes if the cell's ID requests
// it.
func (f *fake) buildAgain(ctx context.Context, job run.Job, ev run.Events, look run.Look) error {
	e := job.Entry
	ev.StepStarted("build")
	ev.StepDone("build", time.Second, false, nil)
	f.mu.Lock()
	f.rebuilt = append(f.rebuilt, e.ID)
	f.mu.Unlock()
	if e.ID == "breaks" {
		return &diag.Error{Code: diag.Build, Err: errors.New("exit 1")}
	}
	made := slices.Clone(f.known["good"].Artifacts)
	switch e.ID {
	case "differs":
		made[0].SHA256 = "bb"
	case "less":
		made = made[:1]
	case "more":
		made = append(made, artifact.Artifact{Name: "x.log", SHA256: "dd"})
	case "nothing":
		made = nil
	}
	return errors.Join(os.MkdirAll(job.Dir, 0o755), look(ctx, run.Built{Artifacts: made}))
}

func (f *fake) Find(_ context.Context, e lock.Entry, _ string) (run.Result, bool, error) {
	r, ok := f.known[e.ID]
	return r, ok, nil
}

func (f *fake) Forget(e lock.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten = append(f.forgotten, e.ID)
	return nil
}

func (f *fake) Seal(e lock.Entry, _ run.Result, round []verdict.Verdict) ([]artifact.Artifact, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sealed = append(f.sealed, fmt.Sprintf("%s %d", e.ID, len(round)))
	if e.ID == "unsealable" {
		return nil, errors.New("no key")
	}
	return []artifact.Artifact{{Name: "provenance"}}, nil
}

func (f *fake) Keep(e lock.Entry, _ run.Result) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, e.ID)
	return nil
}

// silent ignores all events.
type silent struct{}

func (silent) StepStarted(string) io.Writer                { return io.Discard }
func (silent) StepDone(string, time.Duration, bool, error) {}
func watch(string) run.Events                              { return silent{} }
func entry(id string) lock.Entry {
	return lock.Entry{ID: id, Expect: recipe.Expect{Packages: []string{"x"}}}
}

func entries(ids ...string) (all []lock.Entry) {
	for _, id := range ids {
		all = append(all, entry(id))
	}
	return all
}

// runner returns a runner whose every part is f.
func runner(f *fake, out string) run.Runner {
	return run.Runner{Fetcher: f, Engine: f, Finder: f, Sealer: f, Out: out, Jobs: 1, Watch: watch, Done: func(int, run.Outcome) {}}
}

func start(t *testing.T, ctx context.Context, f *fake, jobs int, failFast bool, ids ...string) ([]run.Outcome, string) {
	t.Helper()
	out := t.TempDir()
	r := runner(f, out)
	r.Jobs, r.FailFast = jobs, failFast
	r.Done = func(i int, _ run.Outcome) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done = append(f.done, i)
	}
	return r.Run(ctx, entries(ids...)), out
}

func TestOneBadCellTakesNoOther(t *testing.T) {
	known := run.Result{Verdicts: []verdict.Verdict{{Gate: "g", Status: verdict.Pass}}}
	f := &fake{known: map[string]run.Result{"known": known, "last": known}}
	for _, jobs := range []int{1, 4} {
		f.done = nil
		got, _ := start(t, t.Context(), f, jobs, false, "broken", "panics", "unfetchable", "known", "refused", "last")
		var codes []diag.Code
		for _, o := range got {
			codes = append(codes, diag.CodeOf(o.Err))
		}
		want := []diag.Code{diag.Build, diag.Unexpected, diag.Fetch, diag.OK, diag.Gate, diag.OK}
		check.That(t, slices.Equal(codes, want), "%d jobs: got %v, want %v", jobs, codes, want)
		check.That(t, len(f.done) == len(got), "%d jobs: %d outcomes were told of %d", jobs, len(f.done), len(got))
		check.That(t, got[3].From == report.Store && got[0].Entry.ID == "broken", "%d jobs: got %+v", jobs, got[3])
	}
	check.That(t, !slices.Contains(f.built, "known") && len(f.kept) == 0, "built %v, kept %v", f.built, f.kept)
}

func TestFaultsNameTheCell(t *testing.T) {
	got, _ := start(t, t.Context(), &fake{}, 1, false, "broken")
	text := got[0].Err.Error()
	check.That(t, strings.HasPrefix(text, "building broken: "), "got %q", text)
	for _, err := range diag.All(got[0].Err) {
		check.That(t, strings.Contains(err.Error(), "building broken"), "got %q", err)
	}
}

func TestARefusedWheelIsSetAside(t *testing.T) {
	f := &fake{}
	got, out := start(t, t.Context(), f, 1, false, "refused")
	path := got[0].Artifacts[0].Path
	check.That(t, filepath.Base(filepath.Dir(path)) == artifact.RejectedDir, "the wheel lies at %s", path)
	_, err := os.Stat(path)
	check.That(t, err == nil, "%v", err)
	left, _ := filepath.Glob(filepath.Join(out, "refused", "*.whl"))
	check.That(t, len(left) == 0, "it still looks like a good one: %v", left)
	check.That(t, len(got[0].Verdicts) != 0 && len(f.kept)+len(f.sealed) == 0 && diag.CodeOf(got[0].Err) == diag.Gate,
		"got %+v, kept %v, sealed %v", got[0], f.kept, f.sealed)
}

// listMade lists artifacts as an earlier run does that wrote them.
func listMade(t *testing.T, out, id string, names ...string) {
	t.Helper()
	list := filepath.Join(out, ".made", id)
	must.Succeed(t, os.MkdirAll(filepath.Dir(list), 0o755), os.WriteFile(list, []byte(strings.Join(names, "\n")+"\n"), 0o644))
}

// A run removes what an earlier run wrote, and no other file: neither one beside it nor
// one that a list names elsewhere.
func TestFilesOfOthersStay(t *testing.T) {
	out := t.TempDir()
	before := entry("broken")
	before.Script = "false"
	dir := filepath.Join(out, "broken")
	others := []string{filepath.Join(dir, "thesis.txt"), filepath.Join(dir, artifact.RejectedDir, "notes.txt"), filepath.Join(dir, "own.attestations", "x"), filepath.Join(out, "above.txt")}
	ours := []string{filepath.Join(dir, "old.whl"), filepath.Join(dir, "old.whl.attestations", "x"), filepath.Join(dir, artifact.RejectedDir, "old.env")}
	for _, file := range append(others, ours...) {
		must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644))
	}
	must.Succeed(t, lock.WriteEntry(dir, before))
	listMade(t, out, "broken", "old.whl", "old.env", "../above.txt", filepath.Join(out, "above.txt"))
	f := &fake{}
	runner(f, out).Run(t.Context(), entries("broken"))
	for _, file := range others {
		_, err := os.Stat(file)
		check.That(t, err == nil, "a file of others is gone: %v", err)
	}
	for _, file := range ours {
		_, err := os.Stat(file)
		check.That(t, errors.Is(err, os.ErrNotExist), "%s is still there: %v", file, err)
	}
}

// What a run writes, the next one removes.
func TestARunListsWhatItWrites(t *testing.T) {
	f := &fake{}
	got, out := start(t, t.Context(), f, 1, false, "refused")
	other := entry("refused")
	other.Script = "false"
	must.Succeed(t, os.WriteFile(filepath.Join(out, "refused", "thesis.txt"), nil, 0o644))
	f = &fake{known: map[string]run.Result{"refused": {}}}
	runner(f, out).Run(t.Context(), []lock.Entry{other})
	_, err := os.Stat(got[0].Artifacts[0].Path)
	check.That(t, errors.Is(err, os.ErrNotExist), "the wheel of other inputs is still there: %v", err)
	_, err = os.Stat(filepath.Join(out, "refused", "thesis.txt"))
	check.That(t, err == nil, "%v", err)
}

// A list that comes with a link, as in a checkout, removes nothing elsewhere.
func TestAListRemovesNothingElsewhere(t *testing.T) {
	out, elsewhere := t.TempDir(), t.TempDir()
	thesis := filepath.Join(elsewhere, "thesis.txt")
	must.Succeed(t, os.WriteFile(thesis, nil, 0o644), os.Symlink(elsewhere, filepath.Join(out, "broken")))
	listMade(t, out, "broken", "thesis.txt")
	f := &fake{}
	runner(f, out).Run(t.Context(), entries("broken"))
	_, err := os.Stat(thesis)
	check.That(t, err == nil, "%v", err)
}

// A wheel that no run wrote does not pass beside one that did. A list that names it, as in
// a checkout, has it removed.
func TestAWheelOfOthersBesideAResult(t *testing.T) {
	for name, listed := range map[string]bool{"planted-1.0-py3-none-any.whl": false, "listed-1.0-py3-none-any.whl": true} {
		out := t.TempDir()
		other := entry("good")
		other.Script = "false"
		must.Succeed(t, lock.WriteEntry(filepath.Join(out, "good"), other), os.WriteFile(filepath.Join(out, "good", name), nil, 0o644))
		if listed {
			listMade(t, out, "good", name)
		}
		got := runner(&fake{known: map[string]run.Result{"good": {Verdicts: passed}}}, out).Run(t.Context(), entries("good"))
		_, gone := os.Stat(filepath.Join(out, "good", name))
		if listed {
			check.That(t, got[0].Err == nil && errors.Is(gone, os.ErrNotExist), "%v, %v", got[0].Err, gone)
		} else {
			check.Fails(t, got[0].Err, "holds planted-1.0-py3-none-any.whl, which is no wheel of this run", name)
		}
	}
}

func TestForeign(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"nothing":              {},
		"an unfinished write":  {files: []string{"cell/.entry.json.123.tmp"}},
		"a run's directory":    {files: []string{"cell/entry.json", "cell/thesis.txt"}},
		"an entry was removed": {files: []string{"cell/x.whl", ".made/cell"}},
		"a file":               {files: []string{"cell/thesis.txt"}, want: "holds thesis.txt, and no entry.json of a run"},
		"a directory":          {files: []string{"cell/deep/thesis.txt"}, want: "holds deep, and no entry.json of a run"},
		"a file in its place":  {files: []string{"cell"}, want: "not a directory"},
	} {
		out := t.TempDir()
		for _, file := range c.files {
			path := filepath.Join(out, file)
			must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
		}
		err := run.Foreign(out, "cell")
		if moved := t.TempDir(); name == "a run's directory" { // a link to one is of others
			os.RemoveAll(moved)
			must.Succeed(t, os.Rename(filepath.Join(out, "cell"), moved), os.Symlink(moved, filepath.Join(out, "cell")))
			check.Fails(t, run.Foreign(out, "cell"), "not a directory", "a link")
		}
		if c.want == "" && err != nil || c.want != "" && (diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The logs of an earlier run would name causes that are gone.
func TestLogsOfAnEarlierRunAreRemoved(t *testing.T) {
	other := entry("known")
	other.Script = "false"
	for id, before := range map[string]lock.Entry{"broken": entry("broken"), "known": other} {
		t.Run(id, func(t *testing.T) {
			out := t.TempDir()
			dir := filepath.Join(out, id)
			files := []string{filepath.Join(dir, "logs", "build.log"), filepath.Join(dir, artifact.RejectedDir, "old-1-py3-none-any.whl")}
			for _, file := range files {
				must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644))
			}
			must.Succeed(t, lock.WriteEntry(dir, before))
			listMade(t, out, id, "old-1-py3-none-any.whl")
			f := &fake{known: map[string]run.Result{"known": {}}}
			runner(f, out).Run(t.Context(), entries(id))
			for _, file := range files {
				_, err := os.Stat(file)
				check.That(t, errors.Is(err, os.ErrNotExist), "%s is still there: %v", file, err)
			}
		})
	}
}

func TestFailFast(t *testing.T) {
	f := &fake{}
	got, _ := start(t, t.Context(), f, 1, true, "broken", "later")
	check.That(t, got[1].Skipped && !slices.Contains(f.built, "later"), "got %+v, built %v", got[1], f.built)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	f := &fake{}
	got, _ := start(t, ctx, f, 1, false, "slow", "later")
	check.That(t, errors.Is(got[0].Err, context.Canceled) && got[1].Skipped && len(f.kept) == 0, "got %+v", got)
}

// The entry of a started cell is written before anything else, whatever its outcome. A
// cell that did not start has none.
func TestEveryCellThatIsBegunLeavesItsEntry(t *testing.T) {
	f := &fake{known: map[string]run.Result{"known": {}}}
	ids := []string{"known", "unfetchable", "broken", "panics", "refused"}
	_, out := start(t, t.Context(), f, 1, false, ids...)
	for _, id := range ids {
		data, err := os.ReadFile(filepath.Join(out, id, lock.EntryFile))
		check.That(t, err == nil && bytes.Equal(data, entry(id).Canonical()), "%s left %q, %v", id, data, err)
	}
	_, out = start(t, t.Context(), f, 1, true, "broken", "later")
	_, err := os.Stat(filepath.Join(out, "later"))
	check.That(t, errors.Is(err, os.ErrNotExist), "a cell that was not begun: %v", err)
}

func TestAnEntryThatCannotBeWritten(t *testing.T) {
	out := must.File(t, "file", "")
	f := &fake{}
	got := runner(f, out).Run(t.Context(), entries("refused"))
	check.That(t, got[0].Err != nil && strings.HasPrefix(got[0].Err.Error(), "building refused: writing the entry: ") && len(f.built) == 0,
		"got %v, built %v", got[0].Err, f.built)
}

// A result without the verdict of a slow gate counts only in a run without slow gates.
func TestGatesThatTakeMinutes(t *testing.T) {
	tested := entry("x")
	tested.Expect.Tests.Files = []recipe.TestFile{{File: "test/a.py", Seconds: 5}}
	quick := []verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass}}
	full := append(slices.Clone(quick), verdict.Verdict{Gate: "upstream-tests-full", Status: verdict.Pass})
	for name, c := range map[string]struct {
		known []verdict.Verdict
		full  bool
		built int
	}{
		"quick, not requested": {quick, false, 0},
		"full, requested":      {full, true, 0},
		"full, not requested":  {quick, true, 1},
		"quick, of a full run": {full, false, 0},
	} {
		f := &fake{known: map[string]run.Result{"x": {Verdicts: c.known}}}
		r := runner(f, t.TempDir())
		if c.full {
			r.Most = gate.Long
		}
		o := r.Run(t.Context(), []lock.Entry{tested})[0]
		asked := slices.ContainsFunc(o.Verdicts, func(v verdict.Verdict) bool { return v.Gate == "upstream-tests-full" })
		check.That(t, len(f.built) == c.built && (!c.full || asked), "%s: built %q, verdicts %+v", name, f.built, o.Verdicts)
		if c.built > 0 && (o.Err == nil || len(f.forgotten) != 1) { // the gates refuse the fake's output
			t.Errorf("%s: %v; forgotten %q", name, o.Err, f.forgotten)
		}
	}
}

// interrupting ends a run when its build begins.
type interrupting struct{ stop func() }

func (i interrupting) StepStarted(step string) io.Writer {
	if step == "build" {
		i.stop()
	}
	return io.Discard
}

func (interrupting) StepDone(string, time.Duration, bool, error) {}

// A stored result without the verdicts of this run stays in place, with its statements,
// until the build has replaced it: an interrupted run loses nothing.
func TestAnEarlierResultStaysUntilTheBuild(t *testing.T) {
	slow := entry("slow")
	slow.Expect.Tests.Files = []recipe.TestFile{{File: "test/a.py", Seconds: 5}}
	f := &fake{known: map[string]run.Result{"slow": {Artifacts: []artifact.Artifact{{Name: "x.whl"}}}}}
	out := t.TempDir()
	dir := filepath.Join(out, "slow")
	for _, name := range []string{"x.whl", "x.whl.attestations/verdicts.json", "y.whl", "y.whl.attestations/verdicts.json"} {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
	}
	listMade(t, out, "slow", "x.whl", "y.whl")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := runner(f, out)
	r.Most, r.Watch = gate.Long, func(string) run.Events { return interrupting{stop} }
	o := r.Run(ctx, []lock.Entry{slow})[0]
	found, err := filepath.Glob(filepath.Join(dir, "*.whl*"))
	want := []string{filepath.Join(dir, "x.whl"), filepath.Join(dir, "x.whl.attestations")}
	check.That(t, o.Err != nil && err == nil && slices.Equal(found, want), "%v; %q, want %q, %v", o.Err, found, want, err)
}
