// Package publish decides whether an artifact may be published. The artifact is a
// wheel, or an archive of a source tree if the recipe makes no wheel. It must come with
// every file made beside it and every statement about it, all verified, and with the
// verdicts required by its channel. Only [Load] makes a [Bundle], so other files cannot
// even be passed to a destination. The packages index, oci and upload implement the
// storage.
//
// This package never builds and never runs a gate.
package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/publishing/index"
)

// A Bundle is a verified artifact, ready for publishing.
type Bundle struct {
	Wheel    artifact.Artifact   // or the archive in its place
	Beside   []artifact.Artifact // other files of the cell
	Said     []attest.Document   // verified statements
	Entry    lock.Entry
	Verdicts []verdict.Verdict

	project, version, requiresPython string
	metadata                         []byte
	name                             wheel.Name // empty for an archive
}

// Load verifies a wheel by the policy of a channel, and finds the files that belong to
// it. It reports all problems of the verification together, as class diag.Gate.
func Load(path string, trust signing.Trust, policy attest.Policy) (Bundle, error) {
	a, err := artifact.Of(path, "")
	if err != nil {
		return Bundle{}, diag.Errorf(diag.Usage, "%w", err)
	}
	said, checks := attest.Verify(a, trust, policy)
	if err := attest.Faults(a.Name, checks); err != nil {
		return Bundle{}, err
	}
	if err := whole(a, said); err != nil {
		return Bundle{}, err
	}
	b := Bundle{
		Wheel: a, Beside: said.Beside, Entry: said.Provenance.Definition.Internal.Entry,
		Said: said.Documents, Verdicts: said.Judged(trust.Now),
	}
	b.Wheel.Key = b.Entry.Key()
	return b, b.readMetadata()
}

// whole returns an error if another file in the provenance is missing beside the
// artifact. A cell is published as a whole.
func whole(a artifact.Artifact, said attest.Bundle) error {
	var errs []error
	for _, s := range said.Artifacts {
		sum := s.Digest["sha256"]
		if sum != a.SHA256 && !slices.ContainsFunc(said.Beside, func(b artifact.Artifact) bool { return b.SHA256 == sum }) {
			errs = append(errs, diag.Errorf(diag.Publish, "cannot publish %s: %s is missing", a.Name, s.Name).
				WithHint("publish all files of a cell together: give the directory that the run wrote"))
		}
	}
	return errors.Join(errs...)
}

// maxMetadata limits METADATA, in bytes.
const maxMetadata = 16 << 20

// isTree reports whether the artifact is an archive, which cannot be installed.
func (b Bundle) isTree() bool { return b.Entry.Expect.Tree != "" }

func (b *Bundle) readMetadata() error {
	if tree := b.Entry.Expect.Tree; tree != "" {
		if b.Wheel.Name != tree {
			return diag.Errorf(diag.Publish, "%s has the wrong name: its entry promises %s", b.Wheel.Name, tree)
		}
		b.project, b.version = wheel.NormalName(b.Entry.Recipe), b.Entry.Expect.Version
		return nil
	}
	w, err := wheel.Open(b.Wheel.Path)
	if err != nil {
		return diag.Errorf(diag.Publish, "reading %s: %w", b.Wheel.Name, err)
	}
	defer w.Close()
	if b.metadata, err = w.ReadFile(w.DistInfo+"/METADATA", maxMetadata); err != nil {
		return diag.Errorf(diag.Publish, "reading %s: %w", b.Wheel.Name, err)
	}
	b.project, b.name = wheel.NormalName(w.Metadata.Get("Name")), w.Name
	b.version, b.requiresPython = w.Metadata.Get("Version"), w.Metadata.Get("Requires-Python")
	return nil
}

// publication returns the bundle as a publication for a directory index.
func (b Bundle) publication(channel string) index.Publication {
	beside := map[string]artifact.Artifact{}
	for _, a := range b.Beside {
		beside[a.Name] = a
	}
	folder := filepath.Base(attest.Dir(b.Wheel.Name))
	var signers []string
	for _, d := range b.Said {
		beside[folder+"/"+d.Name], signers = d.Artifact, append(signers, d.Signer)
	}
	gates, evidence := map[string]string{}, map[string]string{}
	for _, v := range b.Verdicts {
		gates[v.Gate], evidence[v.Gate] = v.Status.String(), v.Evidence
	}
	return index.Publication{
		Wheel: b.Wheel, Metadata: b.metadata, Beside: beside,
		Record: index.Record{
			Project: b.project, Version: b.version, RequiresPython: b.requiresPython,
			Cell: b.Entry.ID, Key: b.Entry.Key(), Recipe: b.Entry.Recipe, Axes: b.Entry.Axes,
			Gates: gates, Evidence: evidence, Channels: []string{channel}, Signers: signers,
		},
	}
}

// Channel returns the policy of a channel. A channel has the name of its policy.
func Channel(name string) (attest.Policy, error) {
	if !slices.Contains(attest.Policies(), name) {
		return "", diag.Errorf(diag.Usage, "%q is not a channel", name).WithHint("%s", diag.DidYouMean(name, attest.Policies()))
	}
	return attest.Policy(name), nil
}

// Promote puts a published cell into another channel if its signed statements allow it.
// It builds nothing and changes no byte.
//
// already reports that the channel had the cell before.
func Promote(ctx context.Context, at Catalogue, cell string, channel attest.Policy, trust signing.Trust) (receipt Receipt, already bool, err error) {
	r, err := at.Find(ctx, cell)
	if err != nil {
		return Receipt{}, false, err
	}
	scratch, err := os.MkdirTemp("", "builder-promote-*")
	if err != nil {
		return Receipt{}, false, err
	}
	defer os.RemoveAll(scratch)
	b, err := Take(ctx, at, r.Key, scratch, trust, channel)
	if err == nil && b.Entry.ID != cell && b.Entry.Key() != cell {
		err = fmt.Errorf("the destination names it %s, but the signed entry names it %s", cell, b.Entry.ID)
	}
	if err != nil && diag.CodeOf(err) != diag.Gate {
		failed := diag.Errorf(diag.Publish, "promoting %s: %w", r.Cell, err)
		switch {
		case errors.Is(err, index.ErrYanked):
			failed = failed.WithHint("`builder publish yank %s --at %s --undo` removes the mark", r.Cell, at)
		case errors.Is(err, artifact.ErrChanged), errors.Is(err, regular.ErrLarger), errors.Is(err, fs.ErrNotExist):
			failed = failed.WithHint("publish the cell again from the host that built it: `builder publish` replaces a damaged or missing file")
		}
		err = failed
	}
	if err != nil {
		return Receipt{}, false, err
	}
	receipt, err = at.Put(ctx, b, string(channel), nil)
	return receipt, slices.Contains(r.Channels, string(channel)), err
}

// YankCell marks a published cell as not to be used. An empty because removes the mark.
func YankCell(ctx context.Context, place Directory, cell, because string) (index.Record, error) {
	found, err := place.Find(ctx, cell)
	if err != nil {
		return index.Record{}, err
	}
	r, err := place.Yank(ctx, found.Key, because)
	if err != nil {
		err = fmt.Errorf("yanking %s: %w", cell, err)
	}
	return r, err
}
