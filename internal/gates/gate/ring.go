package gate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"builder/internal/base/regular"
	"builder/internal/plan/recipe"
)

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
	// Reduced, Summed and Moved are the types of more operations.
	Reduced []string `json:"reduced"`
	Summed  []string `json:"summed"`
	Moved   []string `json:"moved"`
	// Calls is the number of small allreduces with a name each, one after the other. Repeats
	// are the sizes of tensors and the numbers of their collectives that must not make the
	// process grow.
	Calls   int      `json:"calls"`
	Repeats [][2]int `json:"repeats"`
	// Together is the number of tensors of a group, and of allreduces at once: ResNet-50 has
	// 161 gradients.
	Together int `json:"together"`
	// Vast is how often a tensor repeats the values. It fills more than one buffer of
	// Horovod and of Gloo.
	Vast int `json:"vast"`
	// Scales are the factors of calls with one name.
	Scales []float64 `json:"scales"`
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

// callsOf returns [ringPart.Calls]. TensorFlow 2.13 gives Horovod one name for all eager calls
// of an operation, whatever their names (seen 2026-11-30), so no number of them fills the
// cache, and a few ask the same.
func callsOf(e recipe.Expect) int {
	if slices.Contains(frameworks(e), "torch") {
		return manyCalls
	}
	return manyCalls / 20
}

// summedTypes are types that Horovod adds, beside [reducedTypes]. For torch it refuses them.
func summedTypes(e recipe.Expect) []string {
	if slices.Contains(frameworks(e), "torch") {
		return []string{}
	}
	return []string{"uint8", "int8"}
}

// rankSeconds is the time limit of ranks on a CPU.
const rankSeconds = 900

// ringOf returns the random task of a number of ranks in a box, for what is promised.
func ringOf(box Box, ranks int, e recipe.Expect) (r ring) {
	random := random(box, fmt.Sprintf("collectives of %d", ranks))
	root := random.IntN(ranks)
	for rank := range ranks {
		part := ringPart{Root: root, Limit: rankSeconds, Extremes: extremes[rank], Reduced: reducedTypes, Summed: summedTypes(e), Moved: movedTypes, Factors: factors, Vast: vastCount, Scales: scales}
		if ranks == ranksOfLauncher {
			part.Settings = settingsOfRanks
		} else {
			part.Calls, part.Repeats, part.Together = callsOf(e), repeats, groupOfRanks
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
// buffer. A variable for tests.
var largeCount = 100003

func (t largeTensor) values() []float32 {
	values := make([]float32, t[2])
	for i := range values {
		values[i] = float32((t[0]+t[1]*i)%(1<<16)) / 8
	}
	return values
}

// vastCount makes more than 2^22 elements of the values, as of an embedding. A variable for
// tests.
var vastCount = 1000003

// scales are factors of which some follow an equal one.
var scales = []float64{1, 1, 0.5, 0.25, 1}

// float16Most stands for infinity in the sums of float16: JSON has none.
const float16Most = 1e9

var largeNames = [4]string{"the sum of a large tensor", "the concatenation of a large tensor", "the broadcast of a large tensor", "the sum of a vast tensor"}

// largeResults returns the digests of the right results, in the order of
// [largeNames]. The last is that of the vast tensor, if the task has it.
func (r ring) largeResults() (digests []string) {
	var all [][]float32
	for _, part := range r {
		all = append(all, part.Large.values())
	}
	results := [][]float32{sumOf(all), slices.Concat(all...), all[r[0].Root]}
	if r[0].Calls > 0 {
		var sum []float32
		for _, value := range sumOf(r.values()) {
			sum = append(sum, float32(value))
		}
		results = append(results, slices.Repeat(sum, r[0].Vast))
	}
	for _, result := range results {
		data := make([]byte, 0, 4*len(result))
		for _, value := range result {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
		}
		digests = append(digests, regular.Sum(data))
	}
	return digests
}

// more returns the right results of other operations and factors, of every type that
// Horovod has for them, and of uneven parts, for one rank. All but the average are exact.
func (r ring) more(rank int) map[string][]float64 {
	var small [][]float64
	var ragged, sent, received []float64
	for from, part := range r {
		received = append(received, float64(part.Splits[rank]))
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
		if slices.Contains(r[0].Summed, kind) {
			results["Sum of "+kind] = sumOf(small)
		}
		results["received of "+kind] = received
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
	total := sumOf(small)[0]
	for i := range 54 {
		results["Sum of four dimensions"] = append(results["Sum of four dimensions"], float64(i)*total)
	}
	for _, scale := range scales {
		results["factors of one name"] = append(results["factors of one name"], scale*total)
	}
	results["overflow of float16"] = []float64{float16Most, -float16Most, float16Most, float64(len(r))}
	if r[0].Calls > 0 {
		results["waits at a barrier"] = []float64{1}
	}
	if len(r) == ranksOfLauncher && rank != 1 {
		results["broadcast in a process set of float32"] = small[2]
		results["place in a process set"] = []float64{float64(rank / 2), 2}
		results["Sum in a process set of float32"] = sumOf([][]float64{small[0], small[2]})
	}
	return results
}

// equals reports whether two lists differ by no more than the rounding of 64 bits.
func equals(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Abs(y) })
}

// sumOf adds lists of the same length.
func sumOf[T float32 | float64](lists [][]T) []T { return reduced("Sum", lists) }
