package oci

import (
	"strings"

	"github.com/distribution/reference"

	"builder/internal/base/diag"
)

// hub returns the registry of names without a host, such as rocm/tensorflow:latest.
func hub() string {
	name, _ := reference.ParseNormalizedNamed("rocm/tensorflow") // well-formed
	return reference.Domain(name)
}

// Mirrors maps registries to the places from which their images are pulled. A build pulls
// by digest, so a mirror can withhold an image but not change it.
type Mirrors map[string]string

// ParseMirrors reads mirrors such as mirror.example.org/hub, for Docker Hub, and
// other.example.org=mirror.example.org/other. The last one for a registry counts.
func ParseMirrors(texts []string) (Mirrors, error) {
	m := Mirrors{}
	for _, text := range texts {
		registry, place, named := strings.Cut(text, "=")
		if !named {
			registry, place = hub(), text
		}
		place = strings.TrimSuffix(place, "/")
		if !parses(registry+"/a") || !parses(place+"/a") || !strings.ContainsAny(place, ".:") {
			return nil, diag.Errorf(diag.Usage, "%q is no mirror of a registry", text).
				WithHint("BUILDER_MIRROR_REGISTRY is HOST[:PORT][/PATH] for Docker Hub or REGISTRY=HOST[:PORT][/PATH], several separated by commas, without https://")
		}
		m[registry] = place
	}
	return m, nil
}

// parses reports whether a reference is well-formed.
func parses(name string) bool {
	_, err := reference.ParseNormalizedNamed(name)
	return err == nil
}

// Reference returns the reference of an image at the mirror of its registry, or name
// itself if the registry has none.
func (m Mirrors) Reference(name string) string {
	full, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	place, mirrored := m[reference.Domain(full)]
	if !mirrored {
		return name
	}
	return place + strings.TrimPrefix(full.String(), reference.Domain(full))
}
