package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
)

// A found is an artifact, the folder of its statements, and the checks of its
// installation.
type found struct {
	artifact.Artifact
	statements string
	shown      artifact.Artifact // as the user knows it
	checks     []attest.Check
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
	VerifyRequest
	trust   signing.Trust
	all     []place
	scratch string
}

// A place is a source with its list.
type place struct {
	publish.Source
	records []index.Record
}

// places opens the places of a request.
func (s *Session) places(ctx context.Context, r VerifyRequest, trust signing.Trust, scratch string) (*places, error) {
	kept, err := store.Open(filepath.Join(s.Home, "store"))
	if err != nil {
		return nil, err
	}
	p := &places{VerifyRequest: r, trust: trust, scratch: scratch}
	for _, text := range r.From {
		source, err := publish.OpenSource(text, false, kept)
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

// dir makes a directory for one artifact.
func (p *places) dir() (string, error) { return os.MkdirTemp(p.scratch, "*") }

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
	dir, err := p.dir()
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

// installed fetches the wheel of an installed distribution with its statements, and
// compares both. If several wheels are candidates, the one with the same files counts.
func (p *places) installed(ctx context.Context, name string) (found, error) {
	in, err := wheel.FindInstalled(p.Env, name)
	if err != nil {
		return found{}, err
	}
	candidates := p.candidates(in)
	if len(candidates) == 0 {
		return found{}, diag.Errorf(diag.Gate, "no place of --from has %s %s", in.Project, in.Version).WithHint("name the place where it is published")
	}
	var best found
	var errs []error
	for _, c := range candidates {
		f, err := p.fetched(ctx, c, in)
		if ctx.Err() != nil {
			return found{}, context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if attest.Passed(f.checks) {
			return f, nil
		}
		if best.Path == "" {
			best = f
		}
	}
	if best.Path == "" {
		return found{}, errors.Join(errs...)
	}
	return best, nil
}

// A candidate is a published wheel that can be the one that was installed.
type candidate struct {
	index.Record
	from place
}

// candidates lists the published wheels of the installed version: those with its tags,
// or all if there is none.
func (p *places) candidates(in wheel.Installed) []candidate {
	var tagged, all []candidate
	for _, at := range p.all {
		for _, r := range at.records {
			n, err := wheel.ParseName(r.Filename)
			if err != nil || wheel.NormalName(n.Distribution) != in.Project || !n.HasVersion(in.Version) {
				continue
			}
			if slices.ContainsFunc(all, func(c candidate) bool { return c.SHA256 == r.SHA256 }) {
				continue
			}
			all = append(all, candidate{r, at})
			if slices.Equal(n.Tags(), in.Tags) {
				tagged = append(tagged, candidate{r, at})
			}
		}
	}
	if len(tagged) > 0 {
		return tagged
	}
	return all
}

// fetched fetches a published wheel and compares the installation with it.
func (p *places) fetched(ctx context.Context, c candidate, in wheel.Installed) (found, error) {
	dir, err := p.dir()
	if err != nil {
		return found{}, err
	}
	path, err := c.from.Bring(ctx, c.Key, dir, publish.Vet(c.Key, p.trust, p.Policy))
	if err != nil {
		if diag.CodeOf(err) != diag.Gate {
			if errors.Is(err, publish.ErrYanked) {
				return found{}, denied(c.Filename, c.from, err)
			}
			err = diag.Errorf(diag.Fetch, "fetching %s from %s: %w", c.Filename, c.from, err).
				WithHint("ask the publisher of that place, or name another place with --from")
		}
		return found{}, err
	}
	a, err := artifact.Of(path, "")
	if err != nil {
		return found{}, err
	}
	w, err := wheel.Open(path)
	if err != nil {
		return found{}, diag.Errorf(diag.Gate, "%w", err)
	}
	defer w.Close()
	seen, err := w.Compare(ctx, in)
	if err != nil {
		return found{}, diag.Errorf(diag.Gate, "%s: %w", in.Info, err)
	}
	check := attest.Check{
		Name: "installed", Wrong: seen.Wrong,
		Seen: fmt.Sprintf("%d files of %s are those of the wheel; not compared: %d, such as bytecode and programs made by the installer", seen.Same, filepath.Base(in.Info), seen.NotCompared),
	}
	if len(check.Wrong) > 0 {
		line := pypi.File{Project: in.Project, Version: in.Version, SHA256: a.SHA256}.Exact()
		check.Remedy = fmt.Sprintf("install it again by its digest: put the line `%s` into a file and run pip install --force-reinstall --no-deps --require-hashes -r FILE, from the index that you use", line)
	}
	f := foundAt(a, in.Info)
	f.checks = []attest.Check{check}
	return f, nil
}
