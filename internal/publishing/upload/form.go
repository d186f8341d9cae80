package upload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime/multipart"
	"os"
	"strings"
	"sync"

	"builder/internal/base/regular"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
)

// maxMetadata limits METADATA, in bytes. Its description is usually a readme.
const maxMetadata = 4 << 20

// A column is a field of METADATA and its name in the form.
type column struct{ form, metadata string }

// single are the fields allowed once. multiple are the fields that may be repeated.
var (
	single = []column{
		{"metadata_version", "Metadata-Version"},
		{"name", "Name"},
		{"version", "Version"},
		{"summary", "Summary"},
		{"description_content_type", "Description-Content-Type"},
		{"author", "Author"},
		{"author_email", "Author-Email"},
		{"maintainer", "Maintainer"},
		{"maintainer_email", "Maintainer-Email"},
		{"license", "License"},
		{"license_expression", "License-Expression"},
		{"keywords", "Keywords"},
		{"home_page", "Home-Page"},
		{"download_url", "Download-Url"},
		{"requires_python", "Requires-Python"},
	}
	multiple = []column{
		{"classifiers", "Classifier"},
		{"platform", "Platform"},
		{"supported_platform", "Supported-Platform"},
		{"license_file", "License-File"},
		{"project_urls", "Project-Url"},
		{"dynamic", "Dynamic"},
		{"requires_dist", "Requires-Dist"},
		{"requires_external", "Requires-External"},
		{"provides_dist", "Provides-Dist"},
		{"provides_extra", "Provides-Extra"},
		{"obsoletes_dist", "Obsoletes-Dist"},
	}
)

// required is the number of leading fields in single required by every server.
const required = 3

// A form is the body of an upload: the bytes before the file and after it.
type form struct {
	wheel      artifact.Artifact
	name       wheel.Name
	kind       string // content type
	head, tail []byte
	ask        bool // send Expect: 100-continue before the file
}

// worthAsking is the minimum size of a file, in bytes, for asking the server first
// whether it accepts the upload.
const worthAsking = 1 << 20

func newForm(a artifact.Artifact) (*form, error) {
	f := &form{wheel: a, ask: a.Size >= worthAsking}
	var err error
	if f.name, err = wheel.ParseName(a.Name); err != nil {
		return nil, err
	}
	fields, err := readFields(a)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of the wheel: %w", err)
	}
	fields = append([]field{
		{":action", "file_upload"},
		{"protocol_version", "1"},
		{"filetype", "bdist_wheel"},
		{"pyversion", f.name.Python},
		{"sha256_digest", a.SHA256},
	}, fields...)
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, field := range fields {
		if err := w.WriteField(field.name, field.value); err != nil {
			return nil, err
		}
	}
	if _, err := w.CreateFormFile("content", a.Name); err != nil {
		return nil, err
	}
	at := b.Len()
	if err := w.Close(); err != nil {
		return nil, err
	}
	f.kind, f.head, f.tail = w.FormDataContentType(), b.Bytes()[:at], b.Bytes()[at:]
	return f, nil
}

type field struct{ name, value string }

// readFields returns the fields of METADATA under their names in the form.
func readFields(a artifact.Artifact) ([]field, error) {
	w, err := wheel.Open(a.Path)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	text, err := w.ReadFile(w.DistInfo+"/METADATA", maxMetadata)
	if err != nil {
		return nil, err
	}
	var fields []field
	for i, c := range single {
		if value := w.Metadata.Get(c.metadata); value != "" && value != "UNKNOWN" {
			fields = append(fields, field{c.form, value})
		} else if i < required {
			return nil, fmt.Errorf("METADATA has no %s", c.metadata)
		}
	}
	for _, c := range multiple {
		for _, value := range w.Metadata.Values(c.metadata) {
			fields = append(fields, field{c.form, value})
		}
	}
	if description := describe(w.Metadata, string(text)); description != "" {
		fields = append(fields, field{"description", description})
	}
	return fields, nil
}

// describe returns the description: the text below the fields, or in old metadata a
// field.
func describe(h wheel.Header, text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if _, body, ok := strings.Cut(text, "\n\n"); ok && strings.TrimSpace(body) != "" {
		return body
	}
	return h.Get("Description")
}

func (f *form) size() int64 { return int64(len(f.head)) + f.wheel.Size + int64(len(f.tail)) }

// errChanged is an error of this host. Retrying does not help.
var errChanged = errors.New("the wheel has changed")

// A body reads a form once. The transport reads it in its own goroutine, possibly after
// the answer arrived.
type body struct {
	mu       sync.Mutex
	form     *form
	file     *os.File
	rest     io.Reader // of the current part
	part     int
	sum      hash.Hash
	done     int64 // bytes of the file
	progress func(done, total int64)
	err      error // of the file
	closed   bool
}

func (f *form) open(progress func(done, total int64)) (*body, error) {
	file, err := regular.Follow(f.wheel.Path)
	if err != nil {
		return nil, err
	}
	return &body{form: f, file: file, rest: bytes.NewReader(f.head), sum: sha256.New(), progress: progress}, nil
}

// Read implements [io.Reader].
func (b *body) Read(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, os.ErrClosed
	}
	for {
		n, err := b.rest.Read(data)
		if b.part == 1 && n > 0 {
			b.sum.Write(data[:n]) // a hash accepts all bytes
			b.done += int64(n)
			b.progress(b.done, b.form.wheel.Size)
		}
		if errors.Is(err, io.EOF) && b.part < 2 {
			err = b.next()
		} else if err != nil && b.part == 1 {
			b.err = err
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next switches to the next part. It adds the end of the form only if the file had the
// right size and digest. Servers refuse a form without its end.
func (b *body) next() error {
	b.part++
	if b.part == 1 {
		b.rest = io.LimitReader(b.file, b.form.wheel.Size+1)
		return nil
	}
	if sum := hex.EncodeToString(b.sum.Sum(nil)); sum != b.form.wheel.SHA256 || b.done != b.form.wheel.Size {
		b.err = fmt.Errorf("%w: it has %d bytes with sha256 %s, and had %d bytes with sha256 %s", errChanged, b.done, sum, b.form.wheel.Size, b.form.wheel.SHA256)
		return b.err
	}
	b.rest = bytes.NewReader(b.form.tail)
	return nil
}

// Close implements [io.Closer]. After Close the body reads nothing and reports no
// progress.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	return b.file.Close()
}

// ours returns the error of the file, if any.
func (b *body) ours() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
