package oci

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// orasProgram returns the path of the host's oras. It skips the test or benchmark if
// there is none.
func orasProgram(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("oras")
	if err != nil {
		tb.Skip("oras is not installed")
	}
	return path
}

func runOras(tb testing.TB, dir string, args ...string) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), orasProgram(tb), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("oras %q: %v\n%s", args, err, out)
	}
}

// oras pulls a package pushed here, and a package pushed by oras is readable here.
func TestOrasReadsAndWrites(t *testing.T) {
	oras := orasProgram(t)
	t.Logf("with %s", oras)
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed")
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	host := distribution(t, binary)
	r, err := OpenRepository("oci://"+host+"/ours", Options{retry: quick})
	if err != nil {
		t.Fatal(err)
	}
	p := sample(t, "a")
	digest, _ := push(t, r, p)
	dir := t.TempDir()
	runOras(t, dir, "pull", "--plain-http", host+"/ours@"+digest)
	for _, f := range p.Files {
		if got, err := os.ReadFile(filepath.Join(dir, f.Name)); err != nil || int64(len(got)) != f.Size {
			t.Errorf("%s: %d bytes, %v", f.Name, len(got), err)
		}
	}
	runOras(t, dir, "push", "--plain-http", host+"/ours:theirs", p.Files[0].Name+":application/octet-stream")
	theirs, err := r.Resolve(t.Context(), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Manifest(t.Context(), theirs)
	if err != nil || len(m.Files) != 1 || m.Files[0].Name != p.Files[0].Name || m.Files[0].SHA256 != p.Files[0].SHA256 {
		t.Errorf("%+v, %v", m, err)
	}
}

// BenchmarkAgainstOras pushes and pulls a file of 1 GiB in turns with oras. It reports
// the medians of the ratios of times; below 1 this package is faster.
func BenchmarkAgainstOras(b *testing.B) {
	orasProgram(b)
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		b.Skip("docker-registry is not installed")
	}
	b.Setenv("DOCKER_CONFIG", b.TempDir())
	dir := b.TempDir()
	large := randomFile(b, filepath.Join(dir, "large.bin"), 1<<30)
	timed := func(f func()) float64 { start := time.Now(); f(); return time.Since(start).Seconds() }
	var pushes, pulls []float64
	for b.Loop() {
		host := distribution(b, binary)
		ours, err := OpenRepository("oci://"+host+"/ours", Options{})
		if err != nil {
			b.Fatal(err)
		}
		here, there := filepath.Join(dir, "here"), filepath.Join(dir, "there")
		for _, pulled := range []string{here, there} {
			if err := errors.Join(os.RemoveAll(pulled), os.Mkdir(pulled, 0o755)); err != nil {
				b.Fatal(err)
			}
		}
		var digest string
		steps := []func(){
			func() {
				digest, _, err = ours.Push(b.Context(), Package{ArtifactType: "application/x-large", Files: []File{large}}, nil)
				if err != nil {
					b.Fatal(err)
				}
			},
			func() { runOras(b, dir, "push", "--plain-http", host+"/theirs:v1", "large.bin") },
			func() {
				if err := ours.Fetch(b.Context(), large, here, nil); err != nil {
					b.Fatal(err)
				}
			},
			func() { runOras(b, there, "pull", "--plain-http", host+"/theirs:v1") },
		}
		if len(pushes)%2 == 1 { // alternate the order
			steps[0], steps[1], steps[2], steps[3] = steps[1], steps[0], steps[3], steps[2]
		}
		var took []float64
		for _, step := range steps {
			took = append(took, timed(step))
		}
		push, pull := took[0]/took[1], took[2]/took[3]
		if len(pushes)%2 == 1 {
			push, pull = 1/push, 1/pull
		}
		pushes, pulls = append(pushes, push), append(pulls, pull)
		b.Logf("%s: push %.2f, pull %.2f of oras (%.2f s)", digest, push, pull, took)
	}
	slices.Sort(pushes)
	slices.Sort(pulls)
	b.ReportMetric(pushes[len(pushes)/2], "push/oras")
	b.ReportMetric(pulls[len(pulls)/2], "pull/oras")
}

// randomFile makes an incompressible file.
func randomFile(tb testing.TB, path string, size int64) File {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyN(f, rand.NewChaCha8([32]byte{1}), size); err != nil {
		tb.Fatal(err)
	}
	sum, err := exec.Command("sha256sum", path).Output()
	if err != nil || len(sum) < 64 {
		tb.Fatal(fmt.Errorf("sha256sum: %w", err))
	}
	return File{Path: path, Name: filepath.Base(path), MediaType: "application/octet-stream", SHA256: string(sum[:64]), Size: size}
}
