package nccltests

import (
	"fmt"
	"testing"

	"builder/test/kit/check"
)

func TestVersion(t *testing.T) {
	for want, m := range map[string]Measured{
		"":                {Log: "NCCL version unknown"},
		"2.29.7+cuda13.0": {Log: "a\nNCCL version 2.29.7+cuda13.0\nNCCL version 9\n", Report: Report{Library: 22203}},
		"2.22.3-HEAD:1a":  {Log: "RCCL version : 2.22.3-HEAD:1a\nHIP version  : 6.4"},
		"2.22.3":          {Report: Report{Library: 22203}},
		"2.8.4":           {Report: Report{Library: 2804}},
	} {
		check.Same(t, "version", want, m.Version())
	}
}

func TestVersionOf(t *testing.T) {
	for number, want := range map[int]string{22907: "2.29.7", 21805: "2.18.5", 2804: "2.8.4", 2708: "2.7.8", 0: "", -1: ""} {
		check.Same(t, fmt.Sprint(number), want, VersionOf(number))
	}
}

func TestReleaseOf(t *testing.T) {
	for version, want := range map[string]string{
		"2.29.7+cuda13.0": "2.29.7", "2.21.5-HEAD:9a0e6a1": "2.21.5", "2.16.5+hip5.6": "2.16.5", "2.28.3-gfx1151-rccl:a188cf2": "2.28.3", "": "", "develop": "",
	} {
		check.Same(t, version, want, ReleaseOf(version))
	}
}
