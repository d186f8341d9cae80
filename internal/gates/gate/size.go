package gate

import (
	"context"
	"fmt"
	"os"
	"strings"

	"builder/internal/base/size"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var artifactSize = Gate{
	Name:   "size",
	Asks:   "the artifact has about the usual size",
	Remedy: "a suddenly small wheel lost code, such as that for GPUs, a large one took in libraries of others: read the gates device-code and elf-needed; if the new size is correct, move the band in the recipe",
	Promise: recipe.Promise{
		Of:   sizeBand(""),
		Says: "smallest and largest size of the artifact (11MB..21MB)",
	},
	Wants: states("size"),
	check: checkSize,
}

// A sizeBand is a range of sizes such as 11MB..21MB.
type sizeBand string

// Check implements [recipe.Checker].
func (b sizeBand) Check(problem recipe.Report) {
	if _, _, err := b.bytes(); err != nil {
		problem("", "%w", err)
	}
}

// bytes returns the smallest and the largest size.
func (b sizeBand) bytes() (low, high int64, err error) {
	from, to, ok := strings.Cut(string(b), "..")
	low, err1 := size.Parse(from)
	high, err2 := size.Parse(to)
	if !ok || err1 != nil || err2 != nil || low > high {
		return 0, 0, fmt.Errorf("%q is not a range such as 50KB..500KB or 11MB..21MB: write whole numbers with KB, MB or GB", b)
	}
	return low, high, nil
}

func checkSize(_ context.Context, s Subject) verdict.Verdict {
	band := settings[sizeBand](s.Expect, "size")
	low, high, _ := band.bytes() // [Gate.Check] has reported an error
	info, err := os.Stat(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	says := fmt.Sprintf("%s, expected %s", size.Text(info.Size()), band)
	if info.Size() < low || info.Size() > high {
		return verdict.Failed("%s", says)
	}
	return verdict.Passed("%s", says)
}
