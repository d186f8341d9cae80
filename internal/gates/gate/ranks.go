package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	rnd "math/rand/v2"
	"path"
	"slices"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/plan/recipe"
)

// The programs that start and watch the processes of an artifact.
//
//go:embed scripts/*.py
var scripts embed.FS

// files returns programs by name, with those that start them.
func files(names ...string) map[string]string {
	all := map[string]string{}
	for _, name := range append(names, "ranks.py", "rank.py", "forks.py", "witness.py", "asked.py") {
		text, err := scripts.ReadFile(path.Join("scripts", name))
		if err != nil {
			panic("gate: " + err.Error()) // a name of this package
		}
		all[name] = string(text)
	}
	all["keras.json"] = "{}" // Keras would write this file to KERAS_HOME
	return all
}

// A rankJob is the input of ranks.py, which documents it.
type rankJob struct {
	Nonce    string       `json:"nonce"`
	Load     []string     `json:"load"`
	Launches []rankLaunch `json:"launches"`
	Watch    string       `json:"watch"`
	Members  []string     `json:"members"`
	Search   []string     `json:"search"`
	Grace    int          `json:"grace"`
}

type rankLaunch struct {
	Parts    []any    `json:"parts"`
	Program  []string `json:"program"`
	Launcher []string `json:"launcher"`
	Meet     bool     `json:"meet"`
	Clean    bool     `json:"clean"`
	Limit    int      `json:"limit"`
}

