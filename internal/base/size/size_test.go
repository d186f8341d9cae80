package size_test

import (
	"testing"

	"builder/internal/base/size"
	"builder/test/kit/check"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"40KB": 40e3, "1MB": 1e6, "800MB": 800e6, "16GB": 16e9, "999999GB": 999999e9,
		"": 0, "16": 0, "0GB": 0, "-1GB": 0, "16GiB": 0, "1.5GB": 0, "16gb": 0, "1000000GB": 0, "1 GB": 0,
	} {
		have, err := size.Parse(text)
		check.That(t, have == want && (err != nil) == (want == 0), "%q is %d, %v; want %d", text, have, err, want)
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]int64{
		"60%": 600, "100%": 1000, "1%": 10, "2KB": 2000,
		"0%": 0, "101%": 0, "-5%": 0, "%": 0, "1.5%": 0, "much": 0, "0KB": 0,
	} {
		have, err := size.Share(text, 1000)
		check.That(t, have == want && (err != nil) == (want == 0), "%q is %d, %v; want %d", text, have, err, want)
	}
}

func TestText(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0.0 KB", 65536: "65.5 KB", 999_999: "1000.0 KB", 1_000_000: "1.0 MB", 15_834_289: "15.8 MB",
		9_070_000_000: "9.1 GB", 2_163_000_000_000: "2163 GB",
	} {
		check.Same(t, "a size", want, size.Text(bytes))
	}
}
