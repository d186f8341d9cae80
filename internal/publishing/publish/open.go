package publish

import (
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/internal/publishing/upload"
)

// A kind of places. The interfaces of its type say what a place can do: [Destination],
// [Catalogue], [Source] and [Index].
type kind struct {
	begins []string // of an address
	syntax string
	is     any // a value of the type
	open   func(text string, o Options) (any, error)
}

// kinds lists all kinds of places.
var kinds = []kind{
	{[]string{"file:"}, "file:DIR", Directory{}, openDirectory},
	{[]string{oci.Scheme}, "oci://HOST/REPOSITORY", Registry{}, func(text string, o Options) (any, error) { return openRegistry(text, o.Insecure) }},
	{[]string{upload.Prefix}, "pypi:URL", Server{}, openServer},
	{[]string{"https://", "http://"}, "the URL of an index", index.Remote{}, func(text string, o Options) (any, error) { return index.OpenRemote(text, o.Store), nil }},
}

// Options control the connection to a place.
type Options struct {
	Insecure bool         // allow plain HTTP to other hosts
	Send     upload.Send  // sends a wheel to an upload server, and may be nil
	Store    *store.Store // takes the files of an index on the network
}

// Syntax describes the addresses of the places that do what P asks for.
func Syntax[P any]() string {
	var all []string
	for _, k := range kinds {
		if _, does := k.is.(P); does {
			all = append(all, k.syntax)
		}
	}
	last := len(all) - 1
	return strings.TrimPrefix(strings.Join(all[:last], ", ")+" or "+all[last], " or ")
}

// Open returns the place at an address that does what P asks for. It contacts no server.
func Open[P any](text string, o Options) (place P, err error) {
	for _, k := range kinds {
		_, does := k.is.(P)
		if does && slices.ContainsFunc(k.begins, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			at, err := k.open(text, o)
			place, _ = at.(P)
			return place, err
		}
	}
	return place, noPlace(text, Syntax[P]())
}

func noPlace(text, syntax string) error {
	if text == "" {
		return diag.Errorf(diag.Usage, "the place is missing").WithHint("write %s", syntax)
	}
	return diag.Errorf(diag.Usage, "%q is no place for this", text).WithHint("write %s", syntax)
}

func openDirectory(text string, _ Options) (any, error) {
	dir := strings.TrimPrefix(strings.TrimPrefix(text, "file:"), "//")
	if dir == "" {
		return nil, noPlace(text, "file:DIR")
	}
	dir, err := filepath.Abs(dir)
	return Directory{index.Open(dir), dir}, err
}

func openServer(text string, o Options) (any, error) {
	server, err := upload.Open(text, o.Insecure, o.Send)
	return Server{server}, err
}
