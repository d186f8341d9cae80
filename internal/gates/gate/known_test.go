package gate

import (
	"strings"
	"testing"

	"builder/internal/files/inspect"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

func TestKnownFaults(t *testing.T) {
	const broken = "if rocm_built():\n    new_tensors = []\n    for tensor in summed_tensors:\n        new_tensors += (tensor / horovod_size) if average_in_framework else tensor\n"
	mended := strings.Replace(broken, "new_tensors += (tensor / horovod_size)", "new_tensors.append((tensor / horovod_size)", 1)
	rocm := inspect.Report{Facts: []inspect.Fact{{Name: "rocm", Values: []string{"5"}}}}
	cuda := inspect.Report{Facts: []inspect.Fact{{Name: "rocm", Values: []string{inspect.None}}}}
	for name, c := range map[string]struct {
		file, text string
		is         inspect.Report
		want       verdict.Status
		says       string // "" means no verdict
	}{
		"unpatched":     {groupedAllreduce, broken, rocm, verdict.Fail, "lines 4: new_tensors += "},
		"patched":       {groupedAllreduce, mended, rocm, verdict.Pass, "appends its tensors"},
		"for CUDA":      {groupedAllreduce, broken, cuda, verdict.Pass, ""},
		"not inspected": {groupedAllreduce, broken, inspect.Report{}, verdict.Pass, ""},
		"another wheel": {"other/__init__.py", broken, rocm, verdict.Pass, ""},
	} {
		w := wheeltest.Wheel{Name: "horovod-0.28.1-cp311-cp311-linux_x86_64.whl", Files: []wheeltest.File{{Name: c.file, Text: c.text}}}
		got := KnownFaults(w.Write(t), c.is)
		if len(got) != min(1, len(c.says)) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for _, v := range got {
			check.That(t, v.Status == c.want && strings.Contains(v.Evidence, c.says) && (v.Remedy == "") == (v.Status == verdict.Pass),
				"%s: %+v", name, v)
		}
	}
	bad := must.File(t, "x.whl", "no wheel")
	got := KnownFaults(bad, rocm)
	check.That(t, len(got) == 1 && got[0].Status == verdict.NotMeasured, "%+v", got)
}
