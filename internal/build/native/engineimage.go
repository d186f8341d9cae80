package native

import (
	"context"
	"encoding/hex"
	"path"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// ImageVariable is the variable that names an [EngineImage].
const ImageVariable = "BUILDER_ENGINE_IMAGE"

// An EngineImage is a file written by `builder engine image`, with its digest. The zero
// value is none.
type EngineImage struct {
	Place  store.Place // an http or https URL, file:PATH, or a path
	SHA256 string      // hexadecimal
}

// ParseEngineImage parses PLACE@sha256:DIGEST. An empty text is no image.
func ParseEngineImage(text string) (EngineImage, error) {
	if text == "" {
		return EngineImage{}, nil
	}
	place, digest, _ := strings.Cut(text, "@sha256:")
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) != 32 || strings.ToLower(digest) != digest {
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s does not end in the digest of the file", ImageVariable, store.Redact(text)).
			WithHint("write PLACE@sha256:DIGEST with the digest that `builder engine image` or sha256sum prints")
	}
	if file, is := strings.CutPrefix(place, "file:"); is && !strings.HasPrefix(file, "//") {
		place = file
	}
	if place == "" {
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s names no place of the image", ImageVariable, text)
	}
	return EngineImage{Place: store.Place(place), SHA256: digest}, nil
}

// String returns the image in the form of [ParseEngineImage], without credentials.
func (i EngineImage) String() string { return i.Place.String() + "@sha256:" + i.SHA256 }

// name returns the file name of the image, without the query of its URL.
func (i EngineImage) name() string {
	place, _, _ := strings.Cut(string(i.Place), "?")
	return path.Base(place)
}

// remote reports whether the image is in the network.
func (i EngineImage) remote() bool {
	return strings.HasPrefix(string(i.Place), "http://") || strings.HasPrefix(string(i.Place), "https://")
}

// Fetch brings the image into a store and returns its path there.
func (i EngineImage) Fetch(ctx context.Context, kept *store.Store, offline bool) (string, error) {
	image := store.Blob{Name: i.name(), SHA256: i.SHA256}
	if held, err := kept.Use(image); err == nil {
		return held, nil
	}
	leaveOut := "or leave out " + ImageVariable + ": builder then compiles the engine"
	if offline && i.remote() {
		return "", diag.Errorf(diag.Fetch, "the engine's image %s is not in the store, and --offline was given", i.Place).
			WithHint("run `builder engine up` once with a network, name a file, %s", leaveOut)
	}
	got, err := kept.Fetch(ctx, image, []store.Place{i.Place}, nil)
	if diag.CodeOf(err) == diag.Fetch {
		err = diag.HintAll(err, "correct the place or the digest of "+ImageVariable+", "+leaveOut)
	}
	return got, err
}
