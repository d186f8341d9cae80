package version

import (
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/elf"
)

// advise adds a hint to an error about part, a value of a list. It guesses no release and
// no GPU by their letters: 2.1.2 is far from 2.12, and code for one GPU runs on no other.
func advise(err *diag.Error, part string, known []string) error {
	known = Ascending(known)
	list := "known: " + strings.Join(known, ", ")
	if coarser, ok := Coarser(part, known); ok {
		return err.WithHint("did you mean %q? %s", coarser, list)
	}
	if Is(part) || elf.Architecture(part) != "" || elf.IsArchitecture(part) {
		return err.WithHint("%s", list)
	}
	if slices.ContainsFunc(known, Is) {
		known = append(known, Latest)
	}
	return err.WithHint("%s", diag.DidYouMean(part, known))
}
