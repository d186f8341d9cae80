package index

import (
	"testing"

	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/test/kit/check"
)

// Statements are taken before anybody verified them, so they are few and small.
func TestStatementsAreBounded(t *testing.T) {
	from := func(artifact.Artifact) store.Place { panic("it is read") }
	err := takeSaid(t.Context(), []artifact.Artifact{{Name: "a", Size: 2 << 30}}, from)
	check.Fails(t, err, "the source lists 2147483648 bytes, the limit is")
	err = takeSaid(t.Context(), make([]artifact.Artifact, maxStatements+1), from)
	check.Fails(t, err, "the source lists 257 statements, the limit is")
}
