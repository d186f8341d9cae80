package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
)

// A found is an artifact, and the folder of its statements.
type found struct {
	artifact.Artifact
	statements string
	shown      artifact.Artifact // as the user knows it
}

// foundAt returns an artifact that has its statements beside it. at is its path as the
// user knows it.
func foundAt(a artifact.Artifact, at string) found {
	f := found{Artifact: a, statements: attest.Dir(a.Path), shown: a}
	f.shown.Path = at
	return f
}

// places are the places of --from, which have the statements of artifacts.
type places struct {
	all     []place
	scratch string
}

// A place is an index with its list.
type place struct {
	publish.Index
	records []index.Record
}

// openPlaces opens the places of --from. An index on the network uses the store of the home
// dir.
func openPlaces(ctx context.Context, dir string, from []string, scratch string) (*places, error) {
	kept, err := store.Open(home.StoreDir(dir))
	if err != nil {
		return nil, err
	}
	p := &places{scratch: scratch}
	for _, text := range from {
		source, err := publish.OpenIndex(text, kept)
		if err != nil {
			return nil, diag.Errorf(diag.Usage, "--from: %w", err)
		}
		records, err := source.List(ctx)
		if err != nil {
			return nil, err
		}
		p.all = append(p.all, place{source, records})
	}
	return p, nil
}

// statements fetches the statements about an artifact, by its digest.
func (p *places) statements(ctx context.Context, a artifact.Artifact) (found, error) {
	var others []string
	for _, at := range p.all {
		for _, r := range at.records {
			if r.SHA256 == a.SHA256 {
				return p.with(ctx, a, at, r)
			}
			if r.Filename == a.Name {
				others = append(others, fmt.Sprintf("%s has it with sha256 %s", at, r.SHA256))
			}
		}
	}
	if len(others) > 0 {
		return found{}, diag.Errorf(diag.Gate, "%s has sha256 %s, and %s", a.Name, a.SHA256, strings.Join(others, ", ")).
			WithHint("it is another file of the same name: install the published one by its digest (pip --require-hashes)")
	}
	return found{}, diag.Errorf(diag.Gate, "%s: no place of --from has a file with its sha256 %s", a.Name, a.SHA256).
		WithHint("name the place where it is published; to examine a wheel of another project, run `builder gate FILE`")
}

// with fetches the statements of a record about an artifact.
func (p *places) with(ctx context.Context, a artifact.Artifact, at place, r index.Record) (found, error) {
	dir, err := os.MkdirTemp(p.scratch, "*")
	if err != nil {
		return found{}, err
	}
	said, err := publish.BringStatements(ctx, at, r.Key, dir)
	if err == nil && len(said) == 0 {
		err = errors.New("it has no statements about the file")
	}
	if err != nil && ctx.Err() == nil {
		err = denied(a.Name, at, err)
	}
	f := foundAt(a, a.Path)
	f.statements = filepath.Join(dir, attest.Dir(r.Filename))
	return f, err
}

// denied returns the error of a file that its place does not confirm.
func denied(name string, at fmt.Stringer, err error) error {
	hint := "ask who publishes there, and do not use the file before you know the reason"
	if errors.Is(err, publish.ErrYanked) {
		hint = "do not use it; ask its publisher for another version"
	}
	return diag.Errorf(diag.Gate, "%s: %s: %w", name, at, err).WithHint("%s", hint)
}
