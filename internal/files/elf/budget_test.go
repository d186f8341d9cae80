package elf

import (
	"bytes"
	"io"
	"testing"

	"builder/test/kit/check"
)

// zeros is an endless stream, like that of a small hostile container.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A small file unpacks to half a gigabyte at most. The decoders take about 16 ns for a
// byte on a busy core of 2.9 GHz, so that is some seconds (2026-11-27).
func TestASmallFileUnpacksLittle(t *testing.T) {
	m := metered(NewBudget(5247).Reader(t.Context(), bytes.NewReader(nil)))
	unpacked, err := io.Copy(io.Discard, weighed{zeros{}, m, weighUnpacked})
	check.That(t, err != nil && unpacked <= 600<<20, "%d bytes were unpacked, %v", unpacked, err)
}
