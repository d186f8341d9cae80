package gate

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// checkBuildOf returns the listing of a release. The third operation was called MLSL up
// to 0.19.0 and CCL since (horovod/run/run.py, horovod/runner/launch.py).
func checkBuildOf(release string) string {
	text := strings.Replace(listing, "v0.28.1", "v"+release, 1)
	if release < "0.19.1" {
		text = strings.Replace(text, "] CCL", "] MLSL", 1)
	}
	return text
}

// Harmless differences from a good artifact pass every gate. Users switch off a gate
// that refuses good artifacts.
func TestHarmlessChanges(t *testing.T) {
	prints := func(gate string, change func(string) string) func(*specimen) {
		return func(s *specimen) { s.box.answers[gate] = Result{Output: change(s.box.answers[gate].Output)} }
	}
	lists := func(release string) func(*specimen) {
		return prints("check-build", func(string) string { return checkBuildOf(release) })
	}
	more := func(names ...string) func(*specimen) {
		return func(s *specimen) {
			for _, name := range names {
				s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: name, Text: "x"})
			}
		}
	}
	const warning = "2024-05-01 WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
	for name, c := range map[string]struct {
		of     func() *specimen
		change func(*specimen)
	}{
		"a run path beside the library":       {horovodCUDA, func(s *specimen) { s.library().Runpath = "$ORIGIN/../../torch/lib:${ORIGIN}/../.libs" }},
		"a run path to the environment's lib": {horovodCUDA, func(s *specimen) { s.library().Runpath = "$ORIGIN/../../../..:/opt/rocm/lib" }},
		"no run path":                         {horovodCUDA, func(s *specimen) { s.library().Runpath = "" }},
		"a symbol that may be missing": {horovodCUDA, func(s *specimen) {
			s.library().Undefined = append(s.library().Undefined, elftest.Symbol{Name: "__gmon_start__", Weak: true})
		}},
		"programs, and headers":                    {horovodROCm, more("horovod-0.28.1+rocm5.7.tf2.13.0.data/scripts/horovodrun", "horovod-0.28.1+rocm5.7.tf2.13.0.data/headers/h.h")},
		"licences, and what is known of the build": {horovodROCm, more("horovod-0.28.1+rocm5.7.tf2.13.0.dist-info/licenses/LICENSE", "horovod-0.28.1+rocm5.7.tf2.13.0.dist-info/sboms/builder.spdx.json")},
		"the version in another spelling":          {horovodROCm, func(s *specimen) { s.wheel.Version = "0.28.1+ROCM5.7-tf2.13.0" }},
		"the targets in another order":             {horovodCUDA, func(s *specimen) { slices.Reverse(s.expect.DeviceCode) }},
		"lines that end as on Windows":             {horovodROCm, prints("check-build", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") })},
		"a warning in the middle of the listing":   {horovodROCm, prints("check-build", func(s string) string { return strings.Replace(s, "    [X] PyTorch\n", warning+"    [X] PyTorch\n", 1) })},
		"a warning before and behind the flags":    {horovodROCm, prints("built-flags", func(s string) string { return warning + s + warning })},
		"a warning before the version":             {ncclVerbs, prints("nccl-load", func(s string) string { return warning + s })},
		"the listing of 0.19.0":                    {horovodROCm, lists("0.19.0")},
		"the listing of 0.19.1":                    {horovodROCm, lists("0.19.1")},
		"the listing of 0.21.3":                    {horovodROCm, lists("0.21.3")},
		"the listing of 0.24.3":                    {horovodROCm, lists("0.24.3")},
		"the listing with --verbose":               {horovodROCm, prints("check-build", func(s string) string { return "\n" + s })},
		"more functions than the vendor's": {ncclVerbs, func(s *specimen) {
			s.library().Exported = append(s.library().Exported, elftest.Named("ncclParamGet", "own")...)
		}},
		"a tag that promises a newer glibc": {ncclVerbs, func(s *specimen) { s.wheel.Name = strings.Replace(s.wheel.Name, "2_38", "2_39", 1) }},
		"two tags": {ncclVerbs, func(s *specimen) {
			s.wheel.Name = strings.Replace(s.wheel.Name, "manylinux_2_38_x86_64", "manylinux_2_38_x86_64.manylinux_2_39_x86_64", 1)
			s.wheel.Tags = []string{"py3-none-manylinux_2_38_x86_64", "py3-none-manylinux_2_39_x86_64"}
		}},
		"a tag that promises no glibc":          {ncclVerbs, func(s *specimen) { s.wheel.Name = strings.Replace(s.wheel.Name, "manylinux_2_38", "linux", 1) }},
		"the names of libibverbs beside a link": {ncclVerbs, func(s *specimen) { s.library().Texts = append(s.library().Texts, "libibverbs.so.1") }},
		"an archive packed in another way": {ncclVerbs, func(s *specimen) {
			s.archive.name = strings.Replace(s.archive.name, ".txz", ".tar.gz", 1)
			s.expect.Gates["archive"] = s.archive.name
		}},
		"an archive with a file of its own": {ncclVerbs, func(s *specimen) {
			s.archive.entries = append(layout(string(s.library().Bytes())), file("nccl/lib/libnccl_static.a", "!<arch>\n"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.of()
			c.change(s)
			again := c.of()
			c.change(again)
			for _, v := range append(s.verdicts(t), again.shared(t)...) {
				judged(t, v, verdict.Pass, "")
			}
		})
	}
}
