package lock

import (
	"cmp"
	"slices"
	"strings"

	"builder/internal/input/pypi"
)

// A PinChange is one pin that differs between two locks of a recipe.
type PinChange struct {
	Kind string `json:"kind"` // source, image, package or wheel
	Name string `json:"name"` // with its image or its Python version
	Was  string `json:"was"`  // empty if the pin is new
	Is   string `json:"is"`   // empty if the pin is gone
}

// Compare lists the differences from the pins of f to those of g, each once: several
// sets of Python packages may share one.
func Compare(f, g File) []PinChange {
	was, is := f.named(), g.named()
	changes := []PinChange{}
	for at, now := range is {
		if then := was[at]; then != now {
			changes = append(changes, PinChange{at.kind, at.name, then, now})
		}
	}
	for at, then := range was {
		if _, still := is[at]; !still {
			changes = append(changes, PinChange{at.kind, at.name, then, ""})
		}
	}
	slices.SortFunc(changes, func(a, b PinChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Was, b.Was), cmp.Compare(a.Is, b.Is))
	})
	return slices.Compact(changes)
}

// pinName identifies a pin. set distinguishes sets of Python packages with the same
// wheel.
type pinName struct{ kind, name, set string }

// named returns the printed value of every pin.
func (f File) named() map[pinName]string {
	all := map[pinName]string{}
	for _, s := range f.Sources {
		all[pinName{"source", s.Project + " " + s.Version, ""}] = pinned(s.File)
	}
	for _, i := range f.Images {
		all[pinName{"image", i.Name, ""}] = cmp.Or(short(i.Digest), i.Date)
		for _, p := range i.Packages {
			all[pinName{"package", p.Name + " (" + i.Name + ")", ""}] = p.Version + " " + short(p.SHA256)
		}
	}
	for _, p := range f.Python {
		set := p.String()
		for _, file := range p.Files {
			all[pinName{"wheel", file.Project + " (Python " + p.Python + ")", set}] = pinned(file)
		}
	}
	return all
}

func pinned(f pypi.File) string { return f.Version + " " + short(f.SHA256) }

// short returns the first 12 digits of a digest, for display.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(12, len(digest))]
}
