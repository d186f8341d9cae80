package gate

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var glibcFloor = Gate{
	Name:   "glibc-floor",
	Asks:   "the newest symbol of glibc that the libraries want is no newer than was promised, and than the platform tag says",
	Remedy: "build on an older distribution, or promise the newer glibc: a tag that says too little lets pip install what cannot be loaded",
	Wants:  func(e recipe.Expect) bool { return e.Glibc != "" },
	check:  checkGlibc,
}

func checkGlibc(ctx context.Context, s Subject) verdict.Verdict {
	of, err := wheel.ParseName(filepath.Base(s.Artifact))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return eachExtension(ctx, s, func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		floor := f.Floors["GLIBC"]
		if floor == "" {
			return nil, nil, fmt.Errorf("it wants no versioned symbol of glibc: it is no library of this kind of system")
		}
		if elf.CompareVersions(floor, s.Expect.Glibc) > 0 {
			problems = append(problems, fmt.Sprintf("%s wants GLIBC_%s, promised is %s", name, floor, s.Expect.Glibc))
		}
		for _, tag := range of.Tags() {
			if strings.Contains(tag, "-musllinux_") {
				problems = append(problems, fmt.Sprintf("%s wants GLIBC_%s, the tag %s promises to run with musl", name, floor, tag))
			}
			says, _ := wheel.Glibc(tag[strings.LastIndex(tag, "-")+1:])
			if says != "" && elf.CompareVersions(floor, says) > 0 {
				problems = append(problems, fmt.Sprintf("%s wants GLIBC_%s, the tag %s says %s", name, floor, tag, says))
			}
		}
		return problems, []string{fmt.Sprintf("%s wants GLIBC_%s", name, floor)}, nil
	})
}
