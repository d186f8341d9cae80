package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var allreduce2 = Gate{
	Name:   "allreduce-2",
	Asks:   "two ranks on this host's CPU, started without the wheel, get an allreduce, an allgather and a broadcast of random tensors right, with the wheel's extension mapped",
	Remedy: "the controller does not start or the results are wrong: on a cluster the wheel would hang or compute wrongly",
	Wants:  wantsCollectivesOfRanks,
	Needs:  Container,
	check:  checkAllreduce,
}

var launcherGate = Gate{
	Name:   "launcher",
	Asks:   "horovodrun of the wheel starts three ranks that get collectives of random tensors right",
	Remedy: "horovodrun does not start ranks that work together: compare with the gate allreduce-2, whose ranks start without it",
	Wants:  wantsCollectivesOfRanks,
	Needs:  Container,
	check:  checkLauncher,
}

func wantsCollectivesOfRanks(e recipe.Expect) bool { return e.Launcher != "" && len(e.Import) > 0 }

// mismatches are differences between ranks that Horovod must refuse.
var mismatches = []string{"lengths", "types", "operations", "factors", "roots", "shapes", "lengths of a broadcast", "types of an allgather"}

// newOperations are those that Horovod has only since 0.26, and reducescatter since 0.27.
// Not every framework has a barrier, and not every alltoall says what was received.
// The gate python-source refuses a wheel that only hides them.
var newOperations = []string{"Min", "Max", "Product", "reducescatter", "waits", "received"}

// ringReport is the report of a rank.
type ringReport struct {
	Case      string    `json:"case"`
	Rank      int       `json:"rank"`
	Size      int       `json:"size"`
	Place     []int     `json:"place"` // local rank and size, cross rank and size
	Allreduce []float64 `json:"allreduce"`
	Allgather []float64 `json:"allgather"`
	Broadcast []float64 `json:"broadcast"`
	Extremes  []string  `json:"extremes"`
	Averages  []string  `json:"averages"` // of the extremes
	Large     []string  `json:"large"`    // digests of the same collectives of large tensors, and of the sum of a vast one
	// More are the results that [ring.more] knows. Refused names the differences between
	// ranks that were an error.
	More    map[string][]float64 `json:"more"`
	Refused []string             `json:"refused"`
	// Changed names what Horovod changed in the process of the rank, and the inputs that it
	// wrote over.
	Changed []string `json:"changed"`
	// Pace is the number of cycles that an allreduce takes. Stalled says that a log names
	// the rank for which the others wait.
	Pace    float64 `json:"pace"`
	Stalled bool    `json:"stalled"`
}

const ringCase = "collectives"

// callsCase is the result of many calls, togetherCase that of many tensors at once, and
// growthCase the MiB by which calls make a process larger.
const (
	callsCase    = "calls of float32"
	togetherCase = "together of float32"
	growthCase   = "growth"
)

// Numbers of [ringPart]: Together and Repeats. Variables for tests.
var groupOfRanks, repeats = 200, [][2]int{{300009, 20}, {1, 100}}

// mostGrowth is the growth in MiB that the memory of frameworks explains. The
// tensors of the first of [repeats] have 23.
const mostGrowth = 12

func checkAllreduce(ctx context.Context, s Subject) verdict.Verdict {
	in, gate := s.in(s.Box), "allreduce-2"
	if in.trainsToo() {
		gate = "train-step"
	}
	ends, err := in.ends(ctx, gate)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return ringAsked(ends[0]).judge(ends[0], in.trainsToo())
}

func checkLauncher(ctx context.Context, s Subject) verdict.Verdict {
	task := ringOf(s.Box, ranksOfLauncher, s.Expect)
	l := task.launch(s.Expect)
	l.gate, l.horovodrun = "launcher", true
	end, err := s.in(s.Box).start(ctx, frameworks(s.Expect), nil, l)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return task.judge(end, false)
}

// launch returns the launch of ranks that do the collectives alone.
func (r ring) launch(e recipe.Expect) launch {
	l := launch{gate: "allreduce-2", controller: e.Launcher, Program: []string{"collectives.py", e.Import[0]}, scripts: []string{"process.py"}, Limit: rankSeconds, Clean: true}
	for _, part := range r {
		l.Parts = append(l.Parts, part)
	}
	return l
}

// ringAsked returns the task of collectives that ranks were given.
func ringAsked(end ranksEnd) (r ring) {
	for _, part := range end.launch.Parts {
		switch part := part.(type) {
		case ringPart:
			r = append(r, part)
		case trainPart:
			r = append(r, *part.Collectives)
		}
	}
	return r
}

// trainsToo reports whether the ranks of the gate train-step report the collectives too.
// In a shared box one launch then answers both gates.
func (b boxed) trainsToo() bool {
	_, shared := b.box.(*Shared)
	return shared && wantsTraining(b.promised)
}

