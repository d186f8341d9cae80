package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
)

// Statements finds the statements about artifacts in the places of --from, by digest.
type Statements struct {
	from    []listed
	scratch string
}

// listed is an index with its list.
type listed struct {
	Index
	records []index.Record
}

// OpenStatements opens the places of --from. Files from an index on the network go through
// the store. Statements lie below scratch.
func OpenStatements(ctx context.Context, from []string, kept *store.Store, scratch string) (Statements, error) {
	s := Statements{scratch: scratch}
	for _, text := range from {
		source, err := Open[Index](text, Options{Store: kept})
		if err != nil {
			return s, diag.Errorf(diag.Usage, "--from: %w", err)
		}
		records, err := source.List(ctx)
		if err != nil {
			return s, err
		}
		s.from = append(s.from, listed{source, records})
	}
	return s, nil
}

// Of fetches the statements about an artifact and returns their folder.
func (s Statements) Of(ctx context.Context, a artifact.Artifact) (folder string, err error) {
	var others []string
	for _, at := range s.from {
		for _, r := range at.records {
			if r.SHA256 == a.SHA256 {
				return s.bring(ctx, a, at, r)
			}
			if r.Filename == a.Name {
				others = append(others, fmt.Sprintf("%s has it with sha256 %s", at, r.SHA256))
			}
		}
	}
	if len(others) > 0 {
		return "", diag.Errorf(diag.Gate, "%s has sha256 %s, and %s", a.Name, a.SHA256, strings.Join(others, ", ")).
			WithHint("it is another file of the same name: install the published one by its digest (pip --require-hashes)")
	}
	return "", diag.Errorf(diag.Gate, "%s: no place of --from has a file with its sha256 %s", a.Name, a.SHA256).
		WithHint("name the place where it is published; to examine a wheel of another project, run `builder gate FILE`")
}

// bring fetches the statements of a record about an artifact.
func (s Statements) bring(ctx context.Context, a artifact.Artifact, at listed, r index.Record) (folder string, err error) {
	dir, err := os.MkdirTemp(s.scratch, "*")
	if err != nil {
		return "", err
	}
	said, err := bringStatements(ctx, at, r.Key, dir)
	if err == nil && len(said) == 0 {
		err = errors.New("it has no statements about the file")
	}
	if err != nil && ctx.Err() == nil {
		err = denied(a.Name, at, err)
	}
	return filepath.Join(dir, attest.Dir(r.Filename)), err
}

// denied returns the error of a file that its place does not confirm.
func denied(name string, at fmt.Stringer, err error) error {
	hint := "ask who publishes there, and do not use the file before you know the reason"
	if errors.Is(err, index.ErrYanked) {
		hint = "do not use it; ask its publisher for another version"
	}
	return diag.Errorf(diag.Gate, "%s: %s: %w", name, at, err).WithHint("%s", hint)
}
