package app_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/sbomtest"
	"builder/test/kit/wheeltest"
)

// conformance is the folder of the module and the programs that judge the statements.
const conformance = "../../test/conformance"

// Validators that others wrote must accept the statements about an artifact of every
// recipe: its preferred cell, with a small wheel in place of the built one. The test
// needs BUILDER_TEST_CONFORMANCE=1 (make conformance), an index of Python packages and
// the proxy of Go modules, or caches of both.
func TestConformance(t *testing.T) {
	if os.Getenv("BUILDER_TEST_CONFORMANCE") != "1" {
		t.Skip("BUILDER_TEST_CONFORMANCE=1 installs the validators of others; make conformance sets it")
	}
	key, public := newKey(t)
	cells := preferredCells(t)
	v := install(t)
	address, chain := v.authority(t)
	var paths []string
	for _, e := range cells {
		paths = append(paths, sealedCell(t, key, e))
	}
	for i, path := range paths {
		t.Run(cells[i].Recipe, func(t *testing.T) {
			t.Parallel()
			document := signedSBOM(t, path, key)
			v.accepts(t, "conformance", public, path)
			v.accepts(t, "pyspdxtools", "-i", document)
			v.accepts(t, "sbomcheck", "--verbose", "-s", "spdx2", "-c", "ntia", document)
		})
	}
	t.Run("refuses", func(t *testing.T) {
		t.Parallel()
		v.refuses(t, key, cells[0], paths[0], public)
	})
	t.Run("keyless", func(t *testing.T) {
		t.Parallel()
		v.keyless(t, cells[0], address, chain)
	})
	t.Run("published", func(t *testing.T) {
		t.Parallel()
		v.published(t, key, public)
	})
}

// newKey returns a key, and the path of its public half.
func newKey(t *testing.T) (signing.Key, string) {
	t.Helper()
	key, err := signing.NewKey()
	public := filepath.Join(t.TempDir(), "key.pub")
	must.Succeed(t, err, key.Public().Write(public))
	return key, public
}

// preferredCells returns the preferred cell of every recipe with a lock.
func preferredCells(t *testing.T) []lock.Entry {
	t.Helper()
	cat := must.Get(catalogue.Load("", catalogue.Names{Gates: gate.Promises()}))(t)
	var all []lock.Entry
	for _, r := range cat.Recipes {
		drafts := must.Get(assemble.Choose(cat, r, matrix.Filter{}))(t)
		f := must.Get(cat.Locks(t.TempDir()).Read(r.Name))(t)
		entries, err := lock.Assemble(drafts, f, "")
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		all = append(all, entries...)
	}
	return all
}

// sealedCell writes an artifact of a cell, with the libraries that its recipe promises,
// and signs the statements about it. It returns the path of the artifact.
func sealedCell(t *testing.T, key signing.Key, e lock.Entry) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, e.Expect.Tree)
	if e.Expect.Tree != "" {
		must.Succeed(t, os.WriteFile(path, []byte("archive"), 0o600))
	} else {
		path = filepath.Join(dir, strings.ReplaceAll(e.Source.Project, "-", "_")+"-"+cmp.Or(e.Expect.Version, e.Source.Version)+"-py3-none-any.whl")
		writeLinked(t, path, e)
	}
	a := must.Get(artifact.Of(path, e.Key()))(t)
	now := time.Now()
	s := attest.Sealer{Key: key}
	p := attest.NewProvenance(e, attest.Build{
		Builder: attest.Builder{ID: "urn:builder:local", Version: map[string]string{"builder": "1.2.3"}},
		Started: now.Add(-time.Minute), Finished: now, Canary: `{"network":false}`,
	})
	round := attest.NewTestResult([]verdict.Verdict{{Gate: "size", Status: verdict.Pass, Evidence: "right"}}, e.Key(), "1.2.3", nil, now)
	must.Succeed(t, s.Seal([]artifact.Artifact{a}, p), s.AddRound(a, round))
	return path
}

