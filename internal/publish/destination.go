package publish

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/artifact"
	"builder/internal/attest"
	"builder/internal/diag"
	"builder/internal/index"
	"builder/internal/oci"
	"builder/internal/upload"
)

// A Destination takes bundles. Put says where the wheel is to be found, and
// whether it was there before; other bytes under its name are an error of class
// diag.Publish, and nothing is half published.
type Destination interface {
	Put(ctx context.Context, b Bundle, channel string) (Receipt, error)
	String() string
}

var (
	_ Destination = Directory{}
	_ Destination = Registry{}
	_ Destination = Server{}
)

// A Receipt is what a destination says of a bundle.
type Receipt struct {
	Wheel   string `json:"wheel"`
	SHA256  string `json:"sha256"`
	Cell    string `json:"cell"`
	Key     string `json:"key"`
	Channel string `json:"channel"`
	Where   string `json:"where"`   // an address, or a digest in a repository
	Existed bool   `json:"existed"` // the same bytes were there
}

// Receipt is what a destination says of the bundle.
func (b Bundle) Receipt(channel, where string, existed bool) Receipt {
	return Receipt{b.Wheel.Name, b.Wheel.SHA256, b.Entry.ID, b.Entry.Key(), channel, where, existed}
}

// Destinations explains how a destination is written.
const Destinations = "file:DIR, oci://HOST/REPOSITORY or pypi:URL"

// Open reads a destination. Insecure allows plain HTTP to other hosts.
func Open(ctx context.Context, text string, insecure bool, warn func(string, ...any)) (Destination, error) {
	switch {
	case strings.HasPrefix(text, "file:"):
		dir, err := DirectoryOf(text)
		return Directory{Dir: dir}, err
	case strings.HasPrefix(text, oci.Scheme):
		repo, err := oci.OpenRepository(text, oci.Options{Insecure: insecure})
		return Registry{repo}, err
	case strings.HasPrefix(text, upload.Prefix):
		server, err := upload.Open(ctx, text, upload.Options{Insecure: insecure, Warn: warn})
		return Server{server}, err
	}
	return nil, diag.Errorf(diag.Usage, "%q is no destination", text).WithHint("write %s", Destinations)
}

// DirectoryOf returns the directory of file:DIR.
func DirectoryOf(text string) (string, error) {
	dir, ok := strings.CutPrefix(text, "file:")
	dir = strings.TrimPrefix(dir, "//")
	if !ok || dir == "" {
		return "", diag.Errorf(diag.Usage, "%q is no directory", text).WithHint("write file:DIR")
	}
	return filepath.Abs(dir)
}

// Directory is a static index. Client, where it is set, looks at a wheel that came
// just now as pip does; what it cannot use is withdrawn.
type Directory struct {
	Dir    string
	Client func(ctx context.Context, indexURL string, r index.Record) error
}

// String implements [Destination].
func (d Directory) String() string { return "file:" + d.Dir }

// Put implements [Destination].
func (d Directory) Put(ctx context.Context, b Bundle, channel string) (Receipt, error) {
	x := index.Open(d.Dir)
	r, existed, err := x.Add(ctx, b.Publication(channel))
	if err != nil {
		return Receipt{}, err
	}
	receipt := b.Receipt(strings.Join(r.Channels, ", "), x.URL(), existed)
	if d.Client == nil {
		return receipt, nil
	}
	if err := d.Client(ctx, x.URL(), r); err != nil {
		if !existed {
			err = errors.Join(err, x.Withdraw(context.WithoutCancel(ctx), r)) // an interruption does not leave what nobody has looked at
		}
		return Receipt{}, err
	}
	return receipt, nil
}

// Server is an upload server: it takes the wheel, and nothing that was said about
// it but what lies inside.
type Server struct{ *upload.Server }

// String implements [Destination].
func (s Server) String() string { return upload.Prefix + s.URL }

// Put implements [Destination]. An upload server knows no channels.
func (s Server) Put(ctx context.Context, b Bundle, _ string) (Receipt, error) {
	result, err := s.Upload(ctx, b.Wheel, nil)
	return b.Receipt("", s.URL, result == upload.Existed), err
}

// Registry is a repository of an OCI registry.
type Registry struct{ *oci.Repository }

// Media types of what is kept in a registry.
const (
	cellType   = "application/vnd.builder.cell.v1"
	wheelType  = "application/vnd.builder.wheel.v1+zip"
	besideType = "application/octet-stream"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	plainType  = "application/json"
)

// Put implements [Destination]: the files of the cell are one package, what was
// said about the wheel are its referrers, and tags name the cell, its key and its
// place in the channel.
func (r Registry) Put(ctx context.Context, b Bundle, channel string) (Receipt, error) {
	p := b.parcel()
	said, err := r.said(ctx, b.Entry.Key())
	if err != nil {
		return Receipt{}, refused(err)
	}
	p.Referrers = slices.DeleteFunc(p.Referrers, func(ref oci.Referrer) bool { return said[ref.File.Name] })
	digest, existed, err := r.Push(ctx, p, nil)
	if err != nil {
		return Receipt{}, err
	}
	for _, tag := range []string{tagOf(b.Entry.ID), keyTag(b.Entry.Key())} {
		if err := r.Tag(ctx, digest, tag, oci.TagOptions{}); err != nil {
			return Receipt{}, err
		}
	}
	err = r.Tag(ctx, digest, tagOf(b.Entry.ID+"-"+channel), oci.TagOptions{Move: true})
	return b.Receipt(channel, r.String()+"@"+digest, existed), err
}

// refused gives a fault of reading the class of publishing, which it was for.
func refused(err error) error {
	if fault, ok := errors.AsType[*diag.Error](err); ok {
		own := *fault
		own.Code = diag.Publish
		return &own
	}
	return err
}

// said names what is said already about the cell of a key: who built it first and
// said how is not contradicted by somebody who built the same bytes again.
func (r Registry) said(ctx context.Context, key string) (map[string]bool, error) {
	digest, err := r.Resolve(ctx, keyTag(key))
	if _, missing := errors.AsType[*oci.NotFound](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := r.Referrers(ctx, digest)
	names := map[string]bool{}
	for _, ref := range all {
		for _, f := range ref.Files {
			names[f.Name] = true
		}
	}
	return names, err
}

// parcel is the bundle as a registry takes it.
func (b Bundle) parcel() oci.Package {
	p := oci.Package{
		ArtifactType: cellType,
		Files:        []oci.File{fileOf(b.Wheel, wheelType)},
		Annotations:  map[string]string{"org.builder.cell": b.Entry.ID, "org.builder.key": b.Entry.Key(), "org.builder.recipe": b.Entry.Recipe},
	}
	for _, a := range b.Beside {
		p.Files = append(p.Files, fileOf(a, besideType))
	}
	for _, a := range b.Said {
		kind := plainType
		if strings.HasSuffix(a.Name, attest.Suffix) {
			kind = bundleType
		}
		p.Referrers = append(p.Referrers, oci.Referrer{ArtifactType: kind, File: fileOf(a, kind)})
	}
	return p
}

func fileOf(a artifact.Artifact, mediaType string) oci.File {
	return oci.File{Path: a.Path, Name: a.Name, MediaType: mediaType, SHA256: a.SHA256, Size: a.Size}
}

// tagOf returns the tag of a name: a tag has no plus sign, and 128 letters.
func tagOf(name string) string {
	tag := strings.ReplaceAll(name, "+", "_")
	return tag[:min(len(tag), 128)]
}

func keyTag(key string) string { return "key-" + key }
