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
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
)

var ncclLoad = Gate{
	Name:   "nccl-load",
	Asks:   "the library loads, and reports its version and the CUDA or HIP of its build",
	Remedy: "`compiled with CUDA .` comes from flags inside NVCC=, which must be a path: put the flags into NVCC_PREPEND_FLAGS",
	Wants:  func(e recipe.Expect) bool { return e.Library != "" && e.LibrarySays != "" },
	Needs:  Container,
	check:  checkLoad,
}

// loaded is the answer of the library.
type loaded struct {
	Code    int    `json:"code"`
	Version int    `json:"version"`
	Error   string `json:"error"` // ncclGetErrorString(ncclInvalidArgument)
}

func checkLoad(ctx context.Context, s Subject) verdict.Verdict {
	says, err := versionTexts(ctx, s.members(), s.Expect.Library)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	digests, err := digestsOf(s.Artifact, s.Expect.Library)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	end, err := s.in(s.Box).start(ctx, nil, nil, alone("nccl-load", "load.py", s.Expect.Library))
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	is, err := end.answer()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	have, err := onlyReport[loaded](is)
	if err != nil {
		return verdict.Failed("%s cannot be loaded: %v", s.Expect.Library, err).
			Because("a needed library is missing or too old in the run-time image: read the gate elf-symbols; after a crash, run load.py in that image under a debugger")
	}
	if problems := strange(is.rankEnd, digests); len(problems) > 0 {
		return verdict.Judge(problems, nil)
	}
	return judgeLoaded(have, says, s.Expect.LibrarySays)
}

func judgeLoaded(have loaded, says []string, want string) verdict.Verdict {
	var problems []string
	if len(says) != 1 || says[0] != want {
		problems = append(problems, fmt.Sprintf("its version string is %q, expected %q", says, want))
	}
	release, _, _ := strings.Cut(want, "+")
	is := cmp.Or(nccltests.VersionOf(have.Version), "no release")
	if have.Code != 0 || is != release {
		problems = append(problems, fmt.Sprintf("ncclGetVersion returns %d, which is %s, with status %d; expected %s", have.Version, is, have.Code, release))
	}
	if have.Error == "" {
		problems = append(problems, "ncclGetErrorString returns nothing")
	}
	a := verdict.Judge(problems, []string{fmt.Sprintf("loads; reports %s and %d; error 4 is %q", want, have.Version, have.Error)})
	if a.Status == verdict.Fail && is != release {
		return a.Because("the source is of another release than the cell's, %s: read the tag in the log of the step source", release)
	}
	return a
}

// versionString matches VERSION_STRING of src/init.cc. Other texts name only the
// release. RCCL names HIP in another text since 2.22.3.
var versionString = regexp.MustCompile(`^(?:[NR]CCL version (\d[^\s+]*\+\S*)|RCCL version : (\d\S*))$`)

// versionTexts returns the version strings in a library's bytes, without the leading
// words.
func versionTexts(ctx context.Context, m members, library string) (says []string, err error) {
	err = m.read(ctx, fileNamed(library), func(_ string, r io.ReaderAt) error {
		texts, err := elf.Texts(r, versionString)
		for _, t := range texts {
			match := versionString.FindStringSubmatch(t)
			says = append(says, match[1]+match[2])
		}
		return err
	})
	return says, err
}
