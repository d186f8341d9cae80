package gate

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/inspect"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
)

// groupedAllreduce is the file of Horovod with a faulty line: grouped_allreduce adds a
// tensor to a list elementwise instead of appending it.
const groupedAllreduce = "horovod/tensorflow/__init__.py"

var addsToList = regexp.MustCompile(`^\s*new_tensors \+= `)

// KnownFaults finds faults of every upstream release, by the wheel's bytes alone. It
// returns nothing for a wheel that cannot have them.
func KnownFaults(file string, is inspect.Report) []verdict.Verdict {
	rocm, known := is.Fact("rocm")
	if !known || slices.Equal(rocm.Values, []string{inspect.None}) { // only ROCm runs the faulty lines
		return nil
	}
	files, err := wheel.ReadFiles(file, func(name string) bool { return name == groupedAllreduce }, 1<<20)
	text, has := files[groupedAllreduce]
	if err == nil && !has {
		return nil
	}
	v := verdict.Verdict{Gate: "known-faults"}
	var at []string
	for i, line := range bytes.Split(text, []byte("\n")) {
		if addsToList.Match(line) {
			at = append(at, fmt.Sprint(i+1))
		}
	}
	switch {
	case err != nil:
		v.Evidence, v.Remedy = err.Error(), "the file is unreadable: download or copy it again"
	case len(at) > 0:
		v.Status = verdict.Fail
		v.Evidence = fmt.Sprintf("%s, lines %s: new_tensors += …; grouped_allreduce and DistributedOptimizer(groups=…) fail or lose tensors on ROCm (horovod#2453)", groupedAllreduce, strings.Join(at, " and "))
		v.Remedy = "call allreduce for each tensor and pass no groups, or build the wheel with the patch grouped-allreduce; see docs/neighbours.md#grouped-allreduce"
	default:
		v.Status, v.Evidence = verdict.Pass, groupedAllreduce+": grouped_allreduce appends its tensors"
	}
	return []verdict.Verdict{v}
}
