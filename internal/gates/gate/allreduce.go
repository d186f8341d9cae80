package gate

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"builder/internal/base/regular"
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

// A ring is a task of collectives: the part of each rank. Small multiples of 1/8 and
// their sums are exact in float32.
type ring []ringPart

// The numbers of ranks. Code for two ranks may be other code than that for more, so
// the ranks of the launcher are more.
const (
	ranksOfAllreduce = 2
	ranksOfLauncher  = 3
)

// A ringPart is the part of one rank.
type ringPart struct {
	Values []float64   `json:"values"`
	Root   int         `json:"root"`
	Large  largeTensor `json:"large"`
	Limit  int         `json:"limit"`
	// Extremes are numbers of a second sum, as Python writes them.
	Extremes []string  `json:"extremes"`
	Small    []float64 `json:"small"`  // integers below 8: the product of all is exact in 16 bits
	Splits   []int     `json:"splits"` // number of the values for each rank in an alltoall
	// Factors multiply the small values of a type, except for a product.
	Factors map[string]float64 `json:"factors"`
	// Reduced and Moved are the types of more operations.
	Reduced []string `json:"reduced"`
	Moved   []string `json:"moved"`
	// Calls is the number of small allreduces with a name each, one after the other.
	Calls int `json:"calls"`
	// Together is the number of tensors of a group, and of allreduces at once: more than
	// Horovod joins for a small model.
	Together int `json:"together"`
	// Settings are variables of Horovod. With some, a rank reports what they did.
	Settings map[string]string `json:"settings"`
}

// Settings of the ranks of the launcher, and the most cycles that a small allreduce takes
// at best: it begins in one cycle and ends in the next.
var settingsOfRanks = map[string]string{"HOROVOD_CYCLE_TIME": "20", "HOROVOD_STALL_CHECK_TIME_SECONDS": "1"}

const mostCycles = 3

// Numbers at which sums of floats differ, one list for each rank, and the sums for a
// number of ranks. Training finds its faults by NaN and infinity. Numbers next to 0 are
// lost in a process whose library was linked with -ffast-math. The last two sums are
// rounded up and down.
var (
	extremes = [][]string{
		{"nan", "inf", "1", "-inf", "1e-45", "2.384185791015625e-07", "1", "1"},
		{"1", "2", "nan", "3", "1e-45", "2.384185791015625e-07", "9e-08", "4e-08"},
		{"4", "5", "6", "7", "1e-45", "4.76837158203125e-07", "0", "0"},
	}
	// averaged are those of 2 ranks. TensorFlow computes with 0 in place of 1e-45.
	averaged = []string{"nan", "inf", "nan", "-inf", "0.0", "2.384185791015625e-07", "0.5000000596046448", "0.5"}
	summed   = map[int][]string{
		2: {"nan", "inf", "nan", "-inf", "2.802596928649634e-45", "4.76837158203125e-07", "1.0000001192092896", "1.0"},
		3: {"nan", "inf", "nan", "-inf", "4.203895392974451e-45", "9.5367431640625e-07", "1.0000001192092896", "1.0"},
	}
)

// subnormal is the place of 1e-45 in a list of extremes.
const subnormal = 4

// factors make values that need all bits of their type: sums of 21 times such a factor are
// exact in it, and in no narrower type.
var factors = map[string]float64{"int32": 1<<26 + 1, "int64": 1<<40 + 1, "float64": 1 + 1.0/(1<<30)}

// of returns values with the factor of a type.
func (p ringPart) of(kind string, values []float64) (all []float64) {
	for _, value := range values {
		all = append(all, value*cmp.Or(p.Factors[kind], 1))
	}
	return all
}

// manyCalls is more than Horovod's cache of responses holds, 1024 by default. A variable for
// tests.
var manyCalls = 1100

// mismatches are differences between ranks that Horovod must refuse.
var mismatches = []string{"lengths", "types", "operations", "factors", "roots"}

// rankSeconds is the time limit of ranks on a CPU.
const rankSeconds = 900

