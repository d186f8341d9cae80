package app

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/unpack"
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
	image := EngineImage{Place: store.Place(place), SHA256: digest}
	if !isImageName(image.name()) {
		return EngineImage{}, diag.Errorf(diag.Usage, "%s: %s is not the name of an image", ImageKey, image.Place).WithHint("%s", imageNames)
	}
	return image, nil
}

// WriteEngineImage writes the engine to a file that does not exist yet.
func WriteEngineImage(ctx context.Context, s *Session, to string) (EngineImage, error) {
	if err := AbsentFile(to); err != nil {
		return EngineImage{}, err
	}
	if !isImageName(to) {
		return EngineImage{}, diag.Errorf(diag.Usage, "--to: %s is not the name of an image", to).WithHint("%s", imageNames)
	}
	if err := s.NativeEngine().Image(ctx, to); err != nil {
		return EngineImage{}, err
	}
	b, err := store.Of(to)
	return EngineImage{Place: store.Place(to), SHA256: b.SHA256}, err
}

// String returns the image in the form of [ParseEngineImage], without credentials.
func (i EngineImage) String() string { return i.Place.String() + "@sha256:" + i.SHA256 }

const imageNames = "name a file that ends in .tar, .tar.gz, .tar.xz or .tar.zst"

func isImageName(name string) bool {
	_, err := unpack.Reader(strings.NewReader(""), name)
	return !errors.Is(err, unpack.ErrUnknown)
}

// name returns the file name of the image, without the query of its URL.
func (i EngineImage) name() string {
	place, _, _ := strings.Cut(string(i.Place), "?")
	return path.Base(place)
}

// remote reports whether the image is in the network.
func (i EngineImage) remote() bool {
	return strings.HasPrefix(string(i.Place), "http://") || strings.HasPrefix(string(i.Place), "https://")
}

// fetchImage brings the image into the store and returns its path there. The path has
// no suffix.
func (s *Session) fetchImage(ctx context.Context) (string, error) {
	kept, err := store.Open(filepath.Join(s.Home, "store"))
	if err != nil {
		return "", err
	}
	image := store.Blob{Name: s.Image.name(), SHA256: s.Image.SHA256}
	if held, err := kept.Use(image); err == nil {
		return held, nil
	}
	leaveOut := "or leave out " + ImageKey + ": builder then compiles the engine"
	if s.Offline && s.Image.remote() {
		return "", diag.Errorf(diag.Fetch, "the engine's image %s is not in the store, and --offline was given", s.Image.Place).
			WithHint("run `builder engine up` once with a network, name a file, %s", leaveOut)
	}
	got, err := kept.Fetch(ctx, image, []store.Place{s.Image.Place}, nil)
	if fault, is := errors.AsType[*diag.Error](err); is && strings.Contains(fault.Hint, "--set source") {
		return "", fault.WithHint("correct the place or the digest of %s, %s", ImageKey, leaveOut)
	}
	return got, err
}

// openImage opens the image without its compression.
func (s *Session) openImage(ctx context.Context) (io.ReadCloser, error) {
	got, err := s.fetchImage(ctx)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(got)
	if err != nil {
		return nil, err
	}
	r, err := unpack.Reader(f, s.Image.name())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened{r, f}, nil
}

// opened is a file read through a decompressor.
type opened struct {
	io.ReadCloser
	file *os.File
}

func (o opened) Close() error { return errors.Join(o.ReadCloser.Close(), o.file.Close()) }
