package publish

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/internal/publishing/upload"
)

// A Destination accepts bundles.
type Destination interface {
	// Put publishes the bundle and returns its address, and whether it existed before.
	// Other bytes under the same name are an error of class diag.Publish, and leave the
	// destination unchanged. If take is not nil, Put sends the files, takes them as users
	// do, and publishes them only then.
	Put(ctx context.Context, b Bundle, channel string, take Taker) (Receipt, error)
	String() string
}

// A Catalogue is a destination whose wheels can be found and taken.
type Catalogue interface {
	Destination
	Source
	// Find returns the publication of a cell, by its id or key, unverified.
	Find(ctx context.Context, cell string) (Published, error)
}

// A Published is what a place says about a publication.
type Published struct {
	Cell, Key string
	Channels  []string
}

var (
	_ Catalogue   = Directory{}
	_ Catalogue   = Registry{}
	_ Destination = Server{}
)

// A Receipt describes the publication of a bundle in a destination.
type Receipt struct {
	Wheel   string   `json:"wheel"`
	SHA256  string   `json:"sha256"`
	Cell    string   `json:"cell"`
	Key     string   `json:"key"`
	Channel string   `json:"channel"`
	Where   string   `json:"where"`             // an address, or a digest in a repository
	Existed bool     `json:"existed"`           // the same bytes were already published
	Yanked  string   `json:"yanked,omitempty"`  // reason not to use it, from its publisher
	Checked []string `json:"checked,omitempty"` // clients that took it
	// More is the number of files added to a wheel that was there, such as statements.
	More int `json:"more,omitempty"`
}

// Receipt returns the receipt of the bundle.
func (b Bundle) Receipt(channel, where string, existed bool) Receipt {
	return Receipt{Wheel: b.Wheel.Name, SHA256: b.Wheel.SHA256, Cell: b.Entry.ID, Key: b.Entry.Key(), Channel: channel, Where: where, Existed: existed}
}

// Directory is a static index.
type Directory struct {
	*index.Index
	dir string
}

// List implements [Index]. A missing directory is an error, not an empty index.
func (d Directory) List(ctx context.Context) ([]index.Record, error) {
	if _, err := os.Stat(d.dir); err != nil {
		return nil, diag.Errorf(diag.Usage, "listing %s: %w", d, err).WithHint("name the directory of an earlier `builder publish --to file:DIR`")
	}
	return d.Index.List(ctx)
}

// Bring implements [Source]. A missing directory is an error: its name may be mistyped.
func (d Directory) Bring(ctx context.Context, key, dir string, vet index.Vet) (string, error) {
	if _, err := os.Stat(d.dir); err != nil {
		return "", err
	}
	return d.Index.Bring(ctx, key, dir, vet)
}

// Find implements [Catalogue].
func (d Directory) Find(ctx context.Context, cell string) (Published, error) {
	all, err := d.List(ctx)
	if err != nil {
		return Published{}, err
	}
	var ids []string
	for _, r := range all {
		if r.Cell == cell || r.Key == cell {
			return Published{r.Cell, r.Key, r.Channels}, nil
		}
		ids = append(ids, r.Cell)
	}
	return Published{}, notThere(d, cell, ids)
}

// notThere returns the error for a cell that a place lacks. ids are the cells it has, if
// they are known.
func notThere(at Source, cell string, ids []string) error {
	err := diag.Errorf(diag.Usage, "%s holds no cell %q", at, cell)
	if len(ids) > 0 {
		return err.WithHint("%s", diag.DidYouMean(cell, ids))
	}
	return err.WithHint("check the address and the id of the cell; `builder publish CELL --to %s` puts a cell there", at)
}

// Put implements [Destination]. pip installs the wheel. An archive is taken and verified
// instead, because pip cannot install it.
func (d Directory) Put(ctx context.Context, b Bundle, channel string, take Taker) (Receipt, error) {
	var by []string
	check := func(r index.Record, simple string) (err error) {
		if b.isTree() {
			by, err = take.pull(b, r.Key, func(dir string, vet index.Vet) (string, error) {
				a, err := d.Take(ctx, r, dir, vet)
				return a.Path, err
			})
			return err
		}
		by, err = install(ctx, simple, b)
		return err
	}
	if take == nil {
		check = nil
	}
	added, err := d.Add(ctx, b.publication(channel), check)
	if err != nil {
		return Receipt{}, err
	}
	receipt := b.Receipt(strings.Join(added.Record.Channels, ", "), d.Where(added.Record), added.Existed)
	receipt.Yanked, receipt.More, receipt.Checked = added.Record.Yanked, added.More, by
	return receipt, nil
}

// Server is an upload server. It accepts only the wheel, without the statements and
// files beside it.
type Server struct{ *upload.Server }

// String implements [Destination].
func (s Server) String() string { return upload.Prefix + s.URL }

// Put implements [Destination]. An upload server has no channels, and accepts only
// Python packages, not archives. It compares the digest in the server's index, and the
// server decides who may install from it.
func (s Server) Put(ctx context.Context, b Bundle, _ string, _ Taker) (Receipt, error) {
	if b.isTree() {
		return Receipt{}, diag.Errorf(diag.Publish, "publishing %s to %s: an upload server accepts only Python packages, not an archive of a source tree", b.Wheel.Name, s).
			WithHint("publish it to file:DIR or oci://HOST/REPOSITORY")
	}
	existed, err := s.Upload(ctx, b.Wheel)
	return b.Receipt("", s.URL, existed), err
}

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
