package attest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/artifact"
	"builder/internal/gate"
	"builder/internal/gpu"
)

func wheel(t *testing.T, content string) artifact.Artifact {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nccl.whl")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Of(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWriteAndRead(t *testing.T) {
	a := wheel(t, "bytes")
	if _, err := Read(a); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	s := Statement{Builder: "v1", Host: &gpu.Host{Driver: "580"}, Verdicts: []gate.Verdict{{Gate: "transport", Status: gate.Fail, Evidence: "a < b", Remedy: "c", Seconds: 1.5}}}
	if err := Write(a, s); err != nil {
		t.Fatal(err)
	}
	got, err := Read(a)
	if err != nil {
		t.Fatal(err)
	}
	s.Schema, s.Subject = Schema, Subject{"nccl.whl", a.SHA256}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Errorf("(-written +read)\n%s", diff)
	}
	first, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := got.Encode(); err != nil || string(first) != string(again) || !strings.Contains(string(first), "a < b") {
		t.Errorf("the bytes differ for the same content: %s", again)
	}
	if left, err := os.ReadDir(filepath.Dir(a.Path)); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestReadRefuses(t *testing.T) {
	a := wheel(t, "bytes")
	if err := Write(a, Statement{}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(Path(a.Path))
	if err != nil {
		t.Fatal(err)
	}
	for says, text := range map[string]string{
		"unexpected EOF":        string(whole[:20]),
		"more than one":         string(whole) + "{}",
		"schema 2":              strings.Replace(string(whole), `"schema": 1`, `"schema": 2`, 1),
		"unknown field":         strings.Replace(string(whole), `"builder"`, `"signature"`, 1),
		"is there twice":        strings.Replace(string(whole), `[]`, `[{"gate": "a", "status": "pass"}, {"gate": "a", "status": "fail"}]`, 1),
		"unknown verdict":       strings.Replace(string(whole), `[]`, `[{"gate": "a", "status": "great"}]`, 1),
		"speaks of other bytes": strings.Replace(string(whole), a.SHA256, strings.Repeat("0", 64), 1),
	} {
		if err := os.WriteFile(Path(a.Path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(a); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

func TestMismatchNamesBothDigests(t *testing.T) {
	a := wheel(t, "bytes")
	if err := Write(a, Statement{}); err != nil {
		t.Fatal(err)
	}
	b := a
	b.SHA256 = "1234"
	_, err := Read(b)
	m, ok := errors.AsType[*Mismatch](err)
	if !ok || m.Stated != a.SHA256 || m.Found != "1234" || !strings.Contains(err.Error(), a.SHA256) || !strings.Contains(err.Error(), "1234") {
		t.Errorf("got %v", err)
	}
}

func TestMerge(t *testing.T) {
	v := func(name string, s gate.Status) gate.Verdict { return gate.Verdict{Gate: name, Status: s} }
	older := []gate.Verdict{v("a", gate.Pass), v("b", gate.Fail), v("c", gate.NotMeasured), v("d", gate.Pass)}
	newer := []gate.Verdict{v("c", gate.Pass), v("b", gate.NotMeasured), v("a", gate.Fail), v("e", gate.NotMeasured)}
	want := []gate.Verdict{v("c", gate.Pass), v("b", gate.Fail), v("a", gate.Fail), v("e", gate.NotMeasured), v("d", gate.Pass)}
	if diff := cmp.Diff(want, Merge(older, newer)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if older[0].Status != gate.Pass || newer[1].Status != gate.NotMeasured {
		t.Error("what was merged has changed")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"schema": 1, "subject": {"name": "a", "sha256": "b"}, "builder": "v", "verdicts": [{"gate": "a", "status": "pass"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := decode(strings.NewReader(text))
		if err != nil {
			return
		}
		if _, err := s.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}
