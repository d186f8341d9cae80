package diagnose_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"builder/internal/plan/diagnose"
)

// BenchmarkLog reads a long build log without findings, with the embedded catalogue.
func BenchmarkLog(b *testing.B) {
	all, err := diagnose.Load(os.DirFS("../../../diagnoses"), "diagnoses")
	if err != nil {
		b.Fatal(err)
	}
	e := diagnose.NewExaminer(all)
	good, err := os.ReadFile("../../../diagnoses/testdata/good-horovod-build.log")
	if err != nil {
		b.Fatal(err)
	}
	log := bytes.Repeat(good, 16<<20/len(good))
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		if r, err := e.Log(context.Background(), "log", bytes.NewReader(log)); err != nil || len(r.Findings) > 0 {
			b.Fatalf("%d findings, %v", len(r.Findings), err)
		}
	}
}

// BenchmarkLoad measures the startup cost of every command that diagnoses.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		all, err := diagnose.Load(os.DirFS("../../../diagnoses"), "diagnoses")
		if err != nil {
			b.Fatal(err)
		}
		diagnose.NewExaminer(all)
	}
}
