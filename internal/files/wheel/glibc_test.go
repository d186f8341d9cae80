package wheel

import (
	"testing"

	"builder/test/kit/check"
)

func TestGlibc(t *testing.T) {
	for platform, want := range map[string][2]string{
		"manylinux_2_38_x86_64":  {"2.38", "x86_64"},
		"manylinux_2_5_i686":     {"2.5", "i686"},
		"manylinux1_x86_64":      {"2.5", "x86_64"},
		"manylinux2010_x86_64":   {"2.12", "x86_64"},
		"manylinux2014_aarch64":  {"2.17", "aarch64"},
		"linux_x86_64":           {},
		"musllinux_1_2_x86_64":   {},
		"any":                    {},
		"manylinux_2_x86_64":     {},
		"manylinux_2_38_":        {},
		"manylinux2099_x86_64":   {},
		"macosx_14_0_arm64":      {},
		"x_manylinux2014_x86_64": {},
	} {
		glibc, machine := Glibc(platform)
		check.That(t, glibc == want[0] && machine == want[1], "%s: %q, %q; want %q", platform, glibc, machine, want)
	}
}
