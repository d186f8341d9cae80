package index

import (
	"crypto/sha256"
	"fmt"

	"builder/internal/base/atomicfile"
	"builder/internal/files/artifact"
)

// has reports whether a file is there with the sha256.
func has(path, sum string) bool {
	have, err := artifact.Of(path, "")
	return err == nil && have.SHA256 == sum
}

// put copies an artifact to a path, unless the same bytes are already there.
func put(to string, a artifact.Artifact) error {
	if has(to, a.SHA256) {
		return nil
	}
	return artifact.Copy(a, to)
}

// putBytes writes data to a path, unless the same bytes are already there.
func putBytes(to string, data []byte) error {
	if has(to, hexSum(data)) {
		return nil
	}
	return atomicfile.Write(to, data)
}

// hexSum returns the sha256 of data in hexadecimal.
func hexSum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
