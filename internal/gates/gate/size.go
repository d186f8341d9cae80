package gate

import (
	"context"
	"fmt"
	"os"

	"builder/internal/base/size"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var artifactSize = Gate{
	Name:   "size",
	Asks:   "the artifact has about the usual size",
	Remedy: "a suddenly small wheel lost code, such as that for GPUs, a large one took in libraries of others: read the gates device-code and elf-needed; if the new size is correct, move the band in the recipe",
	Wants:  func(e recipe.Expect) bool { return e.Size != "" },
	check:  checkSize,
}

func checkSize(_ context.Context, s Subject) verdict.Verdict {
	low, high, err := s.Expect.SizeBand()
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	info, err := os.Stat(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	says := fmt.Sprintf("%s, expected %s", size.Text(info.Size()), s.Expect.Size)
	if info.Size() < low || info.Size() > high {
		return verdict.Failed("%s", says)
	}
	return verdict.Passed("%s", says)
}