// signedSBOM writes the signed SBOM of an artifact to a file.
func signedSBOM(t *testing.T, path string, key signing.Key) string {
	t.Helper()
	a := must.Get(artifact.Of(path, ""))(t)
	said, err := attest.Read(a, signing.Trust{Keys: []signing.PublicKey{key.Public()}, Now: time.Now()})
	file := filepath.Join(t.TempDir(), "sbom.spdx.json")
	must.Succeed(t, err, os.WriteFile(file, said.SBOM, 0o600))
	return file
}

// writeLinked writes a wheel with its SBOM and a library that needs those of the recipe.
func writeLinked(t *testing.T, path string, e lock.Entry) {
	t.Helper()
	needed := []string{"libc.so.6", "libstdc++.so.6"}
	var promised struct {
		Needed    []string `json:"needed"`
		Forbidden []string `json:"forbidden"`
		Unopened  []string `json:"unopened"`
	}
	must.Succeed(t, e.Expect.Gates.Decode("elf-needed", &promised))
	for _, soname := range promised.Needed {
		needed = append(needed, strings.ReplaceAll(soname, "*", "1"))
	}
	library := elftest.Library{Soname: "x.so", Needed: needed}
	must.Succeed(t, sbomtest.Write(path, e, wheeltest.File{Name: "x/x.so", Text: string(library.Bytes())}))
}

// validators are the programs of others, in a folder.
type validators struct{ bin string }

// install installs the validators: Python programs by digest, and a Go program of
// cosign and in-toto by go.sum.
func install(t *testing.T) validators {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "venv")
	v := validators{filepath.Join(dir, "bin")}
	requirements := must.Get(filepath.Abs(filepath.Join(conformance, "requirements.txt")))(t)
	for _, line := range [][]string{
		{"python3", "-m", "venv", "--without-pip", dir}, // Debian's python3 has no ensurepip
		{"python3", "-m", "pip", "--python", dir, "install", "--quiet", "--require-hashes", "--no-deps", "-r", requirements},
		{"go", "build", "-C", conformance, "-o", filepath.Join(v.bin, "conformance"), "."},
	} {
		out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
		must.Hold(t, err == nil, "%q: %v\n%s", line, err, out)
	}
	return v
}

// authority starts Sigstore's timestamp authority. It returns its address and the file
// of its certificates.
func (v validators) authority(t *testing.T) (address, chain string) {
	t.Helper()
	address = v.serves(t, "tsa")
	resp := must.Get(http.Get(address + "/certchain"))(t)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	chain = filepath.Join(t.TempDir(), "tsa.pem")
	err = errors.Join(err, os.WriteFile(chain, data, 0o600))
	must.Hold(t, err == nil && resp.StatusCode == http.StatusOK, "%v %v", resp.Status, err)
	return address, chain
}

// roots writes a trusted_root.json with the certificates of a timestamp authority, and of
// a CA if there is one. It returns the path.
func (v validators) roots(t *testing.T, chain string, ca ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	out, ok := v.run(t, "conformance", append([]string{"roots", file, chain}, ca...)...)
	must.Hold(t, ok, "%v", out)
	return file
}

// serves starts a server of the conformance program and returns its address.
func (v validators) serves(t *testing.T, args ...string) (address string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(v.bin, "conformance"), args...) // it ends with its input
	in := must.Get(cmd.StdinPipe())(t)
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err, cmd.Start())
	t.Cleanup(func() {
		err := errors.Join(in.Close(), cmd.Wait())
		check.That(t, err == nil, "%v", err)
	})
	must.Get(fmt.Fscanln(out, &address))(t)
	return address
}

