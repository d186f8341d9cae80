package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds of packages and of a registry's answers.
const (
	maxManifest  = 4 << 20 // bytes
	maxFiles     = 256     // of one package
	maxReferrers = 1024    // of one package
	maxTags      = 1 << 16
	maxName      = 255 // bytes
)

// A File is a file of a package. Path is the file on this host: the caller sets it for
// a push, and it is empty in results from a registry.
type File struct {
	Path      string
	Name      string // base name in the registry
	MediaType string
	SHA256    string // 64 hexadecimal digits
	Size      int64  // bytes
}

// A Package is a list of files under one digest. The order of the files changes the
// digest, the order of the referrers does not.
type Package struct {
	ArtifactType string // a media type
	Files        []File
	Annotations  map[string]string
	Referrers    []Referrer
}

// A Referrer is a document about a package, found by the package's digest.
type Referrer struct {
	ArtifactType string // a media type
	File         File
	Annotations  map[string]string
}

// A Manifest is the manifest of a package or of a referrer in a registry. For a
// referrer, Subject is the digest of its package. The bytes match the digest, and every
// name is a plain, unique base name.
type Manifest struct {
	Digest       string
	ArtifactType string
	Subject      string
	Files        []File
	Annotations  map[string]string
}

// plainName reports whether a name is a base name of printable characters.
func plainName(name string) bool {
	return name != "" && len(name) <= maxName && name != "." && name != ".." &&
		utf8.ValidString(name) && filepath.Base(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || !unicode.IsPrint(r) })
}

// A document is an encoded manifest.
type document struct {
	ocispec.Descriptor
	data []byte
}

// packed is a package in the form sent to a registry. Each blob is listed once.
type packed struct {
	blobs     []blob
	manifest  document
	referrers []document
}

// A blob is content of a manifest: the file at path, or data.
type blob struct {
	ocispec.Descriptor
	name, path string
	data       []byte
}

// pack checks a package and encodes its manifests. The same package gives the same
// bytes: they hold no time and nothing of the host.
func pack(p Package) (packed, error) {
	if err := p.check(); err != nil {
		return packed{}, err
	}
	main, err := write(p.ArtifactType, p.Files, p.Annotations, nil)
	if err != nil {
		return packed{}, err
	}
	return packed{manifest: main}.with(p.Files, p.Referrers)
}

// with adds files, and documents about the package with their files.
func (p packed) with(files []File, referrers []Referrer) (packed, error) {
	for _, r := range referrers {
		about, err := write(r.ArtifactType, []File{r.File}, r.Annotations, &p.manifest.Descriptor)
		if err != nil {
			return packed{}, err
		}
		p.referrers, files = append(p.referrers, about), append(slices.Clip(files), r.File)
	}
	empty := ocispec.DescriptorEmptyJSON
	p.blobs = []blob{{Descriptor: empty, name: "the empty configuration", data: empty.Data}}
	seen := map[digest.Digest]bool{empty.Digest: true}
	for _, f := range files {
		if d := f.descriptor(); !seen[d.Digest] {
			seen[d.Digest] = true
			p.blobs = append(p.blobs, blob{Descriptor: d, name: f.Name, path: f.Path})
		}
	}
	return p, nil
}

// write encodes a manifest in the layout of ORAS: an empty configuration and one layer
// per file with its name as the title.
func write(artifactType string, files []File, annotations map[string]string, subject *ocispec.Descriptor) (document, error) {
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType, Config: ocispec.DescriptorEmptyJSON, Subject: subject, Annotations: annotations,
	}
	for _, f := range files {
		m.Layers = append(m.Layers, f.descriptor())
	}
	data, err := json.Marshal(m)
	if err != nil {
		return document{}, fmt.Errorf("writing manifest: %w", err)
	}
	if len(data) > maxManifest {
		return document{}, fmt.Errorf("the manifest has %d bytes, and registries accept at most %d", len(data), maxManifest)
	}
	return document{ocispec.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}, data}, nil
}

func (f File) descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: f.MediaType, Digest: digest.NewDigestFromEncoded(digest.SHA256, f.SHA256), Size: f.Size,
		Annotations: map[string]string{ocispec.AnnotationTitle: f.Name},
	}
}

