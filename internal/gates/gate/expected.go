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

// Expected compares a file with the user's expectations, one verdict for each. fault is
// the error of the file's inspection.
func Expected(is inspect.Report, err error, all []inspect.Expectation) []verdict.Verdict {
	var verdicts []verdict.Verdict
	for _, e := range all {
		answer, evidence := inspect.Unsaid, fmt.Sprint(err)
		if err == nil {
			answer, evidence = e.Judge(is)
		}
		v := verdict.Verdict{Gate: "expect-" + e.Name, Evidence: fmt.Sprintf("expected %v; %s", e, evidence)}
		switch answer {
		case inspect.Yes:
			v.Status = verdict.Pass
		case inspect.No:
			v.Status, v.Remedy = verdict.Fail, "the bytes of the file differ from --expect: it is another file, or another build"
		case inspect.Unsaid:
			v.Remedy = "the bytes do not show it: expect less, or judge the file by the entry.json of its cell"
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// Unpromised returns the verdict for a file without a promise: only its format was
// judged.
func Unpromised(err error) verdict.Verdict {
	v := verdict.Verdict{Gate: "promise", Evidence: "the file has no promise, so only its form was checked"}
	v.Remedy = "give the directory of its cell, name its entry.json with --entry, or state your expectation, such as --expect arch=gfx90a"
	if err != nil {
		v.Remedy = "the file is damaged, or not what its name says: copy or build it again"
		v.Evidence = fmt.Sprintf("its contents are unreadable: %v", err)
	}
	return v
}

// Doubted returns the verdict for a file with a promise, but no trusted signature on
// it. Refusals count, but passed gates are not enough.
func Doubted(promise string) verdict.Verdict {
	return verdict.Verdict{
		Gate: "promise", Evidence: promise + " holds the file's promise, but has no trusted signature",
		Remedy: "if you know that it is correct: --entry " + promise + "; to trust the signatures of another host: --trust FILE",
	}
}

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
