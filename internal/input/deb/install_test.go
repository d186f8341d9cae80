package deb

import (
	"os/exec"
	"strings"
	"testing"

	"builder/test/kit/check"
)

// named returns a package with a name and a version.
func named(name, version string, bootstrap bool) Package {
	return Package{Name: name, Version: version, Path: "pool/main/x/" + name + "_" + version + "_amd64.deb", Bootstrap: bootstrap}
}

// lines returns the script's lines with text in them.
func lines(script, text string) []string {
	var found []string
	for line := range strings.Lines(script) {
		if strings.Contains(line, text) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestInstallScript(t *testing.T) {
	script := InstallScript([]Package{named("zlib", "1.3", true), named("apt", "3.0+b1~x", true), named("g++", "14", false)}, "/debs")
	if got, want := lines(script, "dpkg --force"), "dpkg --force-depends --force-confnew --install '/debs/zlib_1.3_amd64.deb' '/debs/apt_3.0+b1~x_amd64.deb'"; len(got) != 1 || got[0] != want {
		t.Errorf("bootstrap: got %q, want %q", got, want)
	}
	if got, want := lines(script, "--no-remove"), "'/debs/zlib_1.3_amd64.deb' '/debs/apt_3.0+b1~x_amd64.deb' '/debs/g++_14_amd64.deb'"; len(got) != 1 || !strings.HasSuffix(got[0], "--allow-downgrades "+want) {
		t.Errorf("all: got %q, want %q", got, want)
	}
	check.That(t, strings.Contains(script, "<< 'WANT'\napt 3.0+b1~x\ng++ 14\nzlib 1.3\nWANT\n"),
		"the list is not there, sorted, as what is wanted")
	found := lines(script, "@")
	check.That(t, len(found) == 0, "not filled in: %q", found)
	check.That(t, !strings.Contains(script, "://"), "the script names an address")
}

// Packages to unpack are laid beside the installed ones: neither dpkg nor the final
// comparison knows them.
func TestInstallScriptUnpacks(t *testing.T) {
	loose := named("nvcc", "12.4", false)
	loose.Unpack = true
	script := InstallScript([]Package{named("zlib", "1.3", true), loose}, "/debs")
	if got, want := lines(script, "nvcc"), "for file in '/debs/nvcc_12.4_amd64.deb'; do"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInstallScriptIsAShellScript(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	cmd := exec.Command(sh, "-n")
	cmd.Stdin = strings.NewReader(InstallScript([]Package{named("it's", "$(1)", true), named("b", "2", false)}, "/a 'b'"))
	out, err := cmd.CombinedOutput()
	check.That(t, err == nil, "%v: %s", err, out)
}

// A package name in the form of a placeholder is not replaced.
func TestInstallScriptFillsInOnce(t *testing.T) {
	script := InstallScript([]Package{named("@ALL@", "@WANT@", false)}, "@BOOTSTRAP@")
	if !strings.Contains(script, "'@BOOTSTRAP@/@ALL@_@WANT@_amd64.deb'") || !strings.Contains(script, "\n@ALL@ @WANT@\n") {
		t.Errorf("got %q", lines(script, "@"))
	}
}
