package deb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const (
	mirror = "http://mirror.example/debian/"
	sum    = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
)

// uri is a line in the format of apt-get --print-uris.
func uri(pool, name string) string {
	return "'" + mirror + pool + "' " + name + " 463104 SHA256:" + sum + "\n"
}

func TestParseURIs(t *testing.T) {
	text := uri("pool/main/m/make-dfsg/make_4.4.1-2_amd64.deb", "make_4.4.1-2_amd64.deb") + "\n" +
		uri("pool/main/g/gcc/g%2b%2b_14%7e1_amd64.deb", "g++_4%3a14~1_amd64.deb") +
		" " + uri("pool/main/a/adduser/adduser_3.152_all.deb", "adduser_3.152_all.deb")
	got := must.Get(parseURIs(text, mirror))(t)
	want := []Package{
		{Name: "make", Version: "4.4.1-2", Architecture: "amd64", Path: "pool/main/m/make-dfsg/make_4.4.1-2_amd64.deb", Size: 463104, SHA256: sum},
		{Name: "g++", Version: "4:14~1", Architecture: "amd64", Path: "pool/main/g/gcc/g++_14~1_amd64.deb", Size: 463104, SHA256: sum},
		{Name: "adduser", Version: "3.152", Architecture: "all", Path: "pool/main/a/adduser/adduser_3.152_all.deb", Size: 463104, SHA256: sum},
	}
	check.Same(t, "packages", want, got)
}

func TestParseURIsRefuses(t *testing.T) {
	good := uri("pool/x_1_all.deb", "x_1_all.deb")
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"\n \n", "apt printed no packages"},
		"chatter":        {"Reading package lists...\n" + good, `a line without a package: "Reading package lists..."`},
		"another digest": {strings.Replace(good, "SHA256:", "MD5Sum:", 1), "a line without a package"},
		"short digest":   {strings.Replace(good, sum, sum[1:], 1), "a line without a package"},
		"no version":     {uri("pool/x_all.deb", "x_all.deb"), "a line without a package"},
		"no .deb":        {uri("pool/x_1_all.udeb", "x_1_all.udeb"), "a line without a package"},
		"two in a line":  {strings.TrimSpace(good) + " " + good, "a line without a package"},
		"another host":   {strings.Replace(good, "mirror.example", "evil.example", 1), "the address of package x is not below the mirror"},
		"host's cousin":  {strings.Replace(good, "debian/", "debian-evil/", 1), "the address of package x is not below the mirror"},
		"bad escape":     {uri("pool/%zz_1_all.deb", "x_1_all.deb"), `package x: invalid URL escape "%zz"`},
		"bad version":    {uri("pool/x_1_all.deb", "x_%_all.deb"), "package x: invalid URL escape"},
		"size":           {strings.Replace(good, "463104", "99999999999999999999", 1), "package x: "},
		"after a good":   {good + "'", "a line without a package"},
	} {
		got, err := parseURIs(c.text, mirror)
		check.That(t, err != nil && got == nil && strings.Contains(err.Error(), c.want),
			"%s: got %v, %v; want an error with %q", name, got, err, c.want)
	}
}

func TestFaultLines(t *testing.T) {
	for text, want := range map[string]string{
		"W: old\nE: Unable to locate package x\n  E: And another\n": "Unable to locate package x; And another",
		"\nexec format error\n": "exec format error",
		"":                      "",
	} {
		check.Same(t, text, want, faultLines(text).Error())
	}
}

var request = Request{
	Mirror: "http://mirror.example/debian", Packages: []string{"extra"}, Unpack: []string{"nvcc/sid"},
	Suites: []Suite{
		{Name: "trixie", Components: []string{"main", "contrib"}},
		{Name: "bookworm", Components: []string{"main"}, Priority: 100},
		{Name: "sid", Components: []string{"main"}, Stale: true},
	},
}

func TestAptIsIsolated(t *testing.T) {
	a := &apt{dir: "/scratch/apt-1", main: "trixie", base: mirror}
	files := a.files(request)
	const options = "deb [arch=amd64 signed-by=" + keyring
	const from, old = options + "] " + mirror, options + " check-valid-until=no] " + mirror
	if got, want := files["etc/sources.list"], from+" trixie main contrib\n"+from+" bookworm main\n"+old+" sid main\n"; got != want {
		t.Errorf("sources: got %q, want %q", got, want)
	}
	if got, want := files["etc/preferences"], "Package: *\nPin: release n=bookworm\nPin-Priority: 100\n\n"; got != want {
		t.Errorf("pins: got %q, want %q", got, want)
	}
	conf := files["apt.conf"]
	for _, want := range []string{
		`Dir "/scratch/apt-1";`, `APT::Architecture "amd64"; APT::Architectures { "amd64"; };`, `APT::Install-Recommends "false";`,
		`Dir::State::Status "/scratch/apt-1/status";`, `Dir::Etc::SourceParts "/scratch/apt-1/none";`, `Acquire::ForceHash "SHA256";`,
	} {
		check.That(t, strings.Contains(conf, want), "apt.conf lacks %s:\n%s", want, conf)
	}
	status, ok := files["status"]
	check.That(t, ok && status == "", "something counts as installed: %q", status)
}

