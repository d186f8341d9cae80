package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var rdma = Gate{
	Name:   "rdma",
	Asks:   "libibverbs is linked, opened at run time or unused, as requested",
	Remedy: "RDMA_CORE=1 links libibverbs only if -libverbs comes after the objects: see the patches rdma-libverbs and rdma-libverbs-order",
	Promise: recipe.Promise{
		Of:    "",
		OneOf: []string{"linked", "dlopened", "absent"},
		Says:  "how libibverbs is reached",
	},
	Wants: states("rdma"),
	check: checkRDMA,
}

// verbs describes how the library uses libibverbs, as its bytes show.
type verbs struct {
	needed    string   // the soname in DT_NEEDED
	undefined []string // undefined symbols named ibv_…
	opens     []string // names for dlopen
}

// state describes how libibverbs is reached. Undefined symbols without the library are
// an error, not a valid state.
func (v verbs) state() string {
	switch {
	case v.needed != "" && len(v.undefined) > 0:
		return "linked"
	case v.needed != "":
		return "linked but unused"
	case len(v.undefined) > 0:
		return "used but not linked"
	case len(v.opens) > 0:
		return "dlopened"
	}
	return "absent"
}

func (v verbs) String() string {
	return fmt.Sprintf("%s: NEEDED %s; %d undefined ibv_ symbols %s; names for dlopen %s",
		v.state(), cmp.Or(v.needed, "none"), len(v.undefined), cmp.Or(listed(v.undefined, 40), "none"), cmp.Or(strings.Join(v.opens, " "), "none"))
}

var verbsSoname = regexp.MustCompile(`^libibverbs\.so(\.\d+)*$`)

func checkRDMA(ctx context.Context, s Subject) verdict.Verdict {
	promised := settings[string](s.Expect, "rdma")
	return s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		var v verbs
		for _, soname := range f.Needed {
			if verbsSoname.MatchString(soname) {
				v.needed = soname
			}
		}
		for _, u := range f.Undefined {
			if strings.HasPrefix(strings.TrimPrefix(u.Name, "_"), "ibv_") {
				v.undefined = append(v.undefined, u.Name)
			}
		}
		if v.opens, err = elf.Texts(r, verbsSoname); err != nil {
			return nil, nil, err
		}
		if v.state() != promised {
			return []string{fmt.Sprintf("%s: expected libibverbs %s, it is %v", name, promised, v)}, nil, nil
		}
		return nil, []string{fmt.Sprintf("%s: libibverbs is %v", name, v)}, nil
	})
}
