package main

import (
	"io"
	"strings"
	"testing"
)

const standIn = "testdata/wheels/nvidia_nccl_cu13-2.29.7+stand.in-py3-none-any.whl"

func TestFlagsFirst(t *testing.T) {
	verbs := newApp([]string{"builder"}, configuration{}, io.Discard, io.Discard).Commands
	for typed, want := range map[string]string{
		"builder diagnose - --exit-code":        "builder diagnose --exit-code -- -",
		"builder store import x.tar --json":     "builder store import --json -- x.tar",
		"builder help plan tiny --recipes site": "builder help plan tiny --recipes site",
		"builder plan horovod --rocm 5.7":       "builder plan horovod --rocm 5.7",
		"builder gate a --gpus 2 b --json":      "builder gate --gpus 2 --json -- a b",
		"builder gate --gpus=2 a":               "builder gate --gpus=2 -- a",
		"builder gate a -- --gpus":              "builder gate -- a --gpus",
		"builder gate a --gpus":                 "builder gate a --gpus",
		"builder gate --frob a":                 "builder gate --frob -- a",
		"builder gate -only x --env A=1 a":      "builder gate -only x --env A=1 -- a",
		"builder gate":                          "builder gate",
		"builder run horovod --out gate --json": "builder run horovod --out gate --json",
		"builder":                               "builder",
	} {
		if got := strings.Join(flagsFirst(strings.Fields(typed), verbs), " "); got != want {
			t.Errorf("%s: got %s, want %s", typed, got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"8": 8, "64K": 64 << 10, "128m": 128 << 20, "8G": 8 << 30, "1024G": 1 << 40} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "-8", "8T", "8 G", "1.5G", "1025G", "99999999999999999999", "K"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}
