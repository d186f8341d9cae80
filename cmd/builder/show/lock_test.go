package show

import (
	"fmt"
	"testing"

	"builder/internal/plan/lock"
	"builder/test/kit/check"
)

// TestLockRows: many new pins of a kind share a row, and a changed pin has its own.
func TestLockRows(t *testing.T) {
	changes := []lock.PinChange{{Kind: "image", Name: "debian-13", Is: "2026-11-01"}}
	for i := range manyPins {
		changes = append(changes, lock.PinChange{Kind: "package", Name: fmt.Sprint("p", i), Is: "1"})
	}
	changes = append(changes, lock.PinChange{Kind: "package", Name: "z", Was: "1", Is: "2"})
	want := [][]string{
		{"image", "debian-13", "-", "2026-11-01"},
		{"package", "20 new", "-", "in the lock"},
		{"package", "z", "1", "2"},
	}
	check.Same(t, "rows", want, lockRows(changes))
	check.Same(t, "rows for pins", manyPins-1, len(lockRows(changes[1:manyPins])))
}
