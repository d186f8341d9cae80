package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/internal/publishing/publish"
)

// indexSigner signs the states of an index with the key of the session.
func (s *Session) indexSigner(trust signing.Trust) *index.Signer {
	return &index.Signer{Key: s.SigningKey, Trust: trust, Memory: signing.Memory(s.seenLogs()), Note: s.Note}
}

// signing lets a directory sign the changes of its index.
func (s *Session) signing(at publish.Catalogue, trust signing.Trust) {
	if d, ok := at.(publish.Directory); ok {
		d.Signed(s.indexSigner(trust))
	}
}

// SignIndex signs a whole index, after it verified the statements about every wheel and
// the bytes of every file. From then on every change of the index is signed. With anew it
// signs a state that does not follow from the last signature.
func SignIndex(ctx context.Context, s *Session, at publish.Directory, anew bool) (index.State, error) {
	if _, err := s.SigningKey(); err != nil { // makes the key of a new home, which then is trusted
		return index.State{}, err
	}
	trust, err := s.Trusted()
	if err != nil {
		return index.State{}, err
	}
	s.signing(at, trust)
	return at.Sign(ctx, trust, anew)
}

// indexPlace returns the place of an index, which a path names with file: or by a URL.
func indexPlace(path string) (store.Place, bool) {
	switch {
	case strings.HasPrefix(path, "https://"), strings.HasPrefix(path, "http://"):
		return store.Place(path), true
	case strings.HasPrefix(path, "file:"):
		d, err := publish.OpenCatalogue(path, false)
		if err != nil {
			return "", false
		}
		return store.Place(strings.TrimPrefix(d.String(), "file:")), true
	}
	return "", false
}

func isIndex(path string) bool {
	_, ok := indexPlace(path)
	return ok
}

// verifyIndex compares an index with its signature.
func (s *Session) verifyIndex(ctx context.Context, place store.Place, trust signing.Trust) (Verified, error) {
	state, wrong, err := index.Signed(ctx, place, trust, signing.Memory(s.seenLogs()))
	if ctx.Err() != nil {
		return Verified{}, context.Cause(ctx)
	}
	c := attest.Check{Name: "index", Wrong: wrong, Remedy: "install nothing from there before you know the reason; its publisher replaces a damaged or missing wheel with `builder publish CELL --to …`, and signs other changes with `builder publish sign`"}
	if errors.Is(err, fs.ErrNotExist) {
		c.Wrong = []string{"it has no signature: " + index.SignatureFile + " is missing"}
	} else if err != nil {
		c.Wrong = []string{err.Error()}
	}
	if errors.Is(err, signing.ErrStranger) {
		c.Remedy = "to trust its publisher, give the public key with --trust FILE (with a trust-root: in a trust file that it signed); compare the ids: `builder key show FILE.pub`"
	}
	if len(c.Wrong) == 0 {
		c.Remedy = ""
		what := fmt.Sprintf("%d files", len(state.Files))
		if strings.HasPrefix(string(place), "http") {
			what += ", of which pages, records and requirements were compared"
		}
		c.Seen = fmt.Sprintf("%s, signed by %s on %s", what, state.By, state.Made.UTC().Format(time.DateTime))
	}
	name := place.String()
	return Verified{Artifact: artifact.Artifact{Name: name, Path: string(place)}, Checks: []attest.Check{c}}, nil
}
