package nccltests

import (
	"fmt"
	"testing"

	"builder/test/kit/check"
)

func TestVersionOf(t *testing.T) {
	for number, want := range map[int]string{22907: "2.29.7", 21805: "2.18.5", 2804: "2.8.4", 2708: "2.7.8", 0: "", -1: ""} {
		check.Same(t, fmt.Sprint(number), want, VersionOf(number))
	}
}
