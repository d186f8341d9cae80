package gate

import (
	"encoding/json"
	"fmt"
	"slices"
)

// played answers the programs of ranks and questions in the place of real processes.
// Without a change they are those of a good artifact.
type played struct {
	mapped   []mappedFile            // by every process
	training func(*trainReport)      // changes a report, or omits it by clearing its case
	ring     func(*ringReport)       // the same
	cases    [][]testCase            // of upstream's tests, by rank
	end      func(launch, *ranksEnd) // changes the end of the ranks
	flags    map[string]string       // of the extension; nil for those of the module
	question func(string, *answer)   // changes the answer to a question of a gate
	gpus     func(launch, int) []any
}

func jsonOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // numbers and strings only
	}
	return string(text)
}

func at(exit int) *int { return &exit }

// ranks answers like ranks.py. alone answers the programs that run alone.
func (p played) ranks(stdin, device string, alone func(program []string) (ranksEnd, bool)) Result {
	var job rankJob
	if err := json.Unmarshal([]byte(stdin), &job); err != nil {
		return Result{Exit: 1, Output: err.Error()}
	}
	var ends []ranksEnd
	for _, l := range job.Launches {
		end, ok := alone(l.Program)
		if !ok {
			end = p.launch(l, device)
		}
		ends = append(ends, end)
	}
	return Result{Output: "a line\n" + jsonOf(map[string]any{"nonce": job.Nonce, "ends": ends}) + "\n"}
}

// launch returns the end of the ranks of a launch.
func (p played) launch(l launch, device string) ranksEnd {
	end := ranksEnd{Exit: at(0), Log: "a warning\n"}
	for rank := range l.Parts {
		exit := 0
		if slices.Contains(l.Failing, rank) {
			exit = 1
			if len(l.Launcher) > 0 {
				end.Exit = at(exit)
			}
		}
		end.Ranks = append(end.Ranks, &rankEnd{Lines: p.lines(l, rank, device), End: true, Exit: at(exit), Mapped: p.mapped})
	}
	if p.end != nil {
		p.end(l, &end)
	}
	return end
}

// ranksOnly answers no program that runs alone.
func ranksOnly([]string) (end ranksEnd, ok bool) { return end, false }

// lines returns the reports of one rank.
func (p played) lines(l launch, rank int, device string) (lines []string) {
	switch l.Program[0] {
	case "collectives.py":
		return p.ringLines(partsOf[ringPart](l), rank)
	case "train.py":
		all := partsOf[trainPart](l)
		if all[0].Collectives != nil {
			lines = p.ringLines(ring{*all[0].Collectives, *all[1].Collectives}, rank)
		}
		task := trainTask(all)
		for _, name := range trainCases[l.Program[1]] {
			r := task.report(name, rank)
			r.Device = device
			if p.training != nil {
				p.training(&r)
			}
			if r.Case != "" {
				lines = append(lines, jsonOf(r))
			}
		}
	case "gpu.py":
		for _, r := range p.gpus(l, rank) {
			lines = append(lines, jsonOf(r))
		}
	case "upstream.py":
		if rank < len(p.cases) {
			for _, c := range p.cases[rank] {
				lines = append(lines, jsonOf(c))
			}
			lines = append(lines, jsonOf(map[string]int{"pytest": 0, "collected": len(p.cases[rank])}))
		}
	}
	return lines
}

// partsOf returns the parts of a launch.
func partsOf[T any](l launch) (all []T) {
	if err := json.Unmarshal([]byte(jsonOf(l.Parts)), &all); err != nil {
		panic(err) // the job of the gate
	}
	return all
}

func (p played) ringLines(task ring, rank int) []string {
	size, values := len(task), task.values()
	large := task.largeResults()
	r := ringReport{
		Case: ringCase, Rank: rank, Size: size, Place: []int{rank, size, 0, 1}, Large: large[:], Extremes: slices.Clone(summed[size]), Averages: averaged,
		Allreduce: sumOf(values), Allgather: slices.Concat(values...), Broadcast: values[task[0].Root],
		More: task.more(rank), Refused: mismatches, Pace: 1.5, Stalled: true,
	}
	if r.More[callsCase] != nil {
		r.More[growthCase] = []float64{0.5, 0}
	}
	if p.ring != nil {
		p.ring(&r)
	}
	if r.Case == "" {
		return nil
	}
	return []string{jsonOf(r)}
}

// report returns the right report on a case.
func (t trainTask) report(name string, rank int) trainReport {
	r := trainReport{Case: name, Rank: rank, Size: 2, task: &t}
	if name == "grouped-allreduce" {
		r.Grouped = t.groups()
	} else {
		r.Weights = t.right(name, rank)
	}
	return r
}

// alone answers the programs that run alone, in the place of ranks.py. The answers of the
// module to each gate are those of answers.
func (c container) alone(program []string) (end ranksEnd, ok bool) {
	gate, ok := map[string]string{
		"imports.py": "import", "framework_platform.py": "platform", "checkbuild.py": "check-build", "flags.py": "built-flags",
		"load.py": "nccl-load", "rendezvous.py": "rendezvous",
	}[program[0]]
	if !ok {
		return end, false
	}
	result := c.answers[gate]
	a := answer{rankEnd{Exit: at(result.Exit), End: result.Exit == 0, Mapped: c.mapped}, ranksEnd{Exit: at(0), Log: result.Output}}
	if gate == "import" && a.End {
		a.Exit = at(exitOfImport)
	}
	text := jsonLine(result.Output)
	switch {
	case text == "":
	case gate == "built-flags":
		if program[1] == "library" && c.flags != nil {
			text = jsonOf(c.flags)
		}
		a.Lines = []string{fmt.Sprintf(`{"flags": %s}`, text)}
	case gate == "rendezvous":
		var said struct{ Requests []request }
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			panic(err) // the answer of a test
		}
		for _, r := range said.Requests {
			a.Lines = append(a.Lines, jsonOf(r))
		}
	case gate == "nccl-load":
		a.Lines = []string{text}
	}
	if c.question != nil {
		c.question(gate, &a)
	}
	a.all.Ranks = []*rankEnd{&a.rankEnd}
	return a.all, true
}
