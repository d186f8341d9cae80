package publish

import (
	"strings"

	"builder/internal/base/regular"
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
)

// Annotations. Only the signed files count as evidence. cosign reads the names in
// dev.sigstore.
const (
	cellNote    = "org.builder.cell"
	keyNote     = "org.builder.key"
	contentNote = "dev.sigstore.bundle.content"
	saysNote    = "dev.sigstore.bundle.predicateType"
)

// ociPackage returns the bundle as a package for a registry.
func (b Bundle) ociPackage() oci.Package {
	p := oci.Package{
		ArtifactType: cellType,
		Files:        []oci.File{fileOf(b.Wheel, wheelType)},
		Annotations:  map[string]string{cellNote: b.Entry.ID, keyNote: b.Entry.Key()},
		Referrers:    referrersOf(b.Said),
	}
	if b.isTree() {
		p.Files[0].MediaType = treeType
	}
	for _, a := range b.Beside {
		p.Files = append(p.Files, fileOf(a, besideType))
	}
	return p
}

// referrersOf returns statements as referrers of their package.
func referrersOf(said []attest.Document) (all []oci.Referrer) {
	for _, d := range said {
		all = append(all, oci.Referrer{
			ArtifactType: bundleType, File: fileOf(d.Artifact, bundleType),
			Annotations: map[string]string{contentNote: "dsse-envelope", saysNote: d.PredicateType},
		})
	}
	return all
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
	end := "-" + regular.Sum([]byte(name))[:16]
	return tag[:maxTag-len(end)] + end
}

// channelTag returns the tag of a cell in a channel. It moves.
func channelTag(cell, channel string) string { return tagOf(cell + "-" + channel) }

func keyTag(key string) string { return "key-" + key }
