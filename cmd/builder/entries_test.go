package main

import (
	"testing"

	"builder/internal/matrix"
)

// What the lock lacks is pinned by a command line that a shell takes as it is.
func TestPinCommand(t *testing.T) {
	for want, c := range map[string]struct {
		site   string
		chosen matrix.Filter
	}{
		"builder lock horovod":                                      {"", nil},
		"builder lock horovod --rocm 6.1":                           {"", matrix.Filter{"rocm": "6.1"}},
		"builder lock horovod --arch gfx942 --rocm '>=6.0'":         {"", matrix.Filter{"rocm": ">=6.0", "arch": "gfx942"}},
		"builder lock horovod --recipes 'our site' --rocm 5.7,6.1":  {"our site", matrix.Filter{"rocm": "5.7,6.1"}},
		"builder lock horovod --recipes site --tensorflow '!=none'": {"site", matrix.Filter{"tensorflow": "!=none"}},
	} {
		if got := (catalogue{site: c.site}).pinCommand("horovod", c.chosen); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