// fakeApt replaces apt-get with a program that prints a file of dir: update for apt-get
// update, loose for apt-get download, all if the package extra is requested, minimal otherwise.
func fakeApt(t *testing.T, answers map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	const program = `#!/bin/sh
echo "$@" >> "$ANSWERS/calls"
test -f "$APT_CONFIG" || { echo "E: no configuration" >&2; exit 100; }
case "$*" in
update*) cat "$ANSWERS/update" >&2; test ! -s "$ANSWERS/update"; exit;;
*download*) file=$ANSWERS/loose;;
*extra*) file=$ANSWERS/all;;
*) file=$ANSWERS/minimal;;
esac
test -f "$file" || { echo "W: a warning" >&2; echo "E: Unable to locate package" >&2; exit 100; }
cat "$file"
`
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte(program), 0o755))
	answers["update"] += ""
	for name, text := range answers {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("ANSWERS", dir)
	return dir
}

func resolved(t *testing.T, answers map[string]string) ([]Package, string, error) {
	t.Helper()
	if _, err := os.Stat(keyring); err != nil {
		t.Skip("needs the Debian archive keyring")
	}
	dir, scratch := fakeApt(t, answers), t.TempDir()
	packages, err := Resolve(t.Context(), scratch, request)
	left, _ := os.ReadDir(scratch)
	check.That(t, len(left) == 0, "left behind: %v", left)
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	return packages, string(calls), err
}

func TestResolve(t *testing.T) {
	zlib, apt, extra := uri("pool/z/zlib_1_amd64.deb", "zlib_1_amd64.deb"), uri("pool/a/apt_3_amd64.deb", "apt_3_amd64.deb"), uri("pool/e/extra_2_all.deb", "extra_2_all.deb")
	packages, calls, err := resolved(t, map[string]string{"minimal": zlib + apt, "all": zlib + extra + apt, "loose": uri("pool/n/nvcc_12_amd64.deb", "nvcc_12_amd64.deb")})
	must.Succeed(t, err)
	var got []string
	for _, p := range packages {
		line := p.Name
		if p.Bootstrap {
			line += " bootstrap"
		}
		if p.Unpack {
			line += " unpack"
		}
		got = append(got, line)
	}
	check.Same(t, "packages", []string{"apt bootstrap", "extra", "nvcc unpack", "zlib bootstrap"}, got)
	const question = "-qq --print-uris --yes install apt ?narrow(?codename(trixie),?essential) ?narrow(?codename(trixie),?priority(required))"
	want := "update -o Acquire::Retries=3 --error-on=any\n" + question + "\n" + question + " extra\n-qq --print-uris download nvcc/sid\n"
	check.Same(t, "apt-get was asked", want, calls)
}

func TestResolveReports(t *testing.T) {
	one := uri("pool/x_1_all.deb", "x_1_all.deb")
	for name, c := range map[string]struct {
		answers map[string]string
		code    diag.Code
		want    string
	}{
		"no index":          {map[string]string{"update": "E: Failed to fetch InRelease\n"}, diag.Fetch, "reading the package indexes: Failed to fetch InRelease"},
		"an old index":      {map[string]string{"update": "E: Release file for x is expired (invalid since 15d)\n"}, diag.Fetch, "is expired"},
		"no minimal set":    {map[string]string{"all": one}, diag.Usage, "resolving packages: Unable to locate package"},
		"no such package":   {map[string]string{"minimal": one}, diag.Usage, "resolving packages: Unable to locate package"},
		"a strange answer":  {map[string]string{"minimal": one, "all": "Reading…\n"}, diag.Unexpected, `a line without a package: "Reading…"`},
		"nothing to unpack": {map[string]string{"minimal": one, "all": one}, diag.Usage, "resolving packages to unpack: Unable to locate package"},
		"no answer":         {map[string]string{"minimal": ""}, diag.Unexpected, "apt printed no packages"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := resolved(t, c.answers)
			check.That(t, got == nil && diag.CodeOf(err) == c.code && strings.Contains(err.Error(), c.want),
				"got %v, class %v: %v", got, diag.CodeOf(err), err)
			if all := diag.All(err); name == "an old index" && !strings.Contains(all[0].Hint, "stale: true") {
				t.Errorf("hint %q", all[0].Hint)
			}
		})
	}
}

func TestResolveIsCancelled(t *testing.T) {
	fakeApt(t, map[string]string{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &apt{dir: t.TempDir()}
	_, err := a.run(ctx, "update")
	check.That(t, errors.Is(err, context.Canceled), "got %v", err)
}

func TestResolveNeedsApt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Resolve(t.Context(), t.TempDir(), request)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "this host has no apt"), "got %v", err)
}
