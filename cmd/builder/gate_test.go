package main

import (
	"io"
	"strings"
	"testing"
)

func TestFlagsFirst(t *testing.T) {
	verbs := wired([]string{"builder"}, io.Discard, io.Discard).Commands
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
		"builder gate a --only x --help":        "builder gate --help",
		"builder gate a -h":                     "builder gate -h",
		"builder gate -- --help":                "builder gate -- --help",
		"builder gate":                          "builder gate",
		"builder run horovod --out gate --json": "builder run horovod --out gate --json",
		"builder":                               "builder",
	} {
		if got := strings.Join(flagsFirst(strings.Fields(typed), verbs), " "); got != want {
			t.Errorf("%s: got %s, want %s", typed, got, want)
		}
	}
}
