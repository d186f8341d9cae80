package gate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
)

// claims holds what the bytes of Horovod's extension have of each part, by the name in
// NAME_built(). The wheel's own word is compared with it.
type claims map[string]bool

// A part of the extension leaves functions that it calls, or the names of its classes,
// which stay in a stripped library (type information of C++, v0.28.1).
var partsOfExtension = map[string]struct {
	calls   *regexp.Regexp
	classes string
}{
	"mpi":  {regexp.MustCompile(`^MPI_(Allreduce|Init_thread)$`), "N7horovod6common13MPIControllerE"},
	"gloo": {nil, "N7horovod6common14GlooControllerE"},
	"nccl": {regexp.MustCompile(`^ncclAllReduce$`), "N7horovod6common13NCCLAllreduceE"},
	"rocm": {regexp.MustCompile(`^hip[A-Z]`), ""},
	"cuda": {regexp.MustCompile(`^(__)?cuda[A-Z]`), ""},
}

var classOfExtension = regexp.MustCompile(`^N7horovod6common\d+(MPIController|GlooController|NCCLAllreduce)E$`)

// claims reads the extensions of the wheel.
func (s Subject) claims(ctx context.Context) (claims, error) {
	c := claims{}
	err := s.read(ctx, s.extensions, func(_ string, r io.ReaderAt) error { return c.read(r) })
	return c, err
}

// read adds the parts of one extension.
func (c claims) read(r io.ReaderAt) error {
	f, err := elf.Read(r)
	if err != nil {
		return err
	}
	classes, err := elf.Texts(r, classOfExtension)
	if err != nil {
		return err
	}
	for name, part := range partsOfExtension {
		has := slices.Contains(classes, part.classes) || part.calls != nil && slices.ContainsFunc(f.Undefined, func(u elf.Symbol) bool { return part.calls.MatchString(u.Name) })
		c[name] = c[name] || has
	}
	return nil
}

// compare returns the claims that the bytes deny, and names those that they support.
// word is how the claim was made.
func (c claims) compare(says map[string]bool, word string) (denied []string, agreed string) {
	for _, name := range slices.Sorted(maps.Keys(says)) {
		switch {
		case says[name] && !c[name]:
			denied = append(denied, fmt.Sprintf("%s of %s is a claim that the extension's bytes deny: it has no such part", word, name))
		case !says[name] && c[name]:
			denied = append(denied, fmt.Sprintf("no %s of %s is a claim that the extension's bytes deny: it has such a part", word, name))
		}
	}
	return denied, "the bytes of the extension agree on " + strings.Join(slices.Sorted(maps.Keys(says)), " ") + ", and all else is the wheel's own word"
}
