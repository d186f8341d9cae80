package deb

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestParseIndexes(t *testing.T) {
	for address, want := range map[string]string{
		"http://a.example/debian/dists/trixie/main":             "http://a.example/debian",
		"https://a.example/x/debian/dists/trixie-updates/main":  "https://a.example/x/debian",
		"file:/srv/debian/dists/sid/non-free-firmware":          "file:/srv/debian",
		"http://a.example/debian/dists/oldoldstable/main":       "http://a.example/debian",
		"http://a.example/debian/dists/noble/main":              "",
		"http://a.example/debian/dists/trixies/main":            "",
		"http://a.example/debian/./main":                        "",
		"http://a.example/ubuntu/dists/stable/main":             "",
		"http://a.example/debian-security/dists/stable/main":    "",
		"ftp://a.example/debian/dists/trixie/main":              "",
		"mirror+file:/etc/apt/mirrors/debian/dists/trixie/main": "",
		"cdrom:[Debian GNU/Linux 13]/debian/dists/trixie/main":  "",
		"http://a.example/debian/dists/trixie/main/../../x'/y":  "",
	} {
		check.Same(t, address, want, strings.Join(parseIndexes("'"+address+"/binary-amd64/Packages.xz' x_Packages 0 \n"), " "))
	}
	got := parseIndexes("'http://a.example/debian/dists/trixie/main/source/Sources.xz' x_Sources 0 \n")
	check.That(t, got == nil, "only sources: got %q", got)
}

// The fake apt configuration lies in a directory of the test. The real apt reads it.
func TestHostMirrors(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"apt.conf": `Dir::Etc "` + dir + `"; Dir::Etc::SourceList "one.list"; Dir::Etc::SourceParts "parts"; Dir::State::Lists "` + dir + `/none";`,
		"one.list": "deb [trusted=yes] http://one.example/debian/ trixie main # deb http://no.example/debian trixie main\n" +
			"deb-src http://no.example/debian trixie main\ndeb http://vendor.example/apt stable main\n",
		"parts/two.sources": "Types: deb deb-src\nURIs: http://two.example/debian http://one.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\nTrusted: yes\n\n" +
			"Types: deb\nURIs: http://no.example/debian\nSuites: sid\nComponents: main\nEnabled: no\n",
	}
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "parts"), 0o755))
	for name, text := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Setenv("APT_CONFIG", filepath.Join(dir, "apt.conf"))
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("needs apt")
	}
	got := HostMirrors(t.Context())
	slices.Sort(got)
	check.Same(t, "mirrors", []string{"http://one.example/debian", "http://two.example/debian"}, got)
	t.Setenv("PATH", dir)
	got = HostMirrors(t.Context())
	check.That(t, got == nil, "a host without apt has %q", got)
}
