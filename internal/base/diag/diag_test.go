package diag_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

func TestCodeOf(t *testing.T) {
	gate := diag.Errorf(diag.Gate, "refused")
	fetch := diag.Errorf(diag.Fetch, "unreachable")
	for name, c := range map[string]struct {
		err  error
		want diag.Code
	}{
		"nil":         {nil, diag.OK},
		"plain":       {errors.New("x"), diag.Unexpected},
		"wrapped":     {fmt.Errorf("cell: %w", gate), diag.Gate},
		"joined":      {errors.Join(fetch, fmt.Errorf("cell: %w", gate)), diag.Fetch},
		"interrupted": {fmt.Errorf("cell: %w", context.Canceled), diag.Interrupted},
	} {
		check.Same(t, name, c.want, diag.CodeOf(c.err))
	}
}

func TestPosition(t *testing.T) {
	err := diag.At(diag.Pos{File: "recipes/horovod.yaml", Line: 14, Column: 11}, "quote the version %s", "2.10")
	if got, want := err.Error(), "recipes/horovod.yaml:14:11: quote the version 2.10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	check.That(t, err.Code == diag.Usage, "a fault in a file is a fault of usage, got %v", err.Code)
}

func TestNearest(t *testing.T) {
	known := []string{"rocm", "tensorflow", "python", "--jobs", "-o"}
	for word, want := range map[string]string{
		"rcom": "rocm", "tensorfow": "tensorflow", "ROCM": "rocm", "zzzzzzzz": "",
		"--jbos": "--jobs", "jobs": "--jobs", "-q": "", "--xy": "",
	} {
		check.Same(t, word, want, diag.Nearest(word, known))
	}
}

func TestAllKeepsContext(t *testing.T) {
	inner := diag.Errorf(diag.Build, "exit 1").WithHint("look here")
	all := diag.All(errors.Join(fmt.Errorf("building a: %w", inner), errors.New("b")))
	check.That(t, len(all) == 2 && all[0].Error() == "building a: exit 1" && all[0].Hint == "look here" && all[1].Code == diag.Unexpected,
		"got %+v", all)
	around := diag.All(diag.Errorf(diag.Usage, "--to: %w", inner))
	check.That(t, len(around) == 1 && around[0].Error() == "--to: exit 1" && around[0].Hint == "look here" && around[0].Code == diag.Usage,
		"around a fault: %+v", around)
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                          "plain text",
		"u:p@h":                               "h",
		"docker.io=u:p@h:5000/x,v:q@g":        "docker.io=h:5000/x,g",
		`mirror "u:p@h.example" is wrong`:     `mirror "h.example" is wrong`,
		"debian:trixie@sha256:00":             "debian:trixie@sha256:00",
		"h:5000/n@sha256:00 file:a@b":         "h:5000/n@sha256:00 file:a@b",
		"mailto:me@example.com git@h:r":       "mailto:me@example.com git@h:r",
		"ftp://u:p@h/x":                       "ftp://h/x",
		"tcp://u:p@h:1":                       "tcp://h:1",
		"git+https://tok@h/r@v1":              "git+https://h/r@v1",
		"http://u:p?w#x'y@h/p":                "http://h/p",
		`parse "http://u:p@h:x": bad port`:    `parse "http://h:x": bad port`,
		"source.x=http://u:p@ss@h/f y":        "source.x=http://h/f y",
		"https://h/p?a=1&X-Amz-Signature=f&b": "https://h/p?a=1&X-Amz-Signature=…&b",
		"https://h/p?access_token=f)":         "https://h/p?access_token=…)",
		"https://h/p?v=1#part":                "https://h/p?v=1#part",
		"https://h/a@b":                       "https://h/a@b",
		"mail a@b, see https://h":             "mail a@b, see https://h",
		`["https://a/b","c@d"]`:               `["https://a/b","c@d"]`,
	} {
		check.Same(t, in, want, diag.Redact(in))
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("http", "u", "h/p")
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		const secret = "s3cr3t-word"
		if strings.ContainsAny(user, "/ \t\n\f\v\r\":@") || !strings.HasPrefix(diag.Redact(scheme+"://x:y@h"), scheme+"://h") {
			return
		}
		got := diag.Redact(scheme + "://" + user + ":" + secret + "@" + rest)
		check.That(t, !strings.Contains(got, secret), "%q", got)
	})
}
