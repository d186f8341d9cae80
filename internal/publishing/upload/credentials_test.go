package upload

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
)

func TestWhereCredentialsAreFound(t *testing.T) {
	netrc := write(t, filepath.Join(t.TempDir(), "netrc"), `# machine up.example login no password no
default login any password any
machine other.example login no password no
macdef init
machine up.example login no password no

machine up.example:8443 login port password p1
machine up.example
  login bob account x
  password "p 2"
machine up.example login eve password #p3
machine quoted.example login q password "p4"
`, 0o600)
	home := t.TempDir()
	write(t, filepath.Join(home, ".netrc"), "machine up.example login home password ph", 0o600)
	for name, c := range map[string]struct {
		address string
		env     []string
		want    string // user:password, "" for none
	}{
		"variables":          {"", []string{"BUILDER_PUBLISH_USERNAME=a", "BUILDER_PUBLISH_PASSWORD=b", "TWINE_PASSWORD=c", "NETRC=" + netrc}, "a:b"},
		"token":              {"", []string{"BUILDER_PUBLISH_TOKEN=t"}, "__token__:t"},
		"token of a user":    {"", []string{"BUILDER_PUBLISH_TOKEN=t", "BUILDER_PUBLISH_USERNAME=a"}, "a:t"},
		"twine":              {"", []string{"TWINE_USERNAME=a", "TWINE_PASSWORD=b", "NETRC=" + netrc}, "a:b"},
		"twine's token":      {"", []string{"TWINE_PASSWORD=b"}, "__token__:b"},
		"netrc of a user":    {"", []string{"BUILDER_PUBLISH_USERNAME=eve", "NETRC=" + netrc}, "eve:#p3"},
		"netrc of a port":    {"https://up.example:8443/", []string{"NETRC=" + netrc}, "port:p1"},
		"netrc of no host":   {"https://unknown.example/", []string{"NETRC=" + netrc}, ""},
		"netrc with quotes":  {"https://quoted.example/", []string{"NETRC=" + netrc}, "q:p4"},
		"netrc at home":      {"", []string{"HOME=" + home}, "home:ph"},
		"keyring":            {"https://keyring.example/", []string{"HOME=" + home}, "__token__:k of https://keyring.example/"},
		"keyring and a user": {"https://keyring.example/", []string{"TWINE_USERNAME=u"}, "u:k of https://keyring.example/"},
	} {
		o := Options{env: env(c.env...), keyring: func(address, _ string) string {
			if strings.Contains(address, "keyring") {
				return "k of " + address
			}
			return ""
		}}
		if c.address == "" {
			c.address = "https://up.example/legacy/"
		}
		s, err := Open(t.Context(), c.address, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		if s.credentials.get != nil {
			user, password := s.credentials.get()
			got = user + ":" + password
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCredentialsThatAreRefused(t *testing.T) {
	for want, pairs := range map[string][]string{
		"both BUILDER_PUBLISH_TOKEN and":          {"BUILDER_PUBLISH_TOKEN=" + secret, "BUILDER_PUBLISH_PASSWORD=" + secret},
		"BUILDER_PUBLISH_USERNAME is not":         {"BUILDER_PUBLISH_PASSWORD=" + secret},
		"reading netrc: stat /nowhere":            {"NETRC=/nowhere"},
		"reading netrc: open /dev/null: a device": {"NETRC=/dev/null"},
	} {
		_, err := Open(t.Context(), "https://up.example/", Options{env: env(pairs...)})
		if err == nil || !strings.Contains(err.Error(), want) || diag.CodeOf(err) != diag.Usage || strings.Contains(err.Error(), secret) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAReadableNetrcIsNamed(t *testing.T) {
	for mode, want := range map[int]int{0o600: 0, 0o644: 1} {
		file := write(t, filepath.Join(t.TempDir(), "netrc"), "machine up.example login a password b", 0o600)
		if err := os.Chmod(file, fs.FileMode(mode)); err != nil {
			t.Fatal(err)
		}
		warned := 0
		_, err := Open(t.Context(), "https://up.example/", Options{env: env("NETRC=" + file), Warn: func(string, ...any) { warned++ }})
		if err != nil || warned != want {
			t.Errorf("%o: %v, %d warnings", mode, err, warned)
		}
	}
}

// The program keyring receives the address and the user. A failure of the program is no
// error.
func TestTheKeyringProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	if got := askKeyring(t.Context(), "https://up.example/", "ann"); got != "" {
		t.Errorf("without a program: %q", got)
	}
	write(t, filepath.Join(dir, "keyring"), "#!/bin/sh\ntest \"$1 $2 $3\" = 'get https://up.example/ ann' && echo "+secret+"\n", 0o700)
	if got := askKeyring(t.Context(), "https://up.example/", "ann"); got != secret {
		t.Errorf("%q", got)
	}
	if got := askKeyring(t.Context(), "https://up.example/", "bob"); got != "" {
		t.Errorf("for another: %q", got)
	}
}

func TestCredentialsDoNotPrint(t *testing.T) {
	s := open(t, "https://up.example/", Options{})
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		text := fmt.Sprintf(format, s) + fmt.Sprintf(format, *s) + fmt.Sprintf(format, s.credentials) + fmt.Sprintf(format, &s.credentials) + string(encoded)
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
			t.Errorf("%s: %s", format, text)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"pypi:https://up.example/legacy/":                         "https://up.example/legacy/ ",
		"https://up.example/legacy/?simple=../simple":             "https://up.example/legacy/ https://up.example/simple",
		"pypi:https://up.example?simple=https://files.example/s/": "https://up.example https://files.example/s/",
		"pypi:https://up.example/ann/dev/?simple=+simple/":        "https://up.example/ann/dev/ https://up.example/ann/dev/+simple/",
		"pypi:https://up.example/ann/dev/?simple=%2Bsimple%2F":    "https://up.example/ann/dev/ https://up.example/ann/dev/+simple/",
		"pypi:http://127.0.0.1:8080/":                             "http://127.0.0.1:8080/ ",
		"pypi:http://[::1]:8080/":                                 "http://[::1]:8080/ ",
		"pypi:http://localhost/":                                  "http://localhost/ ",
	} {
		s, err := Open(t.Context(), text, Options{env: env("BUILDER_PUBLISH_TOKEN=t")})
		if err != nil || s.URL+" "+s.simple != want {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{
		"pypi:":                                    "the upload server is malformed",
		"pypi:up.example/legacy":                   "the upload server is malformed",
		"pypi:ftp://up.example/":                   "the upload server is malformed",
		"pypi:https://ann:" + secret + "@h/":       "holds credentials",
		"pypi:https://" + secret + "@h/":           "holds credentials",
		"pypi:https://ann:" + secret + "%@h/":      "the upload server is malformed",
		"pypi:http://up.example/":                  "not encrypted",
		"pypi:http://localhost.evil.example/":      "not encrypted",
		"pypi:https://h/?token=" + secret:          "unsupported query",
		"pypi:https://h/?simple=http://i/":         "not encrypted",
		"pypi:https://h/?simple=https://a:b@i/":    "holds credentials",
		"pypi:https://h/?simple=s&token=" + secret: "unsupported query",
		"pypi:https://h/?simple=%zz":               "the index is malformed",
		"pypi:https://h/#sec":                      "fragment",
	} {
		_, err := Open(t.Context(), text, Options{env: env("BUILDER_PUBLISH_TOKEN=t")})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) || diag.CodeOf(err) != diag.Usage) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Open(t.Context(), "pypi:http://up.example/", Options{env: env("BUILDER_PUBLISH_TOKEN=t"), Insecure: true}); err != nil {
		t.Error(err)
	}
}
