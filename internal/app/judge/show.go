package judge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/inspect"
	"builder/internal/files/linux"
	"builder/internal/plan/proven"
	"builder/internal/view/report"
)

// Shown holds what the bytes of an artifact say, and what trusted keys say of it.
type Shown struct {
	artifact.Artifact
	Is     *inspect.Report `json:"is,omitempty"`    // nil for an archive and for a damaged file
	Fault  string          `json:"fault,omitempty"` // why a wheel or a library cannot be read
	Nodes  []string        `json:"nodes,omitempty"` // systems with its glibc and C++ library
	Origin *Origin         `json:"origin,omitempty"`
	Doubt  string          `json:"doubt,omitempty"` // why there is no origin
}

// An Origin is a summary of the signed statements about an artifact.
type Origin struct {
	Cell     string          `json:"cell"`
	Key      string          `json:"key"`    // sha256 of the locked entry
	Source   string          `json:"source"` // name, release or commit, and sha256
	Patches  []string        `json:"patches"`
	Image    string          `json:"image"`
	Built    string          `json:"built"` // the day in UTC, and the releases of the programs
	Signers  []string        `json:"signers"`
	Proven   proven.Standing `json:"proven"`
	NotAsked []string        `json:"notAsked"` // what no verdict says, and the command that asks
}

// A ShowReport holds all artifacts of an invocation.
type ShowReport struct {
	Schema    int     `json:"schema"`
	Artifacts []Shown `json:"artifacts"`
}

// Show describes artifacts. It judges nothing: a file without statements, or with those of
// a key that nobody trusts, is shown as its bytes are. The error names the files that cannot
// be read; the report has the others.
func Show(ctx context.Context, keys signing.Keys, paths []string) (ShowReport, error) {
	artifacts, err := artifactsOf(paths)
	errs := []error{err}
	trust, err := keys.Trusted()
	if err != nil || len(artifacts) == 0 {
		return ShowReport{}, errors.Join(append(errs, err)...)
	}
	report := ShowReport{Schema: 1}
	for _, a := range artifacts {
		shown := Shown{Artifact: a}
		readable := inspect.Takes(a.Path) || filepath.Ext(a.Path) == ".whl"
		if readable {
			shown.look(ctx)
		}
		if err := context.Cause(ctx); err != nil {
			return ShowReport{}, err
		}
		bundle, err := attest.Read(a, trust)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			shown.Doubt = "no statement about its origin lies beside it"
			if !readable {
				shown.Doubt += ", and it is neither a wheel nor a library"
			}
		case err != nil:
			shown.Doubt = err.Error()
		case bundle.Provenance == nil:
			shown.Doubt = "no trusted key signed its provenance"
		default:
			shown.Origin = originOf(a, bundle)
		}
		report.Artifacts = append(report.Artifacts, shown)
	}
	return report, errors.Join(errs...)
}

// look reads the facts in the bytes of a wheel or a library.
func (s *Shown) look(ctx context.Context) {
	is, err := inspect.File(ctx, s.Path)
	if err != nil {
		s.Fault = err.Error()
		return
	}
	s.Is = &is
	if glibc, ok := is.Fact("glibc"); ok && glibc.Values[0] != inspect.None && glibc.Values[0] != inspect.Unknown {
		s.Nodes, _ = linux.Split(glibc.Values[0])
	}
}

func originOf(a artifact.Artifact, b attest.Bundle) *Origin {
	p := b.Provenance
	e := p.Definition.Internal.Entry
	var programs []string
	for name, release := range p.Run.Builder.Version {
		programs = append(programs, name+" "+release)
	}
	slices.Sort(programs)
	o := &Origin{
		Cell: p.Definition.External.Cell, Key: p.Definition.Internal.Key, Image: e.Image.Pin.Name, Signers: b.Keys,
		Source: strings.TrimSpace(e.Source.Project+" "+e.Source.Version) + ", sha256:" + e.Source.SHA256,
		Built:  p.Run.Metadata.Finished.UTC().Format("2006-01-02") + " by " + strings.Join(programs, ", "),
	}
	if e.Source.Commit != "" {
		o.Source = fmt.Sprintf("%s %s, commit %s", e.Source.Repository, e.Source.Tag, e.Source.Commit)
	}
	for _, patch := range e.Patches {
		o.Patches = append(o.Patches, patch.Name)
	}
	if proof, err := b.Proof(a.SHA256); err == nil {
		o.Proven = proven.Cells{o.Cell: proof}.Standing(o.Cell, o.Key)
	}
	o.NotAsked = b.NotAsked(a, report.Cell{Recipe: e.Recipe, Axes: e.Axes}.Again())
	return o
}
