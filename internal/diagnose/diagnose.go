// Package diagnose knows how builds fail: how a failure is recognised in a log,
// why it happens, and what mends it. The knowledge is data; see [Known].
package diagnose

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// A Diagnosis is one known failure.
type Diagnosis struct {
	Name   string         // short, unique
	Sign   *regexp.Regexp // matches one line of a log
	Why    string         // one sentence
	Remedy string         // what to do
	Source string         // where the failure is described
}

// Hint says why and what to do in one line.
func (d Diagnosis) Hint() string { return d.Why + "; " + d.Remedy + " (" + d.Source + ")" }

// Known lists every known failure. A log shows the first one that matches its
// earliest line: a cause stands before what follows from it.
func Known() []Diagnosis {
	return []Diagnosis{
		{
			"findhip", regexp.MustCompile(`Unknown CMake command "hip_add_library"`),
			"find_package(HIP) found hip-config.cmake, which has no hip_add_library, because FindHIP.cmake is not in CMake's module path",
			"apply the patch findhip, which links FindHIP.cmake and FindHIP/ into cmake/Modules",
			"ROCm/ROCm#3987",
		},
		{
			"rccl-header", regexp.MustCompile(`rccl\.h: No such file or directory`),
			"RCCL's header is rccl/rccl.h since ROCm 5.2",
			"apply the patch rccl-include",
			"horovod/horovod#4044",
		},
		{
			"hip-platform", regexp.MustCompile(`Must define exactly one of __HIP_PLATFORM_AMD__`),
			"the macro __HIP_PLATFORM_HCC__ is gone since ROCm 6.0",
			"define __HIP_PLATFORM_AMD__ in cmake/Modules/FindROCM.cmake",
			"horovod/horovod#4064",
		},
		{
			"gcc13-includes", regexp.MustCompile(`'(logic_error|runtime_error|invalid_argument)' is not a member of 'std'`),
			"g++ 13 and later include fewer headers by way of others",
			"apply the patch gcc13-includes",
			"horovod/horovod#3957",
		},
		{
			"flatbuffers-span", regexp.MustCompile(`assignment of read-only member .*span<.*count_`),
			"g++ 14 checks templates that nobody instantiates",
			"apply the patch flatbuffers-span",
			"google/flatbuffers#7227",
		},
		{
			"torch-cxx17", regexp.MustCompile(`You need C\+\+17 to compile PyTorch|'basic_string_view' in namespace 'std'`),
			"torch 2.1 and later need C++17 and Horovod asks for C++14",
			"set CMAKE_CXX_STANDARD 17 in horovod/torch/CMakeLists.txt",
			"horovod/horovod#3998",
		},
		{
			"cmake4", regexp.MustCompile(`Compatibility with CMake < 3\.5 has been removed`),
			"CMake 4 refuses projects that ask for less than 3.5, as Horovod's gloo does",
			"set CMAKE_POLICY_VERSION_MINIMUM=3.5, or use CMake 3",
			"facebookincubator/gloo 9d6f6bd",
		},
		{
			"verbs", regexp.MustCompile(`undefined (symbol|reference).*\bibv_\w+`),
			"RDMA_CORE=1 compiles against libibverbs and nothing links it",
			"put LDFLAGS=-libverbs into the environment of make, not on its command line",
			"NVIDIA/nccl#1158",
		},
		{
			"no-network", regexp.MustCompile(`Network is unreachable|Temporary failure in name resolution|Could not resolve host`),
			"the step asked for the network, and build steps have none",
			"name what it wanted in the recipe, so that the lock pins it and the fetch phase brings it",
			"docs/hermetic.md",
		},
		{
			"memory", regexp.MustCompile(`Killed signal terminated program cc1plus|virtual memory exhausted|c\+\+: fatal error: Killed`),
			"the compiler was killed: the host ran out of memory",
			"build with fewer jobs, or on a host with more memory",
			"docs/troubleshooting.md",
		},
		{
			"disk", regexp.MustCompile(`No space left on device`),
			"the disk is full",
			"free some space below BUILDER_HOME, or set it to a larger disk",
			"docs/troubleshooting.md",
		},
	}
}

// maxLine bounds how much of a line is looked at, in bytes.
const maxLine = 64 << 10

// Log returns the failure that the log at path shows, or nil: of a log that
// cannot be read nothing is known.
func Log(path string) *Diagnosis {
	known := Known()
	var found *Diagnosis
	_ = eachLine(path, func(line string) bool {
		i := slices.IndexFunc(known, func(d Diagnosis) bool { return d.Sign.MatchString(line) })
		if i >= 0 {
			found = &known[i]
		}
		return found == nil
	})
	return found
}

var errorLine = regexp.MustCompile(`(?i)\berror\b[: ]|CMake Error|undefined (reference|symbol)|^Traceback |No such file or directory|Killed`)

// Meaningful returns the lines of a log that explain a failure: from the first
// that speaks of an error, up to ten, and the last three. Where no line does, it
// returns the end of the fallback.
func Meaningful(path string, fallback []string) []string {
	const around, tail = 10, 3
	var lines, last []string
	found := false
	err := eachLine(path, func(line string) bool {
		found = found || errorLine.MatchString(line)
		switch {
		case found && len(lines) < around:
			lines = append(lines, line)
		case found:
			last = append(last, line)
			last = last[max(0, len(last)-tail):]
		}
		return true
	})
	if err != nil || !found {
		return fallback[max(0, len(fallback)-around):]
	}
	if len(last) == tail {
		lines = append(lines, "…")
	}
	return append(lines, last...)
}

// eachLine visits the lines of a file until visit returns false. Longer lines
// than maxLine are cut.
func eachLine(path string, visit func(string) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		text := strings.TrimRight(string(line), "\r\n")
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if text != "" && !visit(text) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
