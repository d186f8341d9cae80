package diagnose

import "testing"

func TestPromisedGlibc(t *testing.T) {
	for platform, want := range map[string][2]string{
		"any":          {},
		"linux_x86_64": {},
		"manylinux2014_x86_64.manylinux_2_17_x86_64": {"2.17", "manylinux2014_x86_64"},
		"manylinux_2_28_x86_64.manylinux_2_5_x86_64": {"2.5", "manylinux_2_5_x86_64"},
		"manylinux_2_38_aarch64":                     {"2.38", "manylinux_2_38_aarch64"},
	} {
		if glibc, tag := promisedGlibc(platform); glibc != want[0] || tag != want[1] {
			t.Errorf("%s: got %s by %s, want %q", platform, glibc, tag, want)
		}
	}
}
