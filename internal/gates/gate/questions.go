package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// questions lists the questions about the extension of an artifact. All of them load its
// frameworks first.
func questions(artifact string, e recipe.Expect) (all []launch) {
	ask := func(gate string, program ...string) { all = append(all, alone(gate, program...)) }
	if wantsPlatform(e) {
		ask("platform", "framework_platform.py", e.Import[0])
	}
	for _, module := range importsOf(e) {
		ask("import", "imports.py", module, strconv.Itoa(exitOfImport))
		all[len(all)-1].Clean = true
	}
	if wantsCheckBuild(e) {
		ask("check-build", append([]string{"checkbuild.py"}, frameworks(e)...)...)
	}
	if wantsBuiltFlags(e) {
		ask("built-flags", "flags.py", "module", e.Import[0])
		digests, _ := digestsOf(artifact, e.Extensions...) // the gate extension-present reports the error
		if files := slices.Collect(maps.Keys(digests)); len(files) == 1 && len(e.Frameworks) > 0 {
			ask("built-flags", "flags.py", "library", files[0]) // of the extension with the flags
		}
	}
	if wantsRendezvous(e) {
		ask("rendezvous", append([]string{"rendezvous.py"}, e.Import...)...)
	}
	return all
}

// frameworks returns the modules of the frameworks: tensorflow for horovod.tensorflow.
func frameworks(e recipe.Expect) (modules []string) {
	for _, module := range e.Import {
		if _, framework, ok := strings.Cut(module, "."); ok {
			modules = append(modules, framework)
		}
	}
	return modules
}

// ranks lists the launches of two ranks on the CPU, after those of [questions].
func (b boxed) ranks() (all []launch) {
	e := b.promised
	if wantsCollectivesOfRanks(e) && !b.trainsToo() {
		all = append(all, ringOf(b.box, ranksOfAllreduce, e).launch(e))
	}
	if wantsTraining(e) {
		for _, controller := range controllers(e) {
			all = append(all, b.trainTask(controller, false).launch(controller, e.Import[0]))
		}
	}
	return all
}

// ends returns the ends of the questions and the ranks of one gate. In a shared box one
// process loads the frameworks for those of all gates.
func (b boxed) ends(ctx context.Context, gate string) (ends []ranksEnd, err error) {
	all := append(questions(b.artifact, b.promised), b.ranks()...)
	name, load := "framework", frameworks(b.promised)
	if _, shared := b.box.(*Shared); !shared || len(b.promised.Frameworks) == 0 {
		name, load, all = gate, nil, slices.DeleteFunc(all, func(l launch) bool { return l.gate != gate })
	}
	said, err := b.watch(ctx, name, load, nil, all...)
	for _, end := range said {
		if end.launch.gate == gate {
			logEnd(b.log, end)
			ends = append(ends, end)
		}
	}
	return ends, err
}

// answers returns the answers to the questions of one gate.
func (b boxed) answers(ctx context.Context, gate string) (all []answer, err error) {
	ends, err := b.ends(ctx, gate)
	for _, end := range ends {
		one, failed := end.answer()
		all, err = append(all, one), cmp.Or(err, failed)
	}
	return all, err
}

// controllers lists the promised controllers, that of the launcher first.
func controllers(e recipe.Expect) []string {
	if slices.Contains(listedBuild(e).Controllers, "Gloo") && e.Launcher != "gloo" {
		return []string{e.Launcher, "gloo"}
	}
	return []string{e.Launcher}
}

// eachController joins the verdicts on the promised controllers. A failure counts more than
// a run that was not measured, and that more than a pass.
func eachController(e recipe.Expect, check func(controller string) verdict.Verdict) verdict.Verdict {
	var problems, blind, seen []string
	remedy := ""
	for _, controller := range controllers(e) {
		v := check(controller)
		says := controller + ": " + v.Evidence
		switch v.Status {
		case verdict.Pass:
			seen = append(seen, says)
		case verdict.Fail:
			problems = append(problems, says)
		default:
			blind = append(blind, says)
		}
		remedy = cmp.Or(remedy, v.Remedy)
	}
	joined := verdict.Weigh(problems, blind, seen)
	joined.Remedy = remedy
	return joined
}

