package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

var builtFlags = Gate{
	Name:   "built-flags",
	Asks:   "nccl_built(), rocm_built(), cuda_built(), mpi_built() and gloo_built() return the promised values, in Python and in the extension, as far as its bytes have them",
	Remedy: "the library was compiled against another stack than the cell's, or without one",
	Promise: recipe.Promise{
		Of:   map[string]string{},
		Says: "NAME_built() of the module: true; false; or for nccl a version",
	},
	Wants: wantsBuiltFlags,
	Needs: Container,
	check: checkBuiltFlags,
}

// built returns the promised values of NAME_built().
func built(e recipe.Expect) map[string]string {
	return settings[map[string]string](e, "built-flags")
}

func checkBuiltFlags(ctx context.Context, s Subject) verdict.Verdict {
	promised := built(s.Expect)
	said, err := s.in(s.Box).answers(ctx, "built-flags")
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	claims, err := claimsOf(ctx, s.members(), s.Expect.Extensions)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var all []map[string]string
	for _, is := range said {
		report, err := onlyReport[struct{ Flags map[string]string }](is)
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		all = append(all, report.Flags)
	}
	have := all[0]
	var problems, seen []string
	for _, name := range slices.Sorted(maps.Keys(promised)) {
		problem, err := builtFault(have[name], promised[name])
		if err != nil {
			return verdict.Unmeasured("%s_built(): %v", name, err)
		}
		if problem != "" {
			problems = append(problems, name+"_built() is "+problem)
		}
		seen = append(seen, fmt.Sprintf("%s_built()=%s", name, have[name]))
	}
	for _, library := range all[1:] {
		for _, name := range slices.Sorted(maps.Keys(library)) {
			if library[name] != have[name] {
				problems = append(problems, fmt.Sprintf("%s_built() of the module is %s, and that of its extension is %s", name, have[name], library[name]))
			}
		}
	}
	flags := map[string]bool{}
	for _, name := range []string{"mpi", "gloo", "nccl", "rocm", "cuda"} {
		flags[name] = have[name] != "false" && have[name] != "0"
	}
	denied, agreed := claims.compare(flags, "_built()")
	problems = append(problems, denied...)
	return verdict.Judge(problems, append(seen, agreed))
}

func wantsBuiltFlags(e recipe.Expect) bool { return states("built-flags")(e) && len(e.Import) > 0 }

// builtFault describes how the result of NAME_built() differs from its promise. The
// promise is true, false, or a constraint on a version; the function returns versions
// in NCCL's number format.
func builtFault(have, promise string) (string, error) {
	if promise == "true" || promise == "false" {
		if have != promise {
			return fmt.Sprintf("%s, expected %s", cmp.Or(have, "missing"), promise), nil
		}
		return "", nil
	}
	want, err := version.ParseConstraint(promise)
	if err != nil {
		return "", err
	}
	number, err := strconv.Atoi(have)
	if err != nil || number <= 0 {
		return fmt.Sprintf("%s, expected version %s", cmp.Or(have, "missing"), promise), nil
	}
	is, err := version.Parse(nccltests.VersionOf(number))
	if err != nil {
		return "", err
	}
	if !want.Allows(is) {
		return fmt.Sprintf("%s, which is version %s; expected %s", have, is, promise), nil
	}
	return "", nil
}

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

// claimsOf reads the extensions of a wheel.
func claimsOf(ctx context.Context, m members, extensions []string) (claims, error) {
	c := claims{}
	return c, m.read(ctx, filesLike(extensions), func(_ string, r io.ReaderAt) error { return c.read(r) })
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
