package gate

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	rnd "math/rand/v2"
)

// seed returns the randomness of the tasks. In a shared box all gates have the same, so
// that equal launches are one.
func (s Subject) seed() [32]byte {
	if shared, ok := s.Box.(*Shared); ok {
		return shared.seed
	}
	return newSeed()
}

func newSeed() (seed [32]byte) {
	_, _ = rand.Read(seed[:]) // it never returns an error
	return seed
}

// random returns the source of random data of a task. Each task has its own, so that the
// data of one tell nothing about those of another.
func (s Subject) random(task string) *rnd.Rand {
	seed := s.seed()
	return rnd.New(rnd.NewChaCha8(sha256.Sum256(append(seed[:], task...))))
}

// nonce returns what marks the answer of a gate's program.
func (s Subject) nonce(gate string) string {
	random := s.random("nonce of " + gate)
	return fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
}
