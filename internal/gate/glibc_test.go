package gate

import "testing"

func TestPromisedGlibc(t *testing.T) {
	for tag, want := range map[string]string{
		"py3-none-manylinux_2_38_x86_64":     "2.38",
		"cp311-cp311-manylinux_2_5_i686":     "2.5",
		"cp311-cp311-manylinux1_x86_64":      "2.5",
		"cp311-cp311-manylinux2010_x86_64":   "2.12",
		"cp311-cp311-manylinux2014_aarch64":  "2.17",
		"cp311-cp311-linux_x86_64":           "",
		"cp311-cp311-musllinux_1_2_x86_64":   "",
		"py3-none-any":                       "",
		"py3-none-manylinux_2_x86_64":        "",
		"manylinux_2_38_x86_64-none-any":     "",
		"py3-none-manylinux2099_x86_64":      "",
		"py3-none-macosx_14_0_arm64":         "",
		"cp311-manylinux2014_x86_64-cp311-x": "",
	} {
		if got := promisedGlibc(tag); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}
