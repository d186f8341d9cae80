package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Bounds of packages and of a registry's answers.
const (
	maxManifest  = 4 << 20 // bytes
	maxFiles     = 256     // of one package
	maxReferrers = 1024    // of one package
	maxName      = 255     // bytes
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

func (f File) descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{
		MediaType: f.MediaType, Digest: digest.NewDigestFromEncoded(digest.SHA256, f.SHA256), Size: f.Size,
		Annotations: map[string]string{ocispec.AnnotationTitle: f.Name},
	}
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
	return nil
}

// read decodes the bytes of a manifest. It returns all errors at once.
func read(data []byte) (Manifest, error) {
	var m ocispec.Manifest
	if len(data) > maxManifest {
		return Manifest{}, fmt.Errorf("the manifest has more than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	out := Manifest{Digest: digest.FromBytes(data).String(), ArtifactType: m.ArtifactType, Annotations: m.Annotations}
	var errs []error
	if m.MediaType != ocispec.MediaTypeImageManifest || m.SchemaVersion != 2 {
		errs = append(errs, fmt.Errorf("not a package: the type is %q", m.MediaType))
	}
	if m.Subject != nil {
		out.Subject = m.Subject.Digest.String()
		errs = append(errs, CheckDigest(out.Subject))
	}
	if len(m.Layers) > maxFiles {
		errs, m.Layers = append(errs, fmt.Errorf("the manifest has %d files, more than %d", len(m.Layers), maxFiles)), nil
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
	if err := errors.Join(append(errs, checkFiles(out.Files))...); err != nil {
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