// judge compares the reports of the collectives with the right results. more says
// that other reports follow: a fault behind the collectives is then one of those.
func (r ring) judge(end ranksEnd, more bool) verdict.Verdict {
	faults, err := end.faults()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var problems []string
	reported, large := 0, r.largeResults()
	for rank, is := range end.Ranks {
		reports, err := reportsOf[ringReport](is)
		if err != nil {
			return verdict.Failed("rank %d: %v", rank, err)
		}
		reports = slices.DeleteFunc(reports, func(r ringReport) bool { return r.Case != ringCase })
		if len(reports) != 1 {
			problems = append(problems, fmt.Sprintf("rank %d reported its collectives %d times", rank, len(reports)))
			continue
		}
		reported++
		if beyond := beyondHost(is.Sockets); len(beyond) > 0 && end.launch.controller != "mpi" {
			problems = append(problems, fmt.Sprintf("rank %d waits for connections of other hosts with %s", rank, listed(beyond, 3)))
		}
		for _, problem := range r.problems(rank, reports[0], large) {
			problems = append(problems, fmt.Sprintf("rank %d%s", rank, problem))
		}
	}
	if end.Datagrams > 0 && end.launch.controller != "mpi" {
		problems = append(problems, fmt.Sprintf("the ranks send %d datagrams, and Horovod needs none", end.Datagrams))
	}
	if len(problems) == 0 && more {
		problems = end.strangers() // ranks that did not come so far are judged by the gate of their later cases
	} else if reported < len(end.Ranks) || len(problems) == 0 {
		problems = append(faults, problems...)
	}
	return verdict.Judge(problems, []string{fmt.Sprintf("%d ranks started by %s, each with its own random values: allreduce, allgather and broadcast are right; each maps the wheel's extension", len(r), end.launch.by())})
}

// ofHost are the addresses 127.0.0.1 and ::1 in the words of witness.py.
var ofHost = []string{"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}

// beyondHost returns the sockets that other hosts can reach.
func beyondHost(sockets []string) []string {
	return slices.DeleteFunc(slices.Clone(sockets), func(s string) bool {
		_, address, _ := strings.Cut(s, " ")
		address, _, _ = strings.Cut(address, ":")
		return slices.Contains(ofHost, address)
	})
}

// problems compares the report of a rank with the right results, those of large tensors as
// [ring.largeResults] has them. Each text follows the number of the rank.
func (r ring) problems(rank int, have ringReport, large []string) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	size, values := len(r), r.values()
	if have.Rank != rank || have.Size != size {
		wrong(" sees itself as rank %d of %d", have.Rank, have.Size)
	}
	if want := []int{rank, size, 0, 1}; !slices.Equal(have.Place, want) { // all ranks are on one host
		wrong(": its local rank and size, and its cross rank and size, are %v, expected %v", have.Place, want)
	}
	for _, c := range []struct {
		name       string
		have, want []float64
	}{
		{"allreduce", have.Allreduce, sumOf(values)},
		{"allgather", have.Allgather, slices.Concat(values...)},
		{"broadcast", have.Broadcast, values[r[0].Root]},
	} {
		switch {
		case slices.Equal(c.have, c.want):
		case slices.Equal(c.have, values[rank]):
			wrong(": %s gave the rank's own input %v, expected %v", c.name, c.have, c.want)
		default:
			wrong(": %s gave %v, expected %v", c.name, c.have, c.want)
		}
	}
	for i, want := range large {
		if i >= len(have.Large) || have.Large[i] != want {
			wrong(": %s is wrong", largeNames[i])
		}
	}
	if !slices.Equal(have.Extremes, summed[size]) {
		wrong(": the sum of %s is %.300s, expected %s", extremes[:size], have.Extremes, summed[size])
	}
	if at := subnormal; at < len(have.Averages) && have.Averages[at] == "1.401298464324817e-45" {
		have.Averages[at] = averaged[at]
	}
	if size == ranksOfAllreduce && !slices.Equal(have.Averages, averaged) { // a third is not exact
		wrong(": the average of %s is %.300s, expected %s", extremes[:size], have.Averages, averaged)
	}
	right := r.more(rank)
	if all := have.More[togetherCase]; len(all) > groupOfRanks { // the first are a group, the others single calls
		single := slices.Clone(right[togetherCase])
		for i := 0; i < len(single); i += 2 {
			single[i] /= 2
		}
		if !equals(all[groupOfRanks:], single) {
			wrong(": calls that the ranks make in different orders gave %s, expected %s", cut(fmt.Sprint(all[groupOfRanks:]), 300), cut(fmt.Sprint(single), 300))
		}
		have.More[togetherCase] = all[:groupOfRanks]
	}
	if grown := have.More[growthCase]; len(grown) != len(r[0].Repeats) {
		wrong(": it does not report by how much its memory grows")
	} else if len(grown) > 0 && slices.Max(grown) > mostGrowth {
		wrong(": its memory grows by %.0f MiB in calls that need none", slices.Max(grown))
	}
	for _, name := range slices.Sorted(maps.Keys(right)) {
		got, there := have.More[name]
		op, _, _ := strings.Cut(name, " ")
		if want := right[name]; !equals(got, want) && (there || !slices.Contains(newOperations, op)) {
			wrong(": %s gave %s, expected %s", name, cut(fmt.Sprint(got), 300), cut(fmt.Sprint(want), 300))
		}
	}
	for _, name := range mismatches {
		if !slices.Contains(have.Refused, name) {
			wrong(": a collective of ranks with different %s was no error", name)
		}
	}
	if len(have.Changed) > 0 {
		wrong(": Horovod changes %s", some(have.Changed))
	}
	settings := r[rank].Settings // nil asks for no effect
	if settings != nil && (have.Pace <= 0 || have.Pace > mostCycles) {
		wrong(": with HOROVOD_CYCLE_TIME=%s an allreduce takes %.1f cycles at best, expected at most %d", settings["HOROVOD_CYCLE_TIME"], have.Pace, mostCycles)
	}
	if settings != nil && rank == 0 && !have.Stalled {
		wrong(": it did not warn that rank 1 holds up the others, with HOROVOD_STALL_CHECK_TIME_SECONDS=%s", settings["HOROVOD_STALL_CHECK_TIME_SECONDS"])
	}
	return problems
}
