package nccltests

import (
	"fmt"
	"regexp"

	"builder/internal/machine/nccllog"
)

// Version is what the library of a run says of itself, 2.29.7+cuda13.0 or
// 2.21.5-HEAD:9a0e6a1; "" if it says nothing.
func (m Measured) Version() string {
	if _, said := nccllog.Speaker(m.Log); ReleaseOf(said) != "" {
		return said
	}
	return VersionOf(m.Report.Library)
}

// VersionOf writes NCCL's number as a version: 22907 is 2.29.7; before 2.9 it was
// 2804 for 2.8.4 (NCCL_VERSION in nccl.h). It is "" for no number.
func VersionOf(number int) string {
	switch {
	case number <= 0:
		return ""
	case number < 10000:
		return fmt.Sprintf("%d.%d.%d", number/1000, number/100%10, number%100)
	}
	return fmt.Sprintf("%d.%d.%d", number/10000, number/100%100, number%100)
}

var leadingNumbers = regexp.MustCompile(`^\d+(?:\.\d+)+`)

// ReleaseOf is the release in a version: 2.29.7 in 2.29.7+cuda13.0; "" if there is
// none.
func ReleaseOf(version string) string { return leadingNumbers.FindString(version) }
