package index

import (
	"testing"

	"builder/internal/files/artifact"
	"builder/test/kit/check"
)

// Statements are taken before anybody verified them, so they are few and small.
func TestStatementsAreBounded(t *testing.T) {
	get := func(artifact.Artifact) error { panic("it is read") }
	err := Bring(nil, []artifact.Artifact{{Name: "a", Size: 2 << 30}}, nil, get)
	check.Fails(t, err, "the source lists 2147483648 bytes, the limit is")
	err = Bring(nil, []artifact.Artifact{{Name: "a"}}, nil, get) // of any size
	check.Fails(t, err, "the source lists 0 bytes, the limit is")
	err = Bring(nil, make([]artifact.Artifact, maxStatements+1), nil, get)
	check.Fails(t, err, "the source lists 257 statements, the limit is")
}
