package attest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"builder/internal/evidence/sbom"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// ProvenanceType is the predicate type of the provenance
// (https://slsa.dev/spec/v1.0/provenance).
const ProvenanceType = "https://slsa.dev/provenance/v1"

// buildType defines the parameters of a provenance: an entry of a lock, which names
// every input of the build.
const buildType = "urn:builder:cell:v1"

// Provenance is the predicate of SLSA, with the entry as its internal parameter. The
// entry is sufficient to build the artifact again.
type Provenance struct {
	Definition Definition `json:"buildDefinition"`
	Run        RunDetails `json:"runDetails"`
}

// Definition describes the parameters and the materials of a build.
type Definition struct {
	BuildType string     `json:"buildType"`
	External  External   `json:"externalParameters"`
	Internal  Internal   `json:"internalParameters"`
	Materials []Material `json:"resolvedDependencies"`
}

// External holds the parameters requested by the user.
type External struct {
	Recipe string            `json:"recipe"`
	Cell   string            `json:"cell"`
	Axes   map[string]string `json:"axes"`
}

// Internal holds the resolved parameters.
type Internal struct {
	Key   string     `json:"key"` // sha256 of the entry
	Entry lock.Entry `json:"entry"`
}

// A Material is an input of the build, as an in-toto resource descriptor.
type Material struct {
	Name      string            `json:"name,omitempty"`
	URI       string            `json:"uri,omitempty"`
	Digest    map[string]string `json:"digest,omitempty"`
	MediaType string            `json:"mediaType,omitempty"`
	Content   string            `json:"content,omitempty"` // base64
}

// RunDetails describe the builder, the time and the byproducts of a build.
type RunDetails struct {
	Builder    Builder    `json:"builder"`
	Metadata   Metadata   `json:"metadata"`
	Byproducts []Material `json:"byproducts,omitempty"`
}

// Builder identifies the builder: ID is the place of the build, Version the releases of
// this tool and of the engine.
type Builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// Metadata holds the id and the times of one build.
type Metadata struct {
	Invocation string    `json:"invocationId,omitempty"`
	Started    time.Time `json:"startedOn"`
	Finished   time.Time `json:"finishedOn"`
}

// A Build holds the facts about a build that are not in its entry.
type Build struct {
	Builder           Builder
	Invocation        string
	Started, Finished time.Time
	Canary            string // result of the build step's canary, as JSON
	Ccache            string // hits of the compiler cache, as JSON; "" without it
}

// NewProvenance returns the provenance of the artifacts of an entry.
func NewProvenance(e lock.Entry, b Build) Provenance {
	p := Provenance{
		Definition{
			buildType, External{e.Recipe, e.ID, e.Axes}, Internal{e.Key(), e}, materials(e),
		},
		RunDetails{Builder: b.Builder, Metadata: Metadata{b.Invocation, b.Started.UTC(), b.Finished.UTC()}},
	}
	for _, made := range []struct{ name, text string }{{"canary", b.Canary}, {CompilerCache, b.Ccache}} {
		if made.text != "" {
			p.Run.Byproducts = append(p.Run.Byproducts, Material{
				Name: made.name, MediaType: "application/json", Content: base64.StdEncoding.EncodeToString([]byte(made.text)),
			})
		}
	}
	return p
}

// CompilerCache is the name of the compiler cache in provenance: among the versions of a
// builder whose build step used it, and of the byproduct with its hits.
const CompilerCache = "ccache"

// cached reports whether the build step could take objects from the compiler cache. It
// does not ask for hits: the step itself counts them.
func (p Provenance) cached() bool { return p.Run.Builder.Version[CompilerCache] != "" }

