package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"builder/internal/plan/lock"
)

// seal gives locks the sum of their pins, as builder lock would have: seal FILE...
func seal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: seal FILE...")
	}
	for _, name := range args {
		var f lock.File
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &f))
		ts.Check(os.WriteFile(ts.MkAbs(name), f.Encode(), 0o644))
	}
}

// edit copies a file with another text in the place of a pattern, wherever that
// is: edit FROM TO PATTERN TEXT.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: edit FROM TO PATTERN TEXT")
	}
	pattern, before := regexp.MustCompile(args[2]), ts.ReadFile(args[0])
	after := pattern.ReplaceAllString(before, strings.ReplaceAll(args[3], `\n`, "\n"))
	if after == before {
		ts.Fatalf("%s has no %s", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(after), 0o644))
}

// registry serves every image, and writes its address in the place of REGISTRY:
// registry FILE... A file $WORK/moved/TAG gives a tag another digest.
func registry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: registry FILE...")
	}
	server := httptest.NewServer(&imageServer{moved: ts.MkAbs("moved"), known: map[string]string{}})
	ts.Defer(server.Close)
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "REGISTRY", strings.TrimPrefix(server.URL, "http://"))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
}

// imageServer serves the index of an image for every tag, each with one manifest.
type imageServer struct {
	moved string // directory of what makes a tag another image
	mu    sync.Mutex
	known map[string]string // from the digest of an index to the index
}

func (i *imageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	tag := path.Base(r.URL.Path)
	index, ok := i.known[tag]
	if !ok {
		salt, _ := os.ReadFile(filepath.Join(i.moved, tag)) // there is none before it moves
		index = fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":7,"platform":{"os":"linux","architecture":"amd64"}}]}`,
			indexType, digestOf(tag+string(salt)))
		i.known[digestOf(index)] = index
	}
	w.Header().Set("Content-Type", indexType)
	w.Header().Set("Docker-Content-Digest", digestOf(index))
	w.Header().Set("Content-Length", fmt.Sprint(len(index)))
	if r.Method != http.MethodHead {
		fmt.Fprint(w, index)
	}
}

const indexType = "application/vnd.oci.image.index.v1+json"

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
