package diag_test

import (
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

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
