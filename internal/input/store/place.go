package store

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"builder/internal/base/diag"
)

// A Place is an address of a blob: an http, https or file URL, or a path. It may hold
// credentials and prints without them.
type Place string

// String returns the place without user information and query.
func (s Place) String() string { return Redact(string(s)) }

var queryPattern = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s"'?]*)\?[^\s"'#)]*`)

// Redact removes user information and queries from the URLs in a text, because they may
// hold tokens.
func Redact(text string) string {
	return queryPattern.ReplaceAllString(diag.Redact(text), "$1?…")
}

// local returns the path of a place on this host, or false for a place in the network.
func (s Place) local() (string, bool, error) {
	scheme, _, ok := strings.Cut(string(s), "://")
	switch {
	case !ok:
		return string(s), true, nil
	case scheme == "http" || scheme == "https":
		return "", false, nil
	case scheme != "file":
		return "", false, fmt.Errorf("%q is not http, https or file", scheme)
	}
	u, err := url.Parse(string(s))
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", false, fmt.Errorf("write a file URL as file:///path")
	}
	return u.Path, true, nil
}
