package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are powers of 1024, as nccl-tests has them.
var units = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// HumanSize writes a size as people say it: 8 B, 64 KiB, 1.5 MiB.
func HumanSize(bytes int64) string {
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64) + " " + units[unit]
}

// ParseSize reads a size: 8, 64K, 1M, 4G, with or without B or iB. All are powers
// of 1024.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTbkimgt")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift, known := map[string]uint{"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}[short(text[len(digits):])]
	if err != nil || !known || n < 0 {
		return 0, fmt.Errorf("%q is not a size such as 8, 64K, 1M or 4G", text)
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is larger than any memory", text)
	}
	return n << shift, nil
}

// short turns KiB and KB into k.
func short(suffix string) string {
	suffix = strings.ToLower(suffix)
	if len(suffix) > 1 {
		suffix = strings.TrimSuffix(strings.TrimSuffix(suffix, "b"), "i")
	}
	return suffix
}
