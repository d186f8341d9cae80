package curve

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are powers of 1024, as in nccl-tests.
var units = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// HumanSize formats a size for readers: 8 B, 64 KiB, 1.5 MiB.
func HumanSize(bytes int64) string {
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64) + " " + units[unit]
}

// suffixes maps the unit after a size to a power of two.
var suffixes = map[string]uint{
	"": 0, "B": 0,
	"K": 10, "KB": 10, "KIB": 10, "M": 20, "MB": 20, "MIB": 20,
	"G": 30, "GB": 30, "GIB": 30, "T": 40, "TB": 40, "TIB": 40,
}

// ParseSize parses a size such as 8, 64K, 1M or 4G, with an optional B or iB. All units
// are powers of 1024.
func ParseSize(text string) (int64, error) {
	upper := strings.ToUpper(text)
	digits := strings.TrimRight(upper, "BKMGTI")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift, known := suffixes[upper[len(digits):]]
	if err != nil || !known || n < 0 {
		return 0, fmt.Errorf("%q is not a size such as 8, 64K, 1M or 4G", text)
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q exceeds any memory", text)
	}
	return n << shift, nil
}

// Digits formats a figure with the precision of nccl-tests: two decimals, one from 100,
// none from 10,000.
func Digits(value float64) string {
	switch {
	case value >= 10_000:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case value >= 100:
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}
