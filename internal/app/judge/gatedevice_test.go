package judge

import (
	"testing"

	"builder/test/kit/check"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"8": 8, "64K": 64 << 10, "128m": 128 << 20, "8G": 8 << 30, "1024G": 1 << 40} {
		got, err := ParseBytes(text)
		check.That(t, err == nil && got == want, "%s: got %d, %v", text, got, err)
	}
	for _, text := range []string{"", "7", "-8", "8T", "8 G", "1.5G", "1025G", "99999999999999999999", "K"} {
		got, err := ParseBytes(text)
		check.That(t, err != nil, "%q: got %d", text, got)
	}
}
