package publish

import (
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/internal/publishing/upload"
)

// The syntax of places, by what they do.
const (
	Destinations = "file:DIR, oci://HOST/REPOSITORY or pypi:URL"            // of [Destination]
	Catalogues   = "file:DIR or oci://HOST/REPOSITORY"                      // of [Catalogue]
	Sources      = "file:DIR, oci://HOST/REPOSITORY or the URL of an index" // of [Source]
	Indexes      = "file:DIR or the URL of an index"                        // of [Index]
)

// Options control the connection to a place.
type Options struct {
	Insecure bool         // allow plain HTTP to other hosts
	Send     upload.Send  // sends a wheel to an upload server, and may be nil
	Store    *store.Store // takes the files of an index on the network
}

// Open parses a place that does what P asks for, with the given syntax. It contacts no
// server.
func Open[P any](text, syntax string, o Options) (P, error) {
	at, err := open(text, o)
	place, ok := at.(P)
	if err == nil && !ok {
		err = diag.Errorf(diag.Usage, "%q is no place for this", text).WithHint("write %s", syntax)
	}
	return place, err
}

// open returns nil for a text that is no place.
func open(text string, o Options) (any, error) {
	switch scheme, rest, _ := strings.Cut(text, ":"); {
	case scheme == "file" && strings.TrimPrefix(rest, "//") != "":
		dir, err := filepath.Abs(strings.TrimPrefix(rest, "//"))
		return Directory{index.Open(dir), dir}, err
	case strings.HasPrefix(text, oci.Scheme):
		return openRegistry(text, o.Insecure)
	case strings.HasPrefix(text, upload.Prefix):
		server, err := upload.Open(text, upload.Options{Insecure: o.Insecure, Send: o.Send})
		return Server{server}, err
	case scheme == "http" || scheme == "https":
		return index.OpenRemote(text, o.Store), nil
	}
	return nil, nil
}