// ring returns the random task of a number of ranks.
func (s Subject) ring(ranks int) (r ring) {
	random := s.random(fmt.Sprintf("collectives of %d", ranks))
	root := random.IntN(ranks)
	for rank := range ranks {
		part := ringPart{Root: root, Limit: rankSeconds, Extremes: extremes[rank], Reduced: reducedTypes, Moved: movedTypes, Factors: factors}
		if ranks == ranksOfLauncher {
			part.Settings = settingsOfRanks
		} else {
			part.Calls, part.Together = manyCalls, groupOfRanks
		}
		for range 5 {
			part.Values = append(part.Values, float64(1+random.IntN(1<<16))/8)
			part.Small = append(part.Small, float64(1+random.IntN(7)))
		}
		part.Splits = make([]int, ranks)
		for range part.Values {
			part.Splits[random.IntN(ranks)]++
		}
		part.Large = largeTensor{random.IntN(1 << 16), 2*random.IntN(1<<15) + 1, largeCount}
		r = append(r, part)
	}
	return r
}

// values returns the values of all ranks.
func (r ring) values() (all [][]float64) {
	for _, part := range r {
		all = append(all, part.Values)
	}
	return all
}

// A largeTensor is the first value, the step and the number of the elements of a tensor.
// A rank makes it, because its values are too many for a connection. Each value is a
// multiple of 1/8 below 8192, so the sum of all ranks is exact in 32 bits.
type largeTensor [3]int

// largeCount is the number of elements. A prime leaves a rest for every size of a
// buffer.
const largeCount = 100003

func (t largeTensor) values() []float32 {
	values := make([]float32, t[2])
	for i := range values {
		values[i] = float32((t[0]+t[1]*i)%(1<<16)) / 8
	}
	return values
}

var collectiveNames = [3]string{"the sum", "the concatenation", "the broadcast"}

// largeResults returns the digests of the right results, in the order of
// [collectiveNames].
func (r ring) largeResults() (digests [3]string) {
	var all [][]float32
	for _, part := range r {
		all = append(all, part.Large.values())
	}
	for i, result := range [3][]float32{sumOf(all), slices.Concat(all...), all[r[0].Root]} {
		var data []byte
		for _, value := range result {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
		}
		digests[i] = regular.Sum(data)
	}
	return digests
}

// more returns the right results of other operations and factors, of every type that
// Horovod has for them, and of uneven parts, for one rank. All but the average are exact.
func (r ring) more(rank int) map[string][]float64 {
	var small [][]float64
	var ragged, sent []float64
	for from, part := range r {
		small = append(small, part.Small)
		ragged = append(ragged, part.Small[:from+1]...)
		first := 0
		for _, n := range part.Splits[:rank] {
			first += n
		}
		sent = append(sent, part.Small[first:first+part.Splits[rank]]...)
	}
	results := map[string][]float64{}
	sum := sumOf(r.values())
	for call := range r[0].Calls {
		results[callsCase] = append(results[callsCase], sum[call%len(sum)]+float64(call*len(r)))
	}
	for i := range r[0].Together {
		results[togetherCase] = append(results[togetherCase], sum[i%len(sum)]+float64(i*len(r)))
	}
	for _, kind := range reducedTypes {
		for _, op := range []string{"Sum", "Min", "Max", "Product"} {
			results[op+" of "+kind] = reduced(op, small)
			if op != "Product" {
				results[op+" of "+kind] = r[0].of(kind, results[op+" of "+kind])
			}
		}
	}
	for _, kind := range movedTypes {
		for name, values := range map[string][]float64{"allgather": ragged, "alltoall": sent, "broadcast": small[r[0].Root]} {
			results[name+" of "+kind] = r[0].of(kind, values)
		}
	}
	for _, kind := range []string{"float32", "float64"} {
		each, more := len(small[0])/len(r), len(small[0])%len(r) // the first ranks get one more
		first := rank*each + min(rank, more)
		results["reducescatter of "+kind] = results["Sum of "+kind][first:][:each+max(0, min(1, more-rank))]
	}
	for _, sum := range results["Sum of float64"] {
		results["Average of float64"] = append(results["Average of float64"], sum/float64(len(r)))
		results["scaled Sum of float64"] = append(results["scaled Sum of float64"], sum/2)
	}
	if len(r) == ranksOfLauncher && rank != 1 {
		results["place in a process set"] = []float64{float64(rank / 2), 2}
		results["Sum in a process set of float32"] = sumOf([][]float64{small[0], small[2]})
	}
	return results
}