// problem returns the first contradiction in a provenance, or "". The key and the
// materials must follow from the entry.
func (p Provenance) problem() string {
	d := p.Definition
	e := d.Internal.Entry
	switch {
	case d.BuildType != buildType:
		return fmt.Sprintf("its build type is %q, this version reads %s", d.BuildType, buildType)
	case e.Schema != lock.EntrySchema:
		return fmt.Sprintf("its entry has the schema %d, this version reads %d", e.Schema, lock.EntrySchema)
	case e.Key() != d.Internal.Key:
		return fmt.Sprintf("its entry has the key %s, but the provenance states %s", e.Key(), d.Internal.Key)
	case d.External.Cell != e.ID || d.External.Recipe != e.Recipe:
		return fmt.Sprintf("it names the cell %s, its entry names %s", d.External.Cell, e.ID)
	case !slices.EqualFunc(d.Materials, materials(e), func(a, b Material) bool { return a.line() == b.line() }):
		return "its materials differ from those of its entry"
	}
	return ""
}

// Repeats reports whether the provenance in the bundle already tells of the build in p: the
// same key signed the same files of the same entry, and both builds or neither used the
// compiler cache.
func (b Bundle) Repeats(p Provenance, made []artifact.Artifact, signer string) bool {
	return b.Provenance != nil && b.maker == signer && b.Provenance.problem() == "" &&
		b.Provenance.Definition.Internal.Key == p.Definition.Internal.Key &&
		b.Provenance.Run.Builder.Version[CompilerCache] == p.Run.Builder.Version[CompilerCache] &&
		slices.EqualFunc(b.Artifacts, subjects(made), func(x, y Subject) bool {
			return x.Name == y.Name && x.Digest["sha256"] == y.Digest["sha256"]
		})
}

func (m Material) line() string { return m.Name + "\x00" + m.URI + "\x00" + m.Digest["sha256"] }

// materials lists every input of an entry's build by digest, sorted and without
// duplicates: source, patches, inputs, both base images with their packages, and the
// Python packages in them.
func materials(e lock.Entry) []Material {
	all := []Material{sourceMaterial(e.Source)}
	for _, p := range e.Patches {
		all = append(all, material("patch "+p.Name, "urn:builder:patch:"+e.Recipe+":"+p.Name, p.Digest()))
	}
	for _, in := range e.Inputs {
		all = append(all, material("input "+in.ID, "urn:builder:cell:"+in.ID, in.Key))
	}
	for _, img := range []lock.Image{e.Image, e.Runtime} {
		all = append(all, imageMaterials(img)...)
	}
	slices.SortFunc(all, func(a, b Material) int { return cmp.Compare(a.line(), b.line()) })
	return slices.CompactFunc(all, func(a, b Material) bool { return a.line() == b.line() })
}

func sourceMaterial(s lock.SourcePin) Material {
	uri := sbom.PURL("pypi", s.Project, s.Version)
	switch s.Kind() {
	case recipe.Git:
		uri = "git+" + s.Repository + "@" + s.Commit
	case recipe.Archive:
		uri = "urn:builder:pool:" + path.Clean(s.Path)
	}
	return material(s.Filename, uri, s.SHA256)
}

func imageMaterials(img lock.Image) []Material {
	var all []Material
	if img.Pin.Registry != "" {
		digest := strings.TrimPrefix(img.Pin.Digest, "sha256:")
		all = append(all, material(img.Pin.Name, "pkg:oci/"+path.Base(img.Pin.Registry)+"@"+img.Pin.Digest, digest))
	}
	for _, p := range img.Pin.Packages {
		all = append(all, material(path.Base(p.Path), sbom.PURL("deb", "debian/"+p.Name, p.Version)+"?arch="+p.Architecture, p.SHA256))
	}
	if c := img.CPython; c != nil {
		all = append(all, material(c.Filename(), sbom.PURL("generic", "cpython", c.Version), c.SHA256))
	}
	for _, w := range img.Wheels {
		all = append(all, material(w.Filename, sbom.PURL("pypi", w.Project, w.Version), w.SHA256))
	}
	return all
}

func material(name, uri, sha256 string) Material {
	return Material{Name: name, URI: uri, Digest: map[string]string{"sha256": sha256}}
}
