package judge

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"8": 8, "64K": 64 << 10, "128m": 128 << 20, "8G": 8 << 30, "1024G": 1 << 40} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "-8", "8T", "8 G", "1.5G", "1025G", "99999999999999999999", "K"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}