// newOperations are those that Horovod has only since 0.26, and reducescatter since 0.27.
// The gate python-source refuses a wheel that only hides them.
var newOperations = []string{"Min", "Max", "Product", "reducescatter"}

// equals reports whether two lists differ by no more than the rounding of 64 bits.
func equals(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Abs(y) })
}

// sumOf adds lists of the same length.
func sumOf[T float32 | float64](lists [][]T) []T { return reduced("Sum", lists) }

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
	Large     []string  `json:"large"`    // digests of the same collectives of large tensors
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

const groupOfRanks = 40 // [ringPart.Together]

// mostGrowth is the growth in MiB that the memory of frameworks explains. Sixty tensors of
// [largeCount] elements have 23.
const mostGrowth = 12

func checkAllreduce(ctx context.Context, s Subject) verdict.Verdict {
	task, train := s.ring(ranksOfAllreduce), s.trainsToo()
	l := task.launch(s.Expect)
	if train {
		l = s.training(s.Expect.Launcher, s.trainTask(s.Expect.Launcher, false)) // with the same ring
	}
	end, err := s.start(ctx, frameworks(s.Expect), nil, l)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return task.judge(end, train)
}

func checkLauncher(ctx context.Context, s Subject) verdict.Verdict {
	task := s.ring(ranksOfLauncher)
	ends, err := s.ends(ctx, "launcher", task)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return task.judge(ends[0], false)
}

// launch returns the launch of ranks that do the collectives alone.
func (r ring) launch(e recipe.Expect) launch {
	l := launch{gate: "allreduce-2", controller: e.Launcher, Program: []string{"collectives.py", e.Import[0]}, scripts: []string{"process.py"}, Limit: rankSeconds, Clean: true}
	for _, part := range r {
		l.Parts = append(l.Parts, part)
	}
	return l
}

// trainsToo reports whether the ranks of the gate train-step report the collectives too.
// In a shared box one launch then answers both gates.
func (s Subject) trainsToo() bool {
	_, shared := s.Box.(*Shared)
	return shared && wantsTraining(s.Expect)
}

// judge compares the reports of the collectives with the right results. more says
// that other reports follow: a fault behind the collectives is then one of those.
func (r ring) judge(end ranksEnd, more bool) verdict.Verdict {
	faults, err := end.faults()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var problems []string
	reported := 0
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
		for _, problem := range r.problems(rank, reports[0]) {
			problems = append(problems, fmt.Sprintf("rank %d%s", rank, problem))
		}
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

// problems compares the report of a rank with the right results. Each text follows the
// number of the rank.
func (r ring) problems(rank int, have ringReport) (problems []string) {
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
	for i, want := range r.largeResults() {
		if i >= len(have.Large) || have.Large[i] != want {
			wrong(": %s of a tensor of %d elements is wrong", collectiveNames[i], largeCount)
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
		if !equals(all[groupOfRanks:], right[togetherCase]) {
			wrong(": calls that the ranks make in different orders gave %s, expected %s", cut(fmt.Sprint(all[groupOfRanks:]), 300), cut(fmt.Sprint(right[togetherCase]), 300))
		}
		have.More[togetherCase] = all[:groupOfRanks]
	}
	for _, grown := range have.More[growthCase] {
		if grown > mostGrowth {
			wrong(": its memory grows by %.0f MiB in calls that need none", grown)
		}
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
