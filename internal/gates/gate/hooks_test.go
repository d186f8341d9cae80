package gate

import (
	"testing"

	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// Only a wheel that is to have MPI may change the C library, and no wheel another library.
func TestHooksOfMPI(t *testing.T) {
	for mpi, want := range map[string][]string{"true": {"/lib/libcrypto.so.3", "/lib/libc-client.so"}, "false": {"/lib/libc.so.6", "/lib/libc-2.31.so", "/lib/libcrypto.so.3", "/lib/libc-client.so"}} {
		rank := &rankEnd{Patched: []string{"/lib/libc.so.6", "/lib/libc-2.31.so", "/lib/libcrypto.so.3", "/lib/libc-client.so"}}
		ranksEnd{Ranks: []*rankEnd{nil, rank}}.allowHooks(recipe.Expect{Gates: recipe.GateSettings{"built-flags": map[string]string{"mpi": mpi}}})
		check.Same(t, "changed files with mpi "+mpi, want, rank.Patched)
	}
}
