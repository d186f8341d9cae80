package nccltests

import "fmt"

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
