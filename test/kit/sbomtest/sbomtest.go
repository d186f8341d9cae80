// Package sbomtest makes wheels with an SBOM of their cell, as a build does, for tests.
package sbomtest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"builder/internal/evidence/sbom"
	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
	"builder/test/kit/wheeltest"
)

// Write writes a wheel of a cell with these files and its SBOM.
func Write(path string, e lock.Entry, files ...wheeltest.File) error {
	raw := wheeltest.Wheel{Name: filepath.Base(path), Files: files}
	if err := os.WriteFile(path, raw.Bytes(), 0o600); err != nil {
		return err
	}
	w, err := wheel.Open(path)
	if err != nil {
		return err
	}
	defer w.Close()
	spdx, err := sbom.Of(e, w)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = wheel.Normalise(&out, w, wheel.Options{Replace: map[string][]byte{w.DistInfo + "/" + sbom.Member: spdx}})
	return errors.Join(err, os.WriteFile(path, out.Bytes(), 0o644))
}
