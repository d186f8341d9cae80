package deb

import (
	"testing"

	"builder/internal/input/store"
	"builder/test/kit/check"
)

func TestBlob(t *testing.T) {
	p := Package{Name: "g++", Path: "pool/main/g/gcc/g++_14~1_amd64.deb", Size: 3, SHA256: "ab"}
	want := store.Blob{Name: "g++_14~1_amd64.deb", Size: 3, SHA256: "ab"}
	check.Same(t, "Blob", want, p.Blob())
}

func TestURLs(t *testing.T) {
	const (
		mirror   = "https://mirror.example/debian"
		snapshot = "https://snapshot.example/"
		date     = "20231114T221320Z"
	)
	p := Package{Path: "pool/main/g/gcc/g++_14~1+b2_amd64.deb"}
	for name, c := range map[string]struct {
		mirrors        []string
		snapshot, date string
		path           string
		want           []string
	}{
		"nothing": {},
		"mirrors in order": {
			mirrors: []string{mirror + "/", "http://other.example/debian"},
			want:    []string{mirror + "/pool/main/g/gcc/g++_14~1+b2_amd64.deb", "http://other.example/debian/pool/main/g/gcc/g++_14~1+b2_amd64.deb"},
		},
		"snapshot last": {
			mirrors: []string{mirror}, snapshot: snapshot, date: date,
			want: []string{mirror + "/pool/main/g/gcc/g++_14~1+b2_amd64.deb", snapshot + "archive/debian/" + date + "/pool/main/g/gcc/g++_14~1+b2_amd64.deb"},
		},
		"snapshot without a date": {snapshot: snapshot},
		"date without a snapshot": {date: date},
		"escaped":                 {mirrors: []string{mirror}, path: "pool/a b?c#d%e.deb", want: []string{mirror + "/pool/a%20b%3Fc%23d%25e.deb"}},
	} {
		q := p
		if c.path != "" {
			q.Path = c.path
		}
		check.Same(t, name, c.want, URLs(c.mirrors, c.snapshot, c.date, q.Path))
	}
}
