package gate

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The programs that gates run in a box.
//
//go:embed scripts
var scripts embed.FS

// script returns a program by name.
func script(name string) string {
	text, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic("gate: " + err.Error()) // a name of this package
	}
	return string(text)
}

// files returns programs by name, with those that start them.
func files(names ...string) map[string]string {
	all := map[string]string{"keras.json": "{}"} // Keras would write this file to KERAS_HOME
	for _, name := range append(names, "ranks.py", "rank.py", "forks.py", "witness.py", "asked.py") {
		all[name] = script(name)
	}
	return all
}

// A rankJob is the input of ranks.py, which documents it.
type rankJob struct {
	Nonce    string   `json:"nonce"`
	Load     []string `json:"load"`
	Launches []launch `json:"launches"`
	Watch    string   `json:"watch"`
	Members  []string `json:"members"`
	Search   []string `json:"search"`
	Grace    int      `json:"grace"`
}

// A launch is one start of ranks by a gate. ranks.py gets the exported fields.
type launch struct {
	Parts    []any    `json:"parts"`
	Program  []string `json:"program"` // a file of this package and its arguments
	Launcher []string `json:"launcher"`
	Meet     bool     `json:"meet"`
	Clean    bool     `json:"clean"`   // it is to write no file but temporary ones
	Failing  []int    `json:"failing"` // ranks that are to fail at their end
	Limit    int      `json:"limit"`   // seconds

	gate       string
	controller string   // "" for a process alone
	horovodrun bool     // by the launcher of the artifact
	scripts    []string // more files of the program
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

// prepare adds what starts the ranks.
func (l *launch) prepare() error {
	starter, ok := launchers[l.controller]
	if !ok && l.controller != "" {
		return fmt.Errorf("unknown launcher %q", l.controller)
	}
	l.Launcher = []string{}
	n := fmt.Sprint(len(l.Parts))
	switch {
	case l.horovodrun:
		l.Launcher = slices.Concat([]string{"horovodrun", "-np", n, "-H", "localhost:" + n}, horovodruns[l.controller])
	case ok:
		l.Launcher = append(l.Launcher, starter(n)...)
		l.Meet = len(l.Launcher) == 0
	}
	return nil
}

// by names what starts the ranks.
func (l *launch) by() string {
	if len(l.Launcher) == 0 {
		return "the gate"
	}
	return l.Launcher[0]
}

// start runs the ranks of a launch.
func (b boxed) start(ctx context.Context, load []string, env map[string]string, l launch) (ranksEnd, error) {
	ends, err := b.watch(ctx, l.gate, load, env, l)
	if err != nil {
		return ranksEnd{}, err
	}
	logEnd(b.log, ends[0])
	return ends[0], nil
}

// logEnd writes the output of a launch to the log.
func logEnd(log io.Writer, end ranksEnd) {
	exit := end.Exit
	if len(end.launch.Launcher) == 0 && len(end.Ranks) == 1 && end.Ranks[0] != nil {
		exit = end.Ranks[0].Exit
	}
	result := Result{Exit: -1, Output: end.Log} // of a process that was killed
	if exit != nil {
		result.Exit = *exit
	}
	logResult(log, Command{Args: slices.Concat(end.launch.Launcher, end.launch.Program)}, result)
}

// watch runs launches one after the other in one command of the box, after an import of
// the modules to load.
func (b boxed) watch(ctx context.Context, name string, load []string, env map[string]string, launches ...launch) ([]ranksEnd, error) {
	digests, unread := digestsOf(b.artifact, b.promised.Extensions...) // who compares them reports the error
	nonce := random(b.box, "nonce of "+name)
	job := rankJob{
		Nonce: fmt.Sprintf("%016x%016x", nonce.Uint64(), nonce.Uint64()), Load: append([]string{}, load...), Watch: watched, Grace: grace, Search: []string{"/"},
		Members: slices.AppendSeq([]string{}, maps.Keys(digests)), Launches: slices.Clone(launches),
	}
	slices.Sort(job.Members)
	var names []string
	for i := range job.Launches {
		l := &job.Launches[i]
		if err := l.prepare(); err != nil {
			return nil, err
		}
		l.Failing = []int{}
		if l.Clean && len(l.Parts) > 1 {
			l.Failing = append(l.Failing, random(b.box, "failing").IntN(len(l.Parts)))
		}
		names = append(append(names, l.Program[0]), l.scripts...)
	}
	stdin, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	variables := maps.Clone(ranksEnv)
	maps.Copy(variables, env)
	c := Command{Name: name, Args: []string{"PYTHON", "-I", "-S", "-B", "ranks.py"}, Env: variables, Files: files(names...), Stdin: string(stdin) + "\n"}
	var said struct{ Ends []ranksEnd }
	if err := b.answered(ctx, c, job.Nonce, &said); err != nil {
		return nil, err
	}
	if len(said.Ends) != len(launches) {
		return nil, fmt.Errorf("%d launches were watched, not %d", len(said.Ends), len(launches))
	}
	for i, l := range job.Launches {
		end := &said.Ends[i]
		end.launch, end.digests, end.unread = l, digests, unread
		end.allowHooks(b.promised)
		if n := len(end.Ranks); n != len(l.Parts) {
			return nil, fmt.Errorf("%d ranks were watched, not %d", n, len(l.Parts))
		}
	}
	return said.Ends, nil
}

// grace is the time in which ranks exit after their work, in seconds. A framework and its
// MPI took 10 s and more on two processors that had other work too (2026-11-27). A variable
// for tests.
var grace = 60

// watched matches the paths of files that ranks map and gates compare with the artifact.
const watched = `/(site|dist)-packages/(horovod|nvidia|rccl)/|/lib[nr]ccl\.so`

// answered runs a program of this package and reads its answer. What the program shows of
// the artifact's output is for the caller to log.
func (b boxed) answered(ctx context.Context, c Command, nonce string, into any) error {
	if b.box == nil {
		return errNoBox
	}
	out, err := b.box.Run(ctx, c)
	if err == nil {
		err = readAnswer(out, nonce, into)
	}
	if err != nil {
		logResult(b.log, c, out)
	}
	return err
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
