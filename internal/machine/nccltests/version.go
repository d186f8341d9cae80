package nccltests

import (
	"fmt"
	"regexp"

	"builder/internal/machine/nccllog"
)

// Version returns the version reported by the library of a run, such as 2.29.7+cuda13.0
// or 2.21.5-HEAD:9a0e6a1, or "".
func (m Measured) Version() string {
	if _, said := nccllog.Speaker(m.Log); ReleaseOf(said) != "" {
		return said
	}
	return VersionOf(m.Report.Library)
}

// VersionOf converts NCCL's version number: 22907 is 2.29.7. Before 2.9, 2804 is 2.8.4
// (NCCL_VERSION in nccl.h). Without a number it returns "".
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

// ReleaseOf returns the release in a version, such as 2.29.7 in 2.29.7+cuda13.0, or "".
func ReleaseOf(version string) string { return leadingNumbers.FindString(version) }
