package gate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var allreduce2 = Gate{
	Name:   "allreduce-2",
	Asks:   "two ranks on this host's CPU agree on an allreduce, an allgather and a broadcast of known tensors",
	Remedy: "the controller does not start or the results are wrong: on a cluster the wheel would hang or compute wrongly",
	Wants:  func(e recipe.Expect) bool { return e.Launcher != "" && len(e.Import) > 0 },
	Needs:  Container,
	check:  checkAllreduce,
}

//go:embed scripts/allreduce.py
var allreduceScript string

// launchers maps controllers to horovodrun's arguments. Open MPI needs --oversubscribe
// to start two ranks in one slot. MPICH counts no slots.
var launchers = map[string][]string{
	"mpi":   {"--mpi", "--mpi-args=--oversubscribe"},
	"mpich": {"--mpi"},
	"gloo":  {"--gloo"},
}

// launch returns the command line that starts n ranks of a script on this host.
func launch(n string, launcher []string, script, module string) []string {
	return slices.Concat([]string{"horovodrun", "-np", n, "-H", "localhost:" + n}, launcher, []string{"PYTHON", script, module})
}

// rankReport is the JSON line printed by each rank.
type rankReport struct {
	Rank      int       `json:"rank"`
	Size      int       `json:"size"`
	Allreduce []float64 `json:"allreduce"`
	Allgather []float64 `json:"allgather"`
	Broadcast []float64 `json:"broadcast"`
	Case      string    `json:"case"` // of the training: such a line is no report of collectives
}

func checkAllreduce(ctx context.Context, s Subject) verdict.Verdict {
	args, ok := launchers[s.Expect.Launcher]
	if !ok {
		return verdict.Unmeasured("unknown launcher %q", s.Expect.Launcher)
	}
	c := Command{
		Name:  "allreduce-2",
		Args:  launch("2", args, "allreduce.py", s.Expect.Import[0]),
		Env:   ranksEnv(nil),
		Files: map[string]string{"allreduce.py": allreduceScript},
	}
	trains := s.trainsToo()
	if trains {
		var err error
		if c, err = s.trainCommand(args, nil, s.trainTask(s.Expect.Launcher, false)); err != nil {
			return verdict.Unmeasured("%v", err)
		}
	}
	out, err := s.run(ctx, c)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	reports := rankReports[rankReport](out.Output)
	reports = slices.DeleteFunc(reports, func(r rankReport) bool { return r.Case != "" })
	// A fault behind the collectives is one of the training, which the gate train-step
	// reports.
	if out.Exit != 0 && !(trains && len(reports) == 2) {
		return verdict.Failed("horovodrun: exit %d: %s", out.Exit, lastLine(out.Output))
	}
	return judgeRanks(reports)
}

// trainsToo reports whether the ranks of the gate train-step report the collectives too.
// In a shared box one launch then answers both gates.
func (s Subject) trainsToo() bool {
	_, shared := s.Box.(*Shared)
	return shared && wantsTraining(s.Expect)
}

// rankTag is what mpirun and horovodrun print before each piece of a rank's output:
// [1,0]<stdout>: and [0]<stdout>:.
var rankTag = regexp.MustCompile(`\[(?:\d+,)?\d+\]<std(?:out|err)>:`)

// untangled returns the output of ranks without tags, one stream after the other. mpirun
// prints a piece of one rank behind the unfinished line of another.
func untangled(output string) string {
	streams := map[string]*strings.Builder{}
	write := func(tag, piece string) {
		if streams[tag] == nil {
			streams[tag] = &strings.Builder{}
		}
		streams[tag].WriteString(piece)
	}
	for line := range strings.Lines(output) {
		tag, from := "", 0
		for _, at := range rankTag.FindAllStringIndex(line, -1) {
			write(tag, line[from:at[0]])
			tag, from = line[at[0]:at[1]], at[1]
		}
		write(tag, line[from:])
	}
	var all strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(streams)) {
		all.WriteString(streams[tag].String() + "\n")
	}
	return all.String()
}

// rankReports parses the reports in lines such as `[1,0]<stdout>: {"rank": 0, …}`.
func rankReports[T any](output string) []T {
	var reports []T
	for line := range strings.Lines(untangled(output)) {
		start := strings.Index(line, `{"rank"`)
		if start < 0 {
			continue
		}
		var r T
		if json.Unmarshal([]byte(strings.TrimSpace(line[start:])), &r) == nil {
			reports = append(reports, r)
		}
	}
	return reports
}

// judgeRanks compares reports with the known results. Rank r holds [r+1, 10(r+1)], so
// the sum is [3, 30], the allgather is [1, 10, 2, 20], and rank 1 broadcasts [2, 20].
func judgeRanks(reports []rankReport) verdict.Verdict {
	if len(reports) != 2 {
		return verdict.Unmeasured("%d ranks reported, 2 started", len(reports))
	}
	var problems []string
	seen := map[int]bool{}
	for _, r := range reports {
		seen[r.Rank] = true
		if r.Size != 2 {
			problems = append(problems, fmt.Sprintf("rank %d sees %d ranks", r.Rank, r.Size))
		}
		for _, c := range []struct {
			name       string
			have, want []float64
		}{
			{"allreduce", r.Allreduce, []float64{3, 30}},
			{"allgather", r.Allgather, []float64{1, 10, 2, 20}},
			{"broadcast", r.Broadcast, []float64{2, 20}},
		} {
			if !slices.Equal(c.have, c.want) {
				problems = append(problems, fmt.Sprintf("rank %d: %s gave %v, expected %v", r.Rank, c.name, c.have, c.want))
			}
		}
	}
	if !seen[0] || !seen[1] {
		problems = append(problems, "the two reports are not of ranks 0 and 1")
	}
	return verdict.Judge(problems, []string{"2 ranks: allreduce [3 30], allgather [1 10 2 20], broadcast [2 20]"})
}
