package oci

import (
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestMirrors(t *testing.T) {
	m, err := ParseMirrors([]string{"localhost:5000/hub/", "other.example.org=mirror.example.org"})
	must.Succeed(t, err)
	const digest = "@sha256:e50984d2e1ef6300e3fd51303839842189a077b10cb5cadff1923df10c61c493"
	for name, want := range map[string]string{
		"rocm/tensorflow:6.1" + digest:                   "localhost:5000/hub/rocm/tensorflow:6.1" + digest,
		hub() + "/rocm/tensorflow":                       "localhost:5000/hub/rocm/tensorflow",
		"debian:13":                                      "localhost:5000/hub/library/debian:13",
		"other.example.org/pypa/manylinux_2_28" + digest: "mirror.example.org/pypa/manylinux_2_28" + digest,
		"third.example.org/a/b:c":                        "third.example.org/a/b:c",
		"not a reference":                                "not a reference",
	} {
		got := m.Reference(name)
		check.That(t, got == want, "%s: got %s, want %s", name, got, want)
	}
	got := Mirrors(nil).Reference("a/b:c")
	check.That(t, got == "a/b:c", "without mirrors: %s", got)
	for _, text := range []string{"", "https://mirror.example.org", "mirror", "a b.c", "other.example.org=", "=mirror.example.org", "me:pw@mirror.example.org"} {
		m, err := ParseMirrors([]string{text})
		check.That(t, err != nil, "%q is accepted: %v", text, m)
	}
}
