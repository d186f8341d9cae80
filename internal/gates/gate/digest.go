package gate

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"strings"
	"sync"
)

// sources are the files of this package: the gates and what they run.
//
//go:embed *.go scripts abi
var sources embed.FS

// Digest returns the sha256 of the gates of this program, in hex, over their source
// files without tests. A verdict of gates with another digest may be of a gate that has
// become stricter since.
var Digest = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		of := sha256.Sum256(data)
		sum.Write([]byte(path + "\x00"))
		sum.Write(of[:])
		return nil
	})
	if err != nil {
		panic(err) // embedded files can be read
	}
	return hex.EncodeToString(sum.Sum(nil))
})
