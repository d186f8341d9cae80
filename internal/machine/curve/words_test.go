package curve

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"8": 8, "8B": 8, "0": 0, "64K": 64 << 10, "64KB": 64 << 10, "64KiB": 64 << 10, "64kib": 64 << 10, "1M": 1 << 20, "4G": 4 << 30, "1t": 1 << 40,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "K", "-1", "1.5M", "8X", "1KK", "1 K", "0x10", "9223372036854775808", "9999999999G", "1iB", "1Bi"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d", text, got)
		}
	}
	for bytes, want := range map[int64]string{
		0: "0 B", 8: "8 B", 1023: "1023 B", 1 << 10: "1 KiB", 1536: "1.5 KiB", 64 << 10: "64 KiB", 96 << 20: "96 MiB", 4 << 30: "4 GiB", 1 << 50: "1024 TiB",
	} {
		if got := HumanSize(bytes); got != want {
			t.Errorf("HumanSize(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestDigits(t *testing.T) {
	for value, want := range map[float64]string{0: "0.00", 9.999: "10.00", 99.5: "99.50", 341.94: "341.9", 12855: "12855"} {
		if got := Digits(value); got != want {
			t.Errorf("Digits(%v) = %s, want %s", value, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("64KiB")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize(text); err == nil && n < 0 {
			t.Errorf("ParseSize(%q) = %d", text, n)
		}
	})
}