// ranksEnd is the answer of ranks.py to a launch. Exit is nil if the launcher was killed.
type ranksEnd struct {
	Exit  *int       `json:"exit"`
	Log   string     `json:"log"`
	Ranks []*rankEnd `json:"ranks"`
	// Datagrams is the number of those that the network of the ranks sent, or had no route for.
	Datagrams int      `json:"datagrams"`
	Left      []string `json:"left"` // programs of processes that ranks started and did not end
	// Written names the files that were written, if the launch is to write none.
	Written []string          `json:"written"`
	launch  launch            // what ended so
	digests map[string]string // of the wheel's extensions, by path
	unread  error             // why there are no digests
}

// A rankEnd is the end of one rank. Its lines are the word of a process that ran the
// artifact; all else is from the kernel.
type rankEnd struct {
	Lines  []string     `json:"lines"`
	End    bool         `json:"end"`
	Mapped []mappedFile `json:"mapped"`
	// Patched names the mapped files whose code the process changed in its memory, and
	// Sockets its sockets of the network.
	Patched []string `json:"patched"`
	Sockets []string `json:"sockets"`
	Exit    *int     `json:"exit"`
	Why     string   `json:"why"`
}

type mappedFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// allowHooks forgets that a wheel with MPI changed the C library in memory: Open MPI and UCX,
// which the recipe promises, write over its functions that map memory, in their constructors.
func (e ranksEnd) allowHooks(promised recipe.Expect) {
	if built(promised)["mpi"] != "true" {
		return
	}
	for _, r := range e.Ranks {
		if r != nil {
			r.Patched = slices.DeleteFunc(r.Patched, isLibc)
		}
	}
}

// isLibc reports whether the file is glibc's C library, which has been named libc.so.6 since
// 2.34 and libc-VERSION.so before.
func isLibc(file string) bool {
	name := path.Base(file)
	return name == "libc.so.6" || strings.HasPrefix(name, "libc-2.") && strings.HasSuffix(name, ".so")
}

// ended reports whether a process came to its end and exited with 0.
func (e *rankEnd) ended() bool { return e.End && e.Exit != nil && *e.Exit == 0 }

// strange returns the problems of a process that does not map each extension of the
// wheel, byte for byte, or that changes code in its memory.
func strange(r rankEnd, digests map[string]string) (problems []string) {
	if len(r.Patched) > 0 {
		problems = append(problems, "its process writes over the code of "+some(r.Patched)+" in memory")
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		at := slices.IndexFunc(r.Mapped, func(f mappedFile) bool { return strings.HasSuffix(f.Path, "/"+name) })
		switch {
		case at < 0:
			problems = append(problems, fmt.Sprintf("its process maps no %s of the wheel", name))
		case r.Mapped[at].SHA256 != digests[name]:
			problems = append(problems, fmt.Sprintf("its process maps a %s that is not the wheel's", name))
		}
	}
	return problems
}

// strangers returns the problems of ranks that came to their end in a strange process.
func (e ranksEnd) strangers() (problems []string) {
	for n, r := range e.Ranks {
		if !r.End {
			continue
		}
		for _, problem := range strange(*r, e.digests) {
			problems = append(problems, fmt.Sprintf("rank %d: %s", n, problem))
		}
	}
	return problems
}

