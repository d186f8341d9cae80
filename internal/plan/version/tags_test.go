package version_test

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/plan/version"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// tags holds all release tags of each project as written, oldest first.
var tags = map[string]string{
	"NVIDIA/nccl": `v2.3.5-5 v2.3.7-1 v2.4.2-1 v2.4.6-1 v2.4.7-1 v2.4.8-1 v2.5.6-1 v2.5.6-2 v2.5.7-1 v2.6.4-1 v2.7.3-1
		v2.7.5-1 v2.7.6-1 v2.7.8-1 v2.8.3-1 v2.8.4-1 v2.9.6-1 v2.9.8-1 v2.9.9-1 v2.10.3-1 v2.11.4-1 v2.12.7-1 v2.12.10-1
		v2.12.12-1 v2.13.4-1 v2.14.3-1 v2.15.1-1 v2.15.5-1 v2.16.2-1 v2.16.5-1 v2.17.1-1 v2.18.1-1 v2.18.3-1 v2.18.5-1
		v2.18.6-1 v2.19.1-1 v2.19.3-1 v2.19.4-1 v2.20.3-1 v2.20.5-1 v2.21.5-1 v2.22.3-1 v2.23.4-1 v2.24.3-1 v2.25.1-1
		v2.26.2-1 v2.26.3-1 v2.26.5-1 v2.26.6-1 v2.27.3-1 v2.27.5-1 v2.27.6-1 v2.27.7-1 v2.28.3-1 v2.28.7-1 v2.28.9-1
		v2.29.2-1 v2.29.3-1 v2.29.7-1 v2.30.3-1 v2.30.4-1 v2.30.7-1`,
	"NVIDIA/nccl-tests": `v1.0.0 v2.0.0 v2.9.0 v2.10.0 v2.10.1 v2.11.0 v2.13.0 v2.13.1 v2.13.9 v2.13.10 v2.13.11 v2.13.13 v2.14.0
		v2.14.1 v2.15.0 v2.15.1 v2.15.2 v2.16.0 v2.16.9 v2.17.0 v2.17.9 v2.17.10 v2.18.0 v2.18.5 v2.19.0 v2.19.6`,
	"horovod/horovod":       `v0.24.0 v0.24.1 v0.24.2 v0.24.3 v0.25.0 v0.26.0 v0.26.1 v0.27.0 v0.28.0 v0.28.1`,
	"ROCm/rccl":             `2.5.0 2.6.0 2.7 2.8.0 2.9.0 2.10.0 3.0.0 3.1.0 5.4 5.4.1 5.4.3 5.4.4 5.7.0 5.7.1 6.0.0 6.0.2 6.1.0 6.1.2 6.2.0 6.2.2`,
	"tensorflow-rocm":       `2.12.0.560 2.12.1.570 2.12.1.600 2.13.0.570 2.13.1.600 2.14.0.600`,
	"torch":                 `1.13.1 2.0.0 2.0.1 2.1.0 2.1.2 2.3.0 2.6.0+cu118 2.6.0+cu124 2.8.0 2.9.0a0+git1 2.9.0rc1 2.9.0 2.10.0 2.11.0+cu130`,
	"nvidia-cuda-nvcc":      `13.0.48 13.0.88 13.1.80 13.1.115 13.2.51 13.2.78 13.2.86 13.3.33 13.3.73 13.4.59 13.4.92 13.5.37`,
	"nvidia-nccl-cu12":      `2.25.1 2.25.1.post1 2.26.2 2.26.2.post1 2.26.5 2.27.3`,
	"RVC-Boss/GPT-SoVITS":   `20240821v2 20250228v3 20250422v4 20250606v2pro`,
	"CPython with two ABIs": `3.9 3.10 3.11 3.12 3.13 3.13t 3.14 3.14t`,
}

func TestTagsOfRealReleases(t *testing.T) {
	for project, list := range tags {
		all := strings.Fields(list)
		parsed := make([]version.Version, len(all))
		for i, tag := range all {
			parsed[i] = parse(t, tag)
			if i > 0 && version.Compare(parsed[i-1], parsed[i]) != -1 {
				t.Errorf("%s: %s does not come before %s", project, all[i-1], tag)
			}
		}
		// A lower bound selects the rest of the list.
		for i, tag := range all {
			if parsed[i].IsPrerelease() {
				continue
			}
			from := must.Get(version.Select(">="+tag, all))(t)
			want := slices.DeleteFunc(slices.Clone(all[i:]), func(s string) bool { return parse(t, s).IsPrerelease() })
			check.That(t, slices.Equal(from, want), "%s: >=%s is %v", project, tag, from)
			exact, err := version.Select(tag, all)
			check.That(t, err == nil && slices.Equal(exact, all[i:i+1]), "%s: %s selects %v, %v", project, tag, exact, err)
		}
	}
}

// Two numbers select the newest release with these numbers, and never one that only
// shares leading digits.
func TestShortNamesOfRealReleases(t *testing.T) {
	for _, c := range []struct{ project, text, want string }{
		{"NVIDIA/nccl", "2.27", "v2.27.7-1"},
		{"NVIDIA/nccl", "2.2", ""},
		{"NVIDIA/nccl", "2.29.7", "v2.29.7-1"},
		{"NVIDIA/nccl", "2.5.6", "v2.5.6-2"},
		{"NVIDIA/nccl-tests", "2.13", "v2.13.13"},
		{"NVIDIA/nccl-tests", "2.1", ""},
		{"tensorflow-rocm", "2.12", "2.12.1.600"},
		{"tensorflow-rocm", "2.12.1", "2.12.1.600"},
		{"torch", "2.6", "2.6.0+cu124"},
		{"torch", "2.6.0+cu118", "2.6.0+cu118"},
		{"torch", "2.9", "2.9.0"},
		{"torch", "2.10", "2.10.0"},
		{"torch", "2.1", "2.1.2"},
		{"nvidia-nccl-cu12", "2.25", "2.25.1.post1"},
	} {
		got, err := version.Select(c.text, strings.Fields(tags[c.project]))
		check.That(t, (c.want != "" || err != nil) && (c.want == "" || (err == nil && slices.Equal(got, []string{c.want}))),
			"%s %s: got %v, %v", c.project, c.text, got, err)
	}
}
