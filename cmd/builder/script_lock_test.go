package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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

// seal writes the sum of its pins into each lock, like builder lock: seal FILE...
func seal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: seal FILE...")
	}
	for _, name := range args {
		ts.Check(sealLock(ts.MkAbs(name)))
	}
}

func sealLock(path string) error {
	data, err := os.ReadFile(path)
	var f lock.File
	if err := errors.Join(err, json.Unmarshal(data, &f)); err != nil {
		return err
	}
	return os.WriteFile(path, f.Encode(), 0o600)
}

// edit copies a file and replaces every match of a pattern: edit FROM TO PATTERN TEXT.
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

// registry serves every image and replaces REGISTRY in files by its address: registry
// FILE... A file $WORK/moved/TAG changes the digest of a tag.
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

// imageServer serves an image index with one manifest for every tag.
type imageServer struct {
	moved string // directory of files; a file TAG changes the image of the tag
	mu    sync.Mutex
	known map[string]string // image indexes by digest
}

func (i *imageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	tag := path.Base(r.URL.Path)
	index, ok := i.known[tag]
	if !ok {
		salt, _ := os.ReadFile(filepath.Join(i.moved, tag)) // missing until the tag moves
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
