// Package size reads and writes numbers: of bytes in powers of ten, as disks and recipes
// count them, and of things.
package size

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"builder/internal/base/diag"
)

var pattern = regexp.MustCompile(`^([1-9][0-9]{0,5})(KB|MB|GB)$`)

// Parse reads a size such as 800MB or 16GB.
func Parse(text string) (int64, error) {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0, diag.Errorf(diag.Usage, "%q is not a size such as 800MB or 16GB", text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n * map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9}[m[2]], err
}

// Share reads a size, or a percentage of whole such as 60%.
func Share(text string, whole int64) (int64, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		if n, err := strconv.ParseInt(percent, 10, 64); err == nil && n > 0 && n <= 100 {
			return whole / 100 * n, nil
		}
		return 0, diag.Errorf(diag.Usage, "%q is not a share such as 60%%", text)
	}
	n, err := Parse(text)
	if err != nil {
		return 0, diag.Errorf(diag.Usage, "%q is not a size such as 40GB or a share such as 60%%", text)
	}
	return n, nil
}

// Text writes a size with one digit after the point.
func Text(bytes int64) string {
	switch n := float64(bytes); {
	case bytes < 1e6:
		return fmt.Sprintf("%.1f KB", n/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case bytes < 1e11:
		return fmt.Sprintf("%.1f GB", n/1e9)
	}
	return fmt.Sprintf("%d GB", bytes/1e9)
}

// Count writes a number with its noun: 1 port, 2 ports.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
