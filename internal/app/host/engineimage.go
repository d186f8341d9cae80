package host

import (
	"context"
	"encoding/hex"
	"path"
	"strings"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/input/store"
)

// ImageKey is the setting that names an [EngineImage].
const ImageKey = "engine-image"

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
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s does not end in the digest of the file", ImageKey, store.Redact(text)).
			WithHint("write PLACE@sha256:DIGEST with the digest that `builder engine image` or sha256sum prints")
	}
	if file, is := strings.CutPrefix(place, "file:"); is && !strings.HasPrefix(file, "//") {
		place = file
	}
	if place == "" {
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s names no place of the image", ImageKey, text)
	}
	return EngineImage{Place: store.Place(place), SHA256: digest}, nil
}

// WriteEngineImage writes the engine to a file that does not exist yet.
func WriteEngineImage(ctx context.Context, s Setup, to string) (EngineImage, error) {
	if err := home.AbsentFile(to); err != nil {
		return EngineImage{}, err
	}
	if err := NativeEngine(s).Image(ctx, to); err != nil {
		return EngineImage{}, err
	}
	b, err := store.Of(to)
	return EngineImage{Place: store.Place(to), SHA256: b.SHA256}, err
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

// fetchImage brings the image into the store and returns its path there.
func fetchImage(ctx context.Context, s Setup) (string, error) {
	kept, err := store.Open(home.StoreDir(s.Keys.Home))
	if err != nil {
		return "", err
	}
	image := store.Blob{Name: s.Engines.Image.name(), SHA256: s.Engines.Image.SHA256}
	if held, err := kept.Use(image); err == nil {
		return held, nil
	}
	leaveOut := "or leave out " + ImageKey + ": builder then compiles the engine"
	if s.Sources.Offline && s.Engines.Image.remote() {
		return "", diag.Errorf(diag.Fetch, "the engine's image %s is not in the store, and --offline was given", s.Engines.Image.Place).
			WithHint("run `builder engine up` once with a network, name a file, %s", leaveOut)
	}
	got, err := kept.Fetch(ctx, image, []store.Place{s.Engines.Image.Place}, nil)
	if diag.CodeOf(err) == diag.Fetch {
		err = diag.HintAll(err, "correct the place or the digest of "+ImageKey+", "+leaveOut)
	}
	return got, err
}
