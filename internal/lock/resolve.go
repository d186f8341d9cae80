package lock

import (
	"context"
	"fmt"
	"time"

	"builder/internal/deb"
	"builder/internal/image"
	"builder/internal/oci"
	"builder/internal/pypi"
)

// A Resolver asks the outside for what names mean today. It is the only part of
// the tool that may.
type Resolver struct {
	Scratch string   // directory for what the resolvers write
	Mirrors []string // base addresses of the Debian archive, the first is asked
	UV      func(context.Context) (pypi.Tool, error)
	Now     func() time.Time
}

// Resolve returns pins for everything that is missing.
func (r Resolver) Resolve(ctx context.Context, recipeName string, m Missing) (File, error) {
	f := File{Schema: Schema, Recipe: recipeName}
	for _, img := range m.Images {
		pin, err := r.image(ctx, img)
		if err != nil {
			return File{}, fmt.Errorf("locking image %s: %w", img.Name, err)
		}
		f.Images = append(f.Images, pin)
	}
	if len(m.Sources)+len(m.Python) == 0 {
		return f, nil
	}
	uv, err := r.UV(ctx)
	if err != nil {
		return File{}, err
	}
	for _, s := range m.Sources {
		file, err := uv.Sdist(ctx, r.Scratch, s.Project, s.Version)
		if err != nil {
			return File{}, fmt.Errorf("locking source %s %s: %w", s.Project, s.Version, err)
		}
		f.Sources = append(f.Sources, file)
	}
	for _, need := range m.Python {
		files, err := uv.Resolve(ctx, r.Scratch, pypi.Request{Requirements: need.Requirements, Python: need.Python, Platform: platform})
		if err != nil {
			return File{}, fmt.Errorf("locking Python packages: %w", err)
		}
		f.Python = append(f.Python, PythonPin{need.Python, need.Requirements, files})
	}
	return f, nil
}

// platform is the floor that every image stands on.
const platform = "x86_64-manylinux_2_28"

func (r Resolver) image(ctx context.Context, img image.Image) (ImagePin, error) {
	if img.Registry != "" {
		digest, err := oci.Resolve(ctx, img.Registry)
		return ImagePin{Name: img.Name, Registry: img.Registry, Digest: digest}, err
	}
	mirror, err := deb.Mirror(r.Mirrors)
	if err != nil {
		return ImagePin{}, err
	}
	req := deb.Request{Mirror: mirror, Packages: img.Debian.Packages, Architecture: "amd64"}
	for _, s := range img.Debian.Suites {
		req.Suites = append(req.Suites, deb.Suite{Name: s.Name, Components: s.Components, Priority: s.Priority})
	}
	packages, err := deb.Resolve(ctx, r.Scratch, req)
	date := r.Now().UTC().Format("20060102T150405Z")
	return ImagePin{Name: img.Name, Date: date, Debian: img.Debian, Packages: packages}, err
}
