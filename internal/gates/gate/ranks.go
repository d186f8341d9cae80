package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	rnd "math/rand/v2"
	"path"
	"slices"
	"strings"

	"builder/internal/files/wheel"
)

// The programs that start ranks and ask questions. witness.py, rank.py and asked.py
// belong to both.
//
//go:embed scripts/*.py
var scripts embed.FS

// files returns programs by name, with those that every one of them imports.
func files(names ...string) map[string]string {
	all := map[string]string{}
	for _, name := range append(names, "witness.py", "asked.py") {
		text, err := scripts.ReadFile(path.Join("scripts", name))
		if err != nil {
			panic("gate: " + err.Error()) // a name of this package
		}
		all[name] = string(text)
	}
	return all
}

// A rankJob is the input of ranks.py, which documents it.
type rankJob struct {
	Nonce    string   `json:"nonce"`
	Parts    []any    `json:"parts"`
	Program  []string `json:"program"`
	Launcher []string `json:"launcher"`
	Meet     bool     `json:"meet"`
	Watch    string   `json:"watch"`
	Limit    int      `json:"limit"`
	Grace    int      `json:"grace"`
}

// ranksEnd is the answer of ranks.py. Exit is nil if the launcher was killed.
type ranksEnd struct {
	Nonce string     `json:"nonce"`
	Exit  *int       `json:"exit"`
	Log   string     `json:"log"`
	Ranks []*rankEnd `json:"ranks"`
	by    string     // the launcher
}

// A rankEnd is the end of one rank. Its lines are the word of a process that ran the
// artifact; all else is from the kernel.
type rankEnd struct {
	Lines  []string     `json:"lines"`
	End    bool         `json:"end"`
	Mapped []mappedFile `json:"mapped"`
	Exit   *int         `json:"exit"`
	Why    string       `json:"why"`
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

// horovodruns maps controllers to the arguments of horovodrun.
var horovodruns = map[string][]string{
	"mpi":   {"--mpi", "--mpi-args=--oversubscribe"},
	"mpich": {"--mpi"},
	"gloo":  {"--gloo"},
}

// ranksEnv is the environment of ranks. A rank that waits for the other yields its
// processor: without that, two ranks take half as much time again.
var ranksEnv = map[string]string{"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}

// A launch is one start of ranks by a gate.
type launch struct {
	gate       string
	controller string // "" starts one rank alone
	horovodrun bool   // by the launcher of the artifact
	parts      []any
	program    []string // argument vector
	scripts    []string // files of the program
	env        map[string]string
	limit      int // seconds
}

// start runs the ranks of a launch.
func (s Subject) start(ctx context.Context, l launch) (ranksEnd, error) {
	job := rankJob{Nonce: s.nonce(l.gate), Parts: l.parts, Program: l.program, Watch: watched, Limit: l.limit, Grace: grace, Launcher: []string{}}
	by := "the gate"
	if launcher, ok := launchers[l.controller]; ok {
		n := fmt.Sprint(len(l.parts))
		job.Launcher = append(job.Launcher, launcher(n)...)
		job.Meet = len(job.Launcher) == 0 && !l.horovodrun
		if l.horovodrun {
			job.Launcher = slices.Concat([]string{"horovodrun", "-np", n, "-H", "localhost:" + n}, horovodruns[l.controller])
		}
		if len(job.Launcher) > 0 {
			by = job.Launcher[0]
		}
	} else if l.controller != "" {
		return ranksEnd{}, fmt.Errorf("unknown launcher %q", l.controller)
	}
	stdin, err := json.Marshal(job)
	if err != nil {
		return ranksEnd{}, err
	}
	env := maps.Clone(ranksEnv)
	maps.Copy(env, l.env)
	c := Command{
		Name: l.gate, Args: []string{"PYTHON", "-I", "-S", "ranks.py"}, Env: env,
		Files: files(append(l.scripts, "ranks.py", "rank.py")...), Stdin: string(stdin) + "\n",
	}
	end := ranksEnd{by: by}
	if err := s.answered(ctx, c, job.Nonce, &end); err != nil {
		return end, err
	}
	s.log(Command{Args: slices.Concat(job.Launcher, job.Program)}, Result{Exit: status(end.Exit), Output: end.Log})
	if len(end.Ranks) != len(l.parts) {
		return end, fmt.Errorf("%d ranks were watched, not %d", len(end.Ranks), len(l.parts))
	}
	return end, nil
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
		return fmt.Errorf("%wexit %d and %d answers: %s", errEarly, out.Exit, found, lastLine(out.Output))
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

// unmapped returns the problem of a process that does not map each extension of the
// wheel, byte for byte.
func unmapped(mapped []mappedFile, digests map[string]string) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		at := slices.IndexFunc(mapped, func(f mappedFile) bool { return strings.HasSuffix(f.Path, "/"+name) })
		switch {
		case at < 0:
			problems = append(problems, fmt.Sprintf("its process maps no %s of the wheel", name))
		case mapped[at].SHA256 != digests[name]:
			problems = append(problems, fmt.Sprintf("its process maps a %s that is not the wheel's", name))
		}
	}
	return problems
}

// ends judges how the ranks began and ended. A problem is a failure of the artifact;
// blind says why there is nothing to judge. read says whether all reports can be judged.
func (e ranksEnd) ends(digests map[string]string) (problems []string, blind error) {
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
			for _, problem := range unmapped(r.Mapped, digests) {
				problems = append(problems, fmt.Sprintf("rank %d: %s", n, problem))
			}
		}
	}
	if len(problems) == 0 && (e.Exit == nil || *e.Exit != 0) {
		problems = append(problems, fmt.Sprintf("%s: %s after all ranks had ended: %s", e.by, exited(e.Exit), lastLine(e.Log)))
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

// A questionJob is the first line of the input of questions.py, which documents it.
type questionJob struct {
	Load      []string   `json:"load"`
	Questions [][]string `json:"questions"`
	Watch     string     `json:"watch"`
	Limit     int        `json:"limit"`
}

// An answer is that of questions.py to one question. Output and lines are the word of a
// process that ran the artifact.
type answer struct {
	rankEnd
	Output string `json:"output"`
}

// questionSeconds is the time limit of one question.
const questionSeconds = 600

// asks runs questions in forks of one process that has loaded the frameworks.
func (s Subject) asks(ctx context.Context, name string, load []string, questions [][]string) ([]answer, error) {
	if load == nil {
		load = []string{}
	}
	job, err := json.Marshal(questionJob{Load: load, Questions: questions, Watch: watched, Limit: questionSeconds})
	if err != nil {
		return nil, err
	}
	nonce := s.nonce(name)
	names := []string{"questions.py"}
	for _, q := range questions {
		names = append(names, q[0])
	}
	c := Command{Name: name, Args: []string{"PYTHON", "questions.py"}, Files: files(names...), Stdin: string(job) + "\n" + nonce + "\n"}
	var said struct{ Answers []answer }
	if err := s.answered(ctx, c, nonce, &said); err != nil {
		return nil, err
	}
	if len(said.Answers) != len(questions) {
		return nil, fmt.Errorf("%d answers to %d questions", len(said.Answers), len(questions))
	}
	return said.Answers, nil
}

// errEarly marks the end of a program before its answer, for example if the import of a
// framework crashes it.
var errEarly = errors.New("")