// check returns all errors of a package.
func (p Package) check() error {
	var errs []error
	if err := mediaType(p.ArtifactType); err != nil {
		errs = append(errs, fmt.Errorf("the package: %w", err))
	}
	if len(p.Files) == 0 || len(p.Files) > maxFiles {
		errs = append(errs, fmt.Errorf("the package has %d files, not 1 to %d", len(p.Files), maxFiles))
	}
	if len(p.Referrers) > maxReferrers {
		errs = append(errs, fmt.Errorf("the package has %d referrers, more than %d", len(p.Referrers), maxReferrers))
	}
	return errors.Join(append(errs, checkFiles(p.Files), checkReferrers(p.Referrers))...)
}

func checkReferrers(referrers []Referrer) error {
	var errs []error
	for _, r := range referrers {
		if err := errors.Join(mediaType(r.ArtifactType), r.File.check()); err != nil {
			errs = append(errs, fmt.Errorf("the referrer %q: %w", r.File.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkFiles checks every file and refuses duplicate names.
func checkFiles(files []File) error {
	var errs []error
	names := map[string]bool{}
	for _, f := range files {
		if err := f.check(); err != nil {
			errs = append(errs, fmt.Errorf("the file %q: %w", f.Name, err))
		}
		if names[f.Name] {
			errs = append(errs, fmt.Errorf("two files have the name %q", f.Name))
		}
		names[f.Name] = true
	}
	return errors.Join(errs...)
}

func (f File) check() error {
	switch {
	case !plainName(f.Name):
		return errors.New("the name is not a plain base name")
	case digest.NewDigestFromEncoded(digest.SHA256, f.SHA256).Validate() != nil:
		return fmt.Errorf("%q is not a sha256", f.SHA256)
	case f.Size < 0:
		return fmt.Errorf("the size is %d bytes", f.Size)
	}
	return mediaType(f.MediaType)
}

func mediaType(text string) error {
	parsed, params, err := mime.ParseMediaType(text)
	if err != nil || len(params) > 0 || !strings.Contains(parsed, "/") {
		return fmt.Errorf("%q is not a media type", text)
	}
	return nil
}

// read decodes the bytes of a manifest. It returns all errors at once.
func read(data []byte) (Manifest, error) {
	if len(data) > maxManifest {
		return Manifest{}, fmt.Errorf("the manifest has more than %d bytes", maxManifest)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	switch {
	case m.MediaType != ocispec.MediaTypeImageManifest || m.SchemaVersion != 2:
		return Manifest{}, fmt.Errorf("not a package: the type is %q", m.MediaType)
	case len(m.Layers) > maxFiles:
		return Manifest{}, fmt.Errorf("the manifest has %d files, more than %d", len(m.Layers), maxFiles)
	}
	out := Manifest{Digest: digest.FromBytes(data).String(), ArtifactType: m.ArtifactType, Annotations: maps.Clone(m.Annotations)}
	if out.ArtifactType == "" {
		out.ArtifactType = m.Config.MediaType // where older tools put it
	}
	if m.Subject != nil {
		if err := CheckDigest(m.Subject.Digest.String()); err != nil {
			return Manifest{}, fmt.Errorf("the subject: %w", err)
		}
		out.Subject = m.Subject.Digest.String()
	}
	for _, l := range m.Layers {
		title := l.Annotations[ocispec.AnnotationTitle]
		if title == "" && l.MediaType == ocispec.MediaTypeEmptyJSON {
			continue // fills the place of a layer in a manifest without files
		}
		sum, ok := strings.CutPrefix(l.Digest.String(), "sha256:")
		if !ok {
			sum = l.Digest.String() // not a sha256: checkFiles reports it
		}
		out.Files = append(out.Files, File{Name: title, MediaType: l.MediaType, SHA256: sum, Size: l.Size})
	}
	if err := checkFiles(out.Files); err != nil {
		return Manifest{}, err
	}
	return out, nil
}

// CheckDigest returns an error if a text is not a sha256 digest with its prefix.
func CheckDigest(text string) error {
	if d := digest.Digest(text); d.Validate() != nil || d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%q is not a digest such as sha256:…", text)
	}
	return nil
}
