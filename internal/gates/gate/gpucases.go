package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// gpuCalls lists the calls of NCCL by which Horovod runs an operation.
var gpuCalls = map[string][]string{
	"allreduce":     {"AllReduce"},
	"allgather":     {"AllGather", "Broadcast"},
	"broadcast":     {"Broadcast"},
	"alltoall":      {"Send", "Recv", "AllToAll", "AlltoAll"},
	"reducescatter": {"ReduceScatter", "Reduce"},
}

// A gpuCase is one call on every rank. The script repeats the values of a tensor, and
// returns one period of a result after checking that it repeats.
type gpuCase struct {
	gpuCall
	in [][]gpuTensor // by rank
}

// A gpuCall is the part of a case that one rank gets.
type gpuCall struct {
	Name   string      `json:"name"`
	Op     string      `json:"op"`
	Reduce string      `json:"reduce"`
	Type   string      `json:"type"`
	Root   int         `json:"root"`
	Splits []int       `json:"splits"`
	Repeat int         `json:"repeat"`
	Period int         `json:"period"` // 0 for a result that does not repeat
	In     []gpuTensor `json:"in"`
}

// A gpuPart is the part of one rank.
type gpuPart struct {
	Cases []gpuCall `json:"cases"`
	Limit int       `json:"limit"` // seconds until a rank gives up
}

type gpuTensor struct {
	Shape  []int     `json:"shape"`
	Values []float64 `json:"values"`
}

// gpuSeconds is the time limit of ranks on GPUs.
const gpuSeconds = 240

// gpuParts returns the part of each rank.
func gpuParts(cases []gpuCase, ranks int) (parts []any) {
	for rank := range ranks {
		p := gpuPart{Limit: gpuSeconds}
		for _, c := range cases {
			call := c.gpuCall
			call.In = c.in[rank]
			p.Cases = append(p.Cases, call)
		}
		parts = append(parts, p)
	}
	return parts
}

// Types of tensors for which Horovod has operations on GPUs.
var (
	reducedTypes = []string{"float32", "float16", "float64", "int32", "int64"}
	movedTypes   = append(slices.Clone(reducedTypes), "uint8", "int8", "int16")
)

const (
	gpuColumns = 3
	gpuRepeats = 1 << 18 // of the large case: 6 values in float32 make 6 MiB
)

// gpuTries lists the cases of every operation. Those with more than one tensor are
// grouped.
var gpuTries = []struct {
	op              string
	types, reduces  []string
	tensors, repeat int
}{
	{"allreduce", reducedTypes, []string{"Sum", "Average", "Min", "Max", "Product"}, 1, 1},
	{"allreduce", reducedTypes, []string{"Sum"}, 3, 1},
	{"allreduce", []string{"float32"}, []string{"Sum"}, 1, gpuRepeats},
	{"reducescatter", reducedTypes, []string{"Sum", "Average"}, 1, 1},
	{"reducescatter", reducedTypes, []string{"Sum"}, 2, 1},
	{"allgather", movedTypes, []string{""}, 1, 1},
	{"allgather", []string{"float32"}, []string{""}, 2, 1},
	{"broadcast", movedTypes, []string{""}, 1, 1},
	{"alltoall", movedTypes, []string{""}, 1, 1},
}

// gpuCases returns every promised operation with every type, for a number of ranks,
// with random data.
func gpuCases(operations []string, ranks int, random *rand.Rand) (cases []gpuCase, err error) {
	for _, op := range operations {
		before := len(cases)
		for _, try := range gpuTries {
			if try.op != op {
				continue
			}
			for _, kind := range try.types {
				for _, reduce := range try.reduces {
					c := gpuCase{gpuCall: gpuCall{Op: op, Reduce: reduce, Type: kind, Root: ranks - 1, Repeat: try.repeat}}
					c.Name = strings.Join(strings.Fields(op+" "+reduce+" "+kind), " ")
					if try.tensors > 1 {
						c.Op, c.Name = "grouped_"+op, fmt.Sprintf("%s x%d", c.Name, try.tensors)
					}
					if try.repeat > 1 {
						c.Name += " large"
					}
					c.fill(ranks, try.tensors, random)
					cases = append(cases, c)
				}
			}
		}
		if len(cases) == before {
			return nil, fmt.Errorf("no operation is called %q", op)
		}
	}
	return cases, nil
}

// operation returns the name in gpu-operations.
func (c *gpuCase) operation() string { return strings.TrimPrefix(c.Op, "grouped_") }

// fill adds the random tensors of all ranks.
func (c *gpuCase) fill(ranks, tensors int, random *rand.Rand) {
	for rank := range ranks {
		rows := 2
		switch c.operation() {
		case "reducescatter":
			rows = ranks + 1 // rank 0 gets two rows
		case "allgather":
			rows = rank + 1
		case "alltoall":
			rows = ranks * (ranks + 1) / 2
			c.Splits = append(c.Splits, rank+1) // one row to rank 0, two to rank 1
		case "allreduce":
			c.Period = rows * gpuColumns
		}
		var mine []gpuTensor
		for range tensors {
			t := gpuTensor{Shape: []int{rows * c.Repeat, gpuColumns}}
			for range rows * gpuColumns {
				t.Values = append(t.Values, gpuElement(c.Reduce, ranks, rank, random))
			}
			mine = append(mine, t)
		}
		c.in = append(c.in, mine)
	}
}

// gpuElement returns a random element of a rank's tensor: a small integer, so that every
// type holds the results exactly, and an average is one too. The product of many ranks
// stays below 1024.
func gpuElement(reduce string, ranks, rank int, random *rand.Rand) float64 {
	switch {
	case reduce == "":
		return float64(random.IntN(100))
	case reduce == "Product" && rank < 10:
		return float64(1 + random.IntN(2))
	case reduce == "Product":
		return 1
	case reduce == "Average":
		return float64(ranks * (1 + random.IntN(3)))
	}
	return float64(1 + random.IntN(7))
}

// right returns the right results of a rank, which follow from what the ranks hold.
func (c *gpuCase) right(rank int) (results []gpuTensor) {
	for tensor := range c.in[0] {
		var all [][]float64 // by rank
		for _, of := range c.in {
			all = append(all, of[tensor].Values)
		}
		var values []float64
		switch c.operation() {
		case "broadcast":
			values = all[c.Root]
		case "allgather":
			values = slices.Concat(all...)
		case "alltoall":
			first := rank * (rank + 1) / 2 * gpuColumns
			for _, from := range all {
				values = append(values, from[first:first+(rank+1)*gpuColumns]...)
			}
		case "reducescatter":
			first := (rank + 1) * gpuColumns
			values = reduced(c.Reduce, all)[first : first+gpuColumns]
			if rank == 0 {
				values = reduced(c.Reduce, all)[:2*gpuColumns]
			}
		default:
			values = reduced(c.Reduce, all)
		}
		results = append(results, gpuTensor{[]int{len(values) / gpuColumns * c.Repeat, gpuColumns}, values})
	}
	return results
}

// reduced combines the values of all ranks.
func reduced[T float32 | float64](reduce string, all [][]T) []T {
	values := slices.Clone(all[0])
	for _, other := range all[1:] {
		for i, b := range other {
			switch reduce {
			case "Min":
				values[i] = min(values[i], b)
			case "Max":
				values[i] = max(values[i], b)
			case "Product":
				values[i] *= b
			default:
				values[i] += b
			}
		}
	}
	if reduce == "Average" {
		for i := range values {
			values[i] /= T(len(all))
		}
	}
	return values
}
