package deb

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

func TestMirror(t *testing.T) {
	if got, err := Mirror([]string{"http://a.example/debian", "http://b.example/debian"}); err != nil || got != "http://a.example/debian" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := Mirror(nil)
	errs := diag.All(err)
	if len(errs) != 1 || errs[0].Code != diag.Fetch || !strings.Contains(errs[0].Hint, "BUILDER_MIRROR_DEBIAN") {
		t.Errorf("got %+v", errs)
	}
}

// The cases are valid and invalid lines of sources.list(5).
func TestParse(t *testing.T) {
	const mirror = "http://mirror.example/debian"
	trixie := entry{mirror, []string{"trixie"}}
	for name, c := range map[string]struct {
		parse func(string) []entry
		text  string
		want  []entry
	}{
		"empty list":     {parseOneLine, "", nil},
		"one line":       {parseOneLine, "deb http://mirror.example/debian trixie main contrib\n", []entry{trixie}},
		"without an end": {parseOneLine, "deb\thttp://mirror.example/debian/\ttrixie\tmain", []entry{trixie}},
		"options":        {parseOneLine, "deb [ arch=amd64,arm64 signed-by=/a.gpg ] http://mirror.example/debian trixie main\n", []entry{trixie}},
		"tight options":  {parseOneLine, "deb [trusted=yes]http://mirror.example/debian trixie main\n", []entry{trixie}},
		"comments":       {parseOneLine, "# deb http://no.example/debian trixie main\ndeb http://mirror.example/debian trixie main # deb http://no.example/debian\n", []entry{trixie}},
		"Windows lines":  {parseOneLine, "deb http://mirror.example/debian trixie main\r\n", []entry{trixie}},
		"source":         {parseOneLine, "deb-src http://mirror.example/debian trixie main\n", nil},
		"incomplete":     {parseOneLine, "deb\ndeb http://mirror.example/debian\n", nil},
		"brackets turned around": {
			parseOneLine, "deb ]http://mirror.example/debian[ trixie main\n",
			[]entry{{"]http://mirror.example/debian[", []string{"trixie"}}},
		},
		"empty sources": {parseDeb822, "", nil},
		"stanza":        {parseDeb822, "Types: deb\nURIs: http://mirror.example/debian/\nSuites: trixie\nComponents: main\n", []entry{trixie}},
		"any case":      {parseDeb822, "TYPES: deb deb-src\nuris:http://mirror.example/debian\nSuites :trixie", []entry{trixie}},
		"several of each": {
			parseDeb822, "Types: deb\nURIs: http://mirror.example/debian file:/srv/debian\nSuites: trixie trixie-updates\n",
			[]entry{{mirror, []string{"trixie", "trixie-updates"}}, {"file:/srv/debian", []string{"trixie", "trixie-updates"}}},
		},
		"continued": {
			parseDeb822, "Types: deb\nURIs:\n http://mirror.example/debian\n# between\n\tfile:/srv/debian\nSuites: trixie\n",
			[]entry{trixie, {"file:/srv/debian", []string{"trixie"}}},
		},
		"two stanzas": {
			parseDeb822, "# first\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n\n\nTypes: deb\nURIs: http://b.example/debian\nSuites: sid\n",
			[]entry{trixie, {"http://b.example/debian", []string{"sid"}}},
		},
		"white space between stanzas": {
			parseDeb822, "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n \t\nTypes: deb\nURIs: http://b.example/debian\nSuites: sid\n",
			[]entry{trixie, {"http://b.example/debian", []string{"sid"}}},
		},
		"Windows stanzas": {
			parseDeb822, "Types: deb\r\nURIs: http://mirror.example/debian\r\nSuites: trixie\r\n\r\nTypes: deb\r\nURIs: http://b.example/debian\r\nSuites: sid\r\n",
			[]entry{trixie, {"http://b.example/debian", []string{"sid"}}},
		},
		"no fields of the next": {parseDeb822, "Types: deb\nURIs: http://mirror.example/debian\n\nSuites: trixie\n", []entry{{mirror, []string{}}}},
		"key block": {
			parseDeb822, "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n URIs: http://no.example/debian\n",
			[]entry{trixie},
		},
		"sources only":       {parseDeb822, "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\n", nil},
		"no types":           {parseDeb822, "URIs: http://mirror.example/debian\nSuites: trixie\n", nil},
		"switched off":       {parseDeb822, "Enabled: No\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n", nil},
		"switched off again": {parseDeb822, "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nEnabled: false\n", nil},
		"switched on":        {parseDeb822, "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nEnabled: yes\n", []entry{trixie}},
		"junk":               {parseDeb822, " begins with a continuation\nno colon\n:\n\x00\n", nil},
	} {
		check.Same(t, name, c.want, c.parse(c.text), cmp.AllowUnexported(entry{}))
	}
}

func TestIsDebian(t *testing.T) {
	for uri, want := range map[string]bool{
		"http://mirror.example/debian": true, "https://mirror.example/a/debian": true, "file:/srv/debian": true,
		"http://mirror.example/ubuntu": false, "http://mirror.example/debian-security": false, "http://mirror.example": false,
		"cdrom:[Debian]/debian": false, "mirror+file:/etc/apt/mirrors/debian": false, "ftp://mirror.example/debian": false,
		"debian": false, "/debian": false,
	} {
		if got := (entry{uri, []string{"trixie"}}).isDebian(); got != want {
			t.Errorf("%s: got %v", uri, got)
		}
	}
	for suite, want := range map[string]bool{
		"trixie": true, "trixie-updates": true, "bookworm-backports": true, "stable": true, "sid": true,
		"noble": false, "trixies": false, "./": false, "": false, "-trixie": false,
	} {
		if got := (entry{"http://mirror.example/debian", []string{"other", suite}}).isDebian(); got != want {
			t.Errorf("%s: got %v", suite, got)
		}
	}
}

func TestHostMirrors(t *testing.T) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"etc/apt/sources.list": text("deb http://one.example/debian trixie main\n" +
			"deb http://security.example/debian-security trixie-security main\n"),
		"etc/apt/sources.list.d/b.list":      text("deb http://two.example/debian bookworm main\ndeb http://one.example/debian/ bookworm main\n"),
		"etc/apt/sources.list.d/a.list":      text("deb http://vendor.example/apt stable main\n"),
		"etc/apt/sources.list.d/c.sources":   text("Types: deb\nURIs: http://three.example/debian http://two.example/debian\nSuites: trixie\n"),
		"etc/apt/sources.list.d/d.list.save": text("deb http://no.example/debian trixie main\n"),
		"etc/apt/sources.list.d/e.list/x":    text("a directory"),
	}
	want := []string{"http://one.example/debian", "http://two.example/debian", "http://three.example/debian"}
	check.Same(t, "mirrors", want, HostMirrors(root))
	if got := HostMirrors(fstest.MapFS{}); got != nil {
		t.Errorf("a host without apt has %q", got)
	}
}