// keyless signs with certificates of a real Fulcio for a job of a workflow. builder and
// cosign accept the right identity, and refuse others by name.
func (v validators) keyless(t *testing.T, e lock.Entry, stamps, chain string) {
	t.Helper()
	ca, other := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "other.pem")
	fulcio := v.serves(t, "fulcio", ca)
	v.serves(t, "fulcio", other)
	_, otherChain := v.authority(t)
	const workflow = "example/wheels/.github/workflows/build.yml@refs/heads/main"
	job := map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": fulcio + "/token?workflow=" + workflow, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of-the-job"}
	services := signing.Services{Fulcio: fulcio, Timestamp: stamps}
	key := must.Get(signing.Keyless(services, signing.Token(func(name string) string { return job[name] })))(t)
	path := sealedCell(t, key, e)
	subject := "https://github.com/" + workflow
	roots := v.roots(t, chain, ca)
	v.accepts(t, "conformance", "--roots", roots, "identity", fulcio, subject, path)
	for _, c := range []struct{ issuer, subject, roots, path, want, cosign string }{
		{fulcio, subject, roots, path, "", ""},
		{fulcio, subject + "2", roots, path, "an untrusted key signed it: " + subject + " of " + fulcio, "certificate identity"},
		{stamps, subject, roots, path, "an untrusted key signed it: " + subject + " of " + fulcio, "certificate identity"},
		{fulcio, subject, v.roots(t, chain, other), path, "failed to verify leaf certificate", "leaf certificate"},
		{fulcio, subject, v.roots(t, otherChain, ca), path, "threshold not met for verified signed timestamps", "timestamp"},
	} {
		file := filepath.Join(t.TempDir(), "trust.yaml")
		text := "keys:\n  - {issuer: \"" + c.issuer + "\", subject: \"" + c.subject + "\", roots: " + c.roots + "}\n"
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
		keys := must.Get(signing.ReadTrusted(file))(t)
		trust := signing.Trust{Keys: keys, Now: time.Now().AddDate(1, 0, 0)}
		a := must.Get(artifact.Of(c.path, ""))(t)
		b, err := attest.Read(a, trust)
		if (err == nil) != (c.want == "") || (len(b.Documents) > 0) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %d statements, %v", c, len(b.Documents), err)
		}
		out, ok := v.run(t, "conformance", "--roots", c.roots, "identity", c.issuer, c.subject, c.path)
		check.That(t, ok == (c.want == "") && strings.Contains(out, c.cosign), "cosign: %+v: %s", c, out)
	}
	job["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = "of-another-job"
	stranger, err := signing.Keyless(services, signing.Token(func(name string) string { return job[name] }))
	if err == nil {
		_, err = signing.Sign(stranger, []byte("{}"))
	}
	check.Fails(t, err, "401", "without a token")
}

// run runs a validator and returns its output and whether it accepted.
func (v validators) run(t *testing.T, name string, args ...string) (string, bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(v.bin, name), args...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out), err == nil
}

// accepts requires that a validator accepts, without a warning.
func (v validators) accepts(t *testing.T, name string, args ...string) {
	t.Helper()
	out, ok := v.run(t, name, args...)
	if !ok || strings.Contains(out, "WARNING") || strings.Contains(out, "ERROR") {
		t.Errorf("%s %q:\n%s", name, args, out)
		return
	}
	t.Logf("%s %q:\n%s", name, args, out)
}

// refuses requires that the validators refuse what is wrong. A validator that accepts
// everything proves nothing.
func (v validators) refuses(t *testing.T, key signing.Key, e lock.Entry, path, public string) {
	t.Helper()
	changed := func(was, is string) string {
		t.Helper()
		document := signedSBOM(t, path, key)
		data := must.Get(os.ReadFile(document))(t)
		bad := bytes.ReplaceAll(data, []byte(was), []byte(is))
		must.Hold(t, !bytes.Equal(bad, data) && os.WriteFile(document, bad, 0o600) == nil, "%q is not in the SBOM", was)
		return document
	}
	for what, line := range map[string][]string{
		"an unknown relationship": {"pyspdxtools", "-i", changed(`"GENERATED_FROM"`, `"MADE_FROM"`)},
		"suppliers are missing":   {"sbomcheck", "-s", "spdx2", "-c", "ntia", changed(`"supplier"`, `"comment2"`)},
	} {
		out, ok := v.run(t, line[0], line[1:]...)
		check.That(t, !ok, "%s: %q accepts:\n%s", what, line, out)
	}
	other := sealedCell(t, key, e)
	must.Succeed(t, os.WriteFile(other, []byte("other bytes"), 0o600))
	out, ok := v.run(t, "conformance", public, other)
	check.That(t, !ok && strings.Contains(out, "cosign: "), "other bytes: %s", out)
	_, stranger := newKey(t)
	out, ok = v.run(t, "conformance", stranger, path)
	check.That(t, !ok && strings.Contains(out, "cosign: "), "another key: %s", out)
}
