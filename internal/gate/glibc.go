package gate

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"builder/internal/elf"
	"builder/internal/recipe"
	"builder/internal/verdict"
	"builder/internal/wheel"
)

var glibcFloor = Gate{
	Name:   "glibc-floor",
	Asks:   "the newest symbol of glibc that the libraries want is no newer than was promised, and than the platform tag says",
	Remedy: "build on an older distribution, or promise the newer glibc: a tag that says too little lets pip install what cannot be loaded",
	Wants:  func(e recipe.Expect) bool { return e.Glibc != "" },
	check:  checkGlibc,
}

// manylinux is the platform tag of PEP 600, which names a glibc, and the older
// names of three of them (PEP 513, 571 and 599).
var (
	manylinux = regexp.MustCompile(`-manylinux_(\d+)_(\d+)_\w+$`)
	legacy    = map[string]string{"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
	older     = regexp.MustCompile(`-(manylinux1|manylinux2010|manylinux2014)_\w+$`)
)

// promisedGlibc returns the oldest glibc that a compatibility tag promises to
// run with, and "" for a tag such as linux_x86_64, which promises none.
func promisedGlibc(tag string) string {
	if m := manylinux.FindStringSubmatch(tag); m != nil {
		return m[1] + "." + m[2]
	}
	if m := older.FindStringSubmatch(tag); m != nil {
		return legacy[m[1]]
	}
	return ""
}

func checkGlibc(_ context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Wheel)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	return eachExtension(s, func(name string, r wheel.Member) (faults, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		floor := f.Floors["GLIBC"]
		if floor == "" {
			return nil, nil, fmt.Errorf("it wants no versioned symbol of glibc: it is no library of this kind of system")
		}
		if elf.CompareVersions(floor, s.Expect.Glibc) > 0 {
			faults = append(faults, fmt.Sprintf("%s wants GLIBC_%s, promised is %s", name, floor, s.Expect.Glibc))
		}
		for _, tag := range w.Name.Tags() {
			if strings.Contains(tag, "-musllinux_") {
				faults = append(faults, fmt.Sprintf("%s wants GLIBC_%s, the tag %s promises to run with musl", name, floor, tag))
			}
			if says := promisedGlibc(tag); says != "" && elf.CompareVersions(floor, says) > 0 {
				faults = append(faults, fmt.Sprintf("%s wants GLIBC_%s, the tag %s says %s", name, floor, tag, says))
			}
		}
		return faults, []string{fmt.Sprintf("%s wants GLIBC_%s", name, floor)}, nil
	})
}
