package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/input/oci"
)

// Media types of files in a registry.
const (
	cellType   = "application/vnd.builder.cell.v1"
	wheelType  = "application/vnd.builder.wheel.v1+zip"
	treeType   = "application/vnd.builder.tree.v1"
	besideType = "application/octet-stream"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	plainType  = "application/json"
)

// Annotations. They serve for lists. Only the signed files count as evidence. cosign
// reads the names in dev.sigstore.
const (
	cellNote    = "org.builder.cell"
	keyNote     = "org.builder.key"
	recipeNote  = "org.builder.recipe"
	versionNote = "org.builder.version" // of an archive, whose name does not state it
	axesNote    = "org.builder.axes"    // JSON
	gatesNote   = "org.builder.gates"   // JSON, gate to status, of one round
	createdNote = "org.opencontainers.image.created"
	contentNote = "dev.sigstore.bundle.content"
	saysNote    = "dev.sigstore.bundle.predicateType"
)

// ociPackage returns the bundle as a package for a registry.
func (b Bundle) ociPackage() (oci.Package, error) {
	axes, err := json.Marshal(b.Entry.Axes)
	if err != nil {
		return oci.Package{}, err
	}
	p := oci.Package{
		ArtifactType: cellType,
		Files:        []oci.File{fileOf(b.Wheel, wheelType)},
		Annotations:  map[string]string{cellNote: b.Entry.ID, keyNote: b.Entry.Key(), recipeNote: b.Entry.Recipe, axesNote: string(axes)},
	}
	if b.isTree() {
		p.Files[0].MediaType, p.Annotations[versionNote] = treeType, b.version
	}
	for _, a := range b.Beside {
		p.Files = append(p.Files, fileOf(a, besideType))
	}
	p.Referrers, err = referrersOf(b.Said, b.documents)
	return p, err
}

// referrersOf returns files of statements as referrers of their package. Files that no
// document describes are plain copies of one.
func referrersOf(said []artifact.Artifact, documents []attest.Document) (all []oci.Referrer, err error) {
	for _, a := range said {
		ref := oci.Referrer{ArtifactType: plainType, File: fileOf(a, plainType)}
		i := slices.IndexFunc(documents, func(d attest.Document) bool { return d.Name == a.Name })
		if i >= 0 {
			ref = oci.Referrer{ArtifactType: bundleType, File: fileOf(a, bundleType)}
			if ref.Annotations, err = annotations(documents[i]); err != nil {
				return nil, err
			}
		}
		all = append(all, ref)
	}
	return all, nil
}

// annotations returns the type, time and verdicts of a signed document.
func annotations(d attest.Document) (map[string]string, error) {
	notes := map[string]string{contentNote: "dsse-envelope", saysNote: d.PredicateType}
	if !d.Made.IsZero() {
		notes[createdNote] = d.Made.UTC().Format(time.RFC3339)
	}
	if len(d.Verdicts) == 0 {
		return notes, nil
	}
	gates, err := json.Marshal(statuses(d.Verdicts))
	notes[gatesNote] = string(gates)
	return notes, err
}

func fileOf(a artifact.Artifact, mediaType string) oci.File {
	return oci.File{Path: a.Path, Name: a.Name, MediaType: mediaType, SHA256: a.SHA256, Size: a.Size}
}

// maxTag is the maximum length of a tag, in bytes (distribution specification).
const maxTag = 128

// tagOf returns the tag for a name. Tags cannot contain a plus sign. A name longer than
// a tag is truncated and ends in a digest of the whole name.
func tagOf(name string) string {
	tag := strings.ReplaceAll(name, "+", "_")
	if len(tag) <= maxTag {
		return tag
	}
	sum := sha256.Sum256([]byte(name))
	end := "-" + hex.EncodeToString(sum[:8])
	return tag[:maxTag-len(end)] + end
}

const keyPrefix = "key-"

func keyTag(key string) string { return keyPrefix + key }

func isKeyTag(tag string) bool { return strings.HasPrefix(tag, keyPrefix) }
