// Package ocitest runs an OCI registry inside a test.
package ocitest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
)

// New returns an in-memory registry, with or without the referrers API.
func New(referrers bool) http.Handler {
	return registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0)))
}

// Serve starts a registry on this host, with or without the referrers API. It returns
// the address of one repository as users write it.
func Serve(referrers bool) (address string, stop func()) {
	s := httptest.NewServer(New(referrers))
	return "oci://" + strings.TrimPrefix(s.URL, "http://") + "/wheels", s.Close
}