// faults judges how the ranks began and ended, and whether they mapped the extensions of
// the wheel. A problem is a failure of the artifact; blind says why there is nothing to
// judge.
func (e ranksEnd) faults() (problems []string, blind error) {
	if e.unread != nil {
		return nil, e.unread
	}
	missing := slices.Index(e.Ranks, nil)
	if missing >= 0 {
		return nil, fmt.Errorf("rank %d did not start: %s: %s: %s", missing, e.launch.by(), exited(e.Exit), lastLine(e.Log))
	}
	first := e.firstToEnd()
	failing := e.launch.Failing
	for n, r := range e.Ranks {
		how := cmp.Or(r.Why, exited(r.Exit)) + ": " + lastLine(e.Log)
		switch {
		case !r.End && (first < 0 || n == first):
			problems = append(problems, fmt.Sprintf("rank %d ended before its end: %s", n, how))
		case slices.Contains(failing, n) && r.ended():
			problems = append(problems, fmt.Sprintf("rank %d failed, and its process ended with 0: %s", n, hidden))
		case slices.Contains(failing, n) && r.Exit != nil && *r.Exit == 1: // as Python does after an error
		case r.End && !r.ended():
			problems = append(problems, fmt.Sprintf("rank %d came to its end and then ended with %s", n, how))
		}
	}
	problems = append(problems, e.strangers()...)
	switch {
	case len(problems) > 0:
	case len(failing)*len(e.launch.Launcher) > 0 && e.Exit != nil && *e.Exit == 0:
		problems = append(problems, fmt.Sprintf("rank %d failed, and %s ended with 0: %s", failing[0], e.launch.by(), hidden))
	case e.Exit == nil || *e.Exit != 0 && len(failing) == 0:
		problems = append(problems, fmt.Sprintf("%s: %s after all ranks had ended: %s", e.launch.by(), exited(e.Exit), lastLine(e.Log)))
	}
	if len(e.Written) > 0 {
		problems = append(problems, "the ranks wrote "+some(e.Written))
	}
	if len(e.Left) > 0 {
		problems = append(problems, fmt.Sprintf("the ranks started %s, which run on after their end", some(e.Left)))
	}
	return problems, nil
}

// killed is the exit status of a process that SIGKILL ended.
const killed = 128 + 9

// firstToEnd returns the number of the rank that ended before its end and made the others
// end, or -1. A killed rank did not end because of another.
func (e ranksEnd) firstToEnd() int {
	early := func(r *rankEnd) bool { return !r.End && r.Why == "" }
	first := slices.IndexFunc(e.Ranks, func(r *rankEnd) bool { return early(r) && r.Exit != nil && *r.Exit == killed })
	if first < 0 {
		first = slices.IndexFunc(e.Ranks, early)
	}
	return first
}

// hidden says what follows from an exit status of 0.
const hidden = "a job that fails looks like one that did not"

// exited describes an exit status.
func exited(status *int) string {
	switch {
	case status == nil:
		return "killed at the time limit"
	case *status == killed:
		return "a signal killed it, as the kernel does when memory runs out"
	}
	return fmt.Sprintf("exit %d", *status)
}

// reportsOf parses the lines of a rank as reports of one kind. Reports with a case count
// as that kind.
func reportsOf[T any](r *rankEnd) ([]T, error) {
	var all []T
	for _, line := range r.Lines {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return nil, fmt.Errorf("a report cannot be read: %.200s", line)
		}
		all = append(all, one)
	}
	return all, nil
}

// An answer is that of one process alone. Its lines are the word of a process that ran
// the artifact, and so is the log of all.
type answer struct {
	rankEnd
	all ranksEnd
}

// questionSeconds is the time limit of one question.
const questionSeconds = 600

// alone returns a launch of one process.
func alone(gate string, program ...string) launch {
	return launch{gate: gate, Parts: []any{struct{}{}}, Program: program, Limit: questionSeconds}
}

// answer returns the answer of a launch of one process.
func (e ranksEnd) answer() (answer, error) {
	if e.Ranks[0] == nil {
		return answer{}, fmt.Errorf("no process started: %s", lastLine(e.Log))
	}
	return answer{*e.Ranks[0], e}, nil
}

// how says how a process ended, and what it printed last.
func (a answer) how() string { return exited(a.Exit) + ": " + lastLine(a.all.Log) }

// onlyReport returns the report of a process that made one and ended well.
func onlyReport[T any](a answer) (one T, err error) {
	reports, err := reportsOf[T](&a.rankEnd)
	if err != nil || len(reports) != 1 || !a.ended() {
		return one, fmt.Errorf("%s with %d reports: %s", exited(a.Exit), len(reports), lastLine(a.all.Log))
	}
	return reports[0], nil
}