// ranksEnd is the answer of ranks.py to a launch. Exit is nil if the launcher was killed.
type ranksEnd struct {
	Exit  *int       `json:"exit"`
	Log   string     `json:"log"`
	Ranks []*rankEnd `json:"ranks"`
	Left  []string   `json:"left"` // programs of processes that ranks started and did not end
	// Written names the files that were written, if the launch is to write none.
	Written []string          `json:"written"`
	by      string            // the launcher
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

// launchers maps controllers to the programs of the run-time image that start n ranks.
// Open MPI starts two ranks on one processor with --oversubscribe; MPICH counts none.
// Gloo has no launcher: ranks.py starts its ranks and is the server at which they meet.
var launchers = map[string]func(n string) []string{
	"mpi": func(n string) []string {
		return []string{"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm_rsh_agent", "/bin/true", "-np", n}
	},
	"mpich": func(n string) []string { return []string{"mpirun", "-launcher", "fork", "-np", n} },
	"gloo":  func(string) []string { return nil },
}

// horovodruns maps controllers to the arguments of horovodrun. Its cache is a file in the
// home.
var horovodruns = map[string][]string{
	"mpi":   {"--disable-cache", "--mpi", "--mpi-args=--oversubscribe"},
	"mpich": {"--disable-cache", "--mpi"},
	"gloo":  {"--disable-cache", "--gloo"},
}

// ranksEnv is the environment of ranks. A rank that waits for the other yields its
// processor: without that, two ranks take half as much time again. Python writes no file
// beside the modules that it imports, so that no honest rank writes any but temporary ones.
var ranksEnv = map[string]string{
	"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
	"PYTHONDONTWRITEBYTECODE": "1",
}

// A launch is one start of ranks by a gate.
type launch struct {
	gate       string
	controller string // "" for a process alone
	horovodrun bool   // by the launcher of the artifact
	parts      []any
	program    []string // a file of this package and its arguments
	scripts    []string // more files of the program
	clean      bool     // it is to write no file but temporary ones
	limit      int      // seconds
}

// job returns the launch as ranks.py reads it, and what starts its ranks.
func (l launch) job() (job rankLaunch, by string, err error) {
	job, by = rankLaunch{Parts: l.parts, Program: l.program, Limit: l.limit, Launcher: []string{}, Clean: l.clean}, "the gate"
	launcher, ok := launchers[l.controller]
	if !ok && l.controller != "" {
		return job, by, fmt.Errorf("unknown launcher %q", l.controller)
	}
	n := fmt.Sprint(len(l.parts))
	switch {
	case l.horovodrun:
		job.Launcher = slices.Concat([]string{"horovodrun", "-np", n, "-H", "localhost:" + n}, horovodruns[l.controller])
	case ok:
		job.Launcher = append(job.Launcher, launcher(n)...)
		job.Meet = len(job.Launcher) == 0
	}
	if len(job.Launcher) > 0 {
		by = job.Launcher[0]
	}
	return job, by, nil
}

// A watched run is one job of ranks.py.
type watchedRun struct {
	name     string
	load     []string // modules to import before the ranks begin
	env      map[string]string
	launches []launch
}

// start runs the ranks of a launch.
func (s Subject) start(ctx context.Context, load []string, env map[string]string, l launch) (ranksEnd, error) {
	ends, err := s.watch(ctx, watchedRun{l.gate, load, env, []launch{l}})
	if err != nil {
		return ranksEnd{}, err
	}
	s.logEnd(l, ends[0])
	return ends[0], nil
}

// logEnd writes the output of a launch to the log.
func (s Subject) logEnd(l launch, end ranksEnd) {
	job, _, _ := l.job() // it has run
	exit := end.Exit
	if len(job.Launcher) == 0 && len(end.Ranks) == 1 && end.Ranks[0] != nil {
		exit = end.Ranks[0].Exit
	}
	s.log(Command{Args: slices.Concat(job.Launcher, l.program)}, Result{Exit: status(exit), Output: end.Log})
}

// watch runs launches one after the other in one command of the box.
func (s Subject) watch(ctx context.Context, r watchedRun) ([]ranksEnd, error) {
	digests, unread := s.digests(s.Expect.Extensions...) // who compares them reports the error
	job := rankJob{
		Nonce: s.nonce(r.name), Load: append([]string{}, r.load...), Watch: watched, Grace: grace, Search: []string{"/"},
		Members: slices.AppendSeq([]string{}, maps.Keys(digests)),
	}
	slices.Sort(job.Members)
	var by, names []string
	for _, l := range r.launches {
		one, starter, err := l.job()
		if err != nil {
			return nil, err
		}
		job.Launches, by = append(job.Launches, one), append(by, starter)
		names = append(append(names, l.program[0]), l.scripts...)
	}
	stdin, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	env := maps.Clone(ranksEnv)
	maps.Copy(env, r.env)
	c := Command{Name: r.name, Args: []string{"PYTHON", "-I", "-S", "-B", "ranks.py"}, Env: env, Files: files(names...), Stdin: string(stdin) + "\n"}
	var said struct{ Ends []ranksEnd }
	if err := s.answered(ctx, c, job.Nonce, &said); err != nil {
		return nil, err
	}
	if len(said.Ends) != len(r.launches) {
		return nil, fmt.Errorf("%d launches were watched, not %d", len(said.Ends), len(r.launches))
	}
	for i, l := range r.launches {
		said.Ends[i].by, said.Ends[i].digests, said.Ends[i].unread = by[i], digests, unread
		said.Ends[i].allowHooks(s.Expect)
		if n := len(said.Ends[i].Ranks); n != len(l.parts) {
			return nil, fmt.Errorf("%d ranks were watched, not %d", n, len(l.parts))
		}
	}
	return said.Ends, nil
}

// allowHooks forgets that a wheel with MPI changed the C library in memory: Open MPI and UCX,
// which the recipe promises, write over its functions that map memory, in their constructors.
func (e ranksEnd) allowHooks(promised recipe.Expect) {
	if built(promised)["mpi"] != "true" {
		return
	}
	for _, r := range e.Ranks {
		if r != nil {
			r.Patched = slices.DeleteFunc(r.Patched, func(file string) bool { return path.Base(file) == "libc.so.6" })
		}
	}
}

// grace is the time in which ranks exit after their work, in seconds. A framework and its
// MPI took 10 s and more on two processors that had other work too (2026-11-27). A variable
// for tests.
var grace = 60

// watched matches the paths of files that ranks map and gates compare with the artifact.
const watched = `/(site|dist)-packages/(horovod|nvidia|rccl)/|/lib[nr]ccl\.so`

// answered runs a program of this package and reads its answer. What the program shows of
// the artifact's output is for the caller to log.
func (s Subject) answered(ctx context.Context, c Command, nonce string, into any) error {
	if s.Box == nil {
		return errNoBox
	}
	out, err := s.Box.Run(ctx, c)
	if err == nil {
		err = readAnswer(out, nonce, into)
	}
	if err != nil {
		s.log(c, out)
	}
	return err
}

// status returns an exit status for a log; -1 stands for a process that was killed.
func status(exit *int) int {
	if exit == nil {
		return -1
	}
	return *exit
}

// readAnswer reads the line with the nonce. Only a program of this package knows it, so
// no other line counts, and there is exactly one.
func readAnswer(out Result, nonce string, into any) error {
	found := 0
	for line := range strings.Lines(out.Output) {
		var marked struct{ Nonce string }
		if json.Unmarshal([]byte(line), &marked) != nil || marked.Nonce != nonce {
			continue
		}
		if err := json.Unmarshal([]byte(line), into); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		found++
	}
	if found != 1 {
		return fmt.Errorf("exit %d and %d answers: %s", out.Exit, found, lastLine(out.Output))
	}
	return nil
}

// seed returns the randomness of the tasks. In a shared box all gates have the same, so
// that equal launches are one.
func (s Subject) seed() [32]byte {
	if shared, ok := s.Box.(*Shared); ok {
		return shared.seed
	}
	return newSeed()
}

func newSeed() (seed [32]byte) {
	_, _ = rand.Read(seed[:]) // it never returns an error
	return seed
}

// random returns the source of random data of a task. Each task has its own, so that the
// data of one tell nothing about those of another.
func (s Subject) random(task string) *rnd.Rand {
	seed := s.seed()
	return rnd.New(rnd.NewChaCha8(sha256.Sum256(append(seed[:], task...))))
}

// nonce returns what marks the answer of a gate's program.
func (s Subject) nonce(gate string) string {
	seed := s.seed()
	for i := range gate {
		seed[i%len(seed)] ^= gate[i]
	}
	source := rnd.NewChaCha8(seed)
	var text [16]byte
	_, _ = source.Read(text[:]) // it never returns an error
	return hex.EncodeToString(text[:])
}

// digests returns the digests of members of the wheel that match a pattern, by path.
func (s Subject) digests(patterns ...string) (map[string]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	names, err := promised(w, patterns)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, name := range names {
		if digests[name], err = w.SHA256(name); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

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

// faults judges how the ranks began and ended, and whether they mapped the extensions of
// the wheel. A problem is a failure of the artifact; blind says why there is nothing to
// judge.
func (e ranksEnd) faults() (problems []string, blind error) {
	if e.unread != nil {
		return nil, e.unread
	}
	missing := slices.Index(e.Ranks, nil)
	if missing >= 0 {
		return nil, fmt.Errorf("rank %d did not start: %s: %s: %s", missing, e.by, exited(e.Exit), lastLine(e.Log))
	}
	first := slices.IndexFunc(e.Ranks, func(r *rankEnd) bool { return !r.End && r.Why == "" })
	for n, r := range e.Ranks {
		switch {
		case !r.End && (first < 0 || n == first):
			problems = append(problems, fmt.Sprintf("rank %d ended before its end: %s: %s", n, cmp.Or(r.Why, exited(r.Exit)), lastLine(e.Log)))
		case !r.End:
		case r.Exit == nil || *r.Exit != 0:
			problems = append(problems, fmt.Sprintf("rank %d came to its end and then ended with %s: %s", n, cmp.Or(r.Why, exited(r.Exit)), lastLine(e.Log)))
		default:
			for _, problem := range strange(*r, e.digests) {
				problems = append(problems, fmt.Sprintf("rank %d: %s", n, problem))
			}
		}
	}
	if len(problems) == 0 && (e.Exit == nil || *e.Exit != 0) {
		problems = append(problems, fmt.Sprintf("%s: %s after all ranks had ended: %s", e.by, exited(e.Exit), lastLine(e.Log)))
	}
	if len(e.Written) > 0 {
		problems = append(problems, "the ranks wrote "+some(e.Written))
	}
	if len(e.Left) > 0 {
		problems = append(problems, fmt.Sprintf("the ranks started %s, which run on after their end", some(e.Left)))
	}
	return problems, nil
}

// exited describes an exit status.
func exited(status *int) string {
	if status == nil {
		return "killed at the time limit"
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

// An answer is that of one process alone. Output and lines are the word of a process that
// ran the artifact.
type answer struct {
	rankEnd
	Output  string
	Left    []string
	Written []string
}

// questionSeconds is the time limit of one question.
const questionSeconds = 600

// alone returns a launch of one process.
func alone(gate string, program ...string) launch {
	return launch{gate: gate, parts: []any{struct{}{}}, program: program, limit: questionSeconds}
}

// ask starts one process alone.
func (s Subject) ask(ctx context.Context, l launch) (answer, error) {
	end, err := s.start(ctx, nil, nil, l)
	if err != nil {
		return answer{}, err
	}
	return end.answer()
}

// answer returns the answer of a launch of one process.
func (e ranksEnd) answer() (answer, error) {
	if e.Ranks[0] == nil {
		return answer{}, fmt.Errorf("no process started: %s", lastLine(e.Log))
	}
	return answer{*e.Ranks[0], e.Log, e.Left, e.Written}, nil
}
