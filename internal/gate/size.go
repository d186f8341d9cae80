package gate

import (
	"context"
	"fmt"
	"os"

	"builder/internal/recipe"
)

var size = Gate{
	Name:   "size",
	Asks:   "the wheel is about as large as such wheels are",
	Remedy: "a wheel that is suddenly small lost its GPU code or was built for the CPU, a large one took in libraries of others: look at device-code and elf-needed, and move the band in the recipe if the new size is right",
	Wants:  func(e recipe.Expect) bool { return e.Size != "" },
	check:  checkSize,
}

func checkSize(_ context.Context, s Subject) answer {
	low, high, err := s.Expect.SizeBand()
	if err != nil {
		return unmeasured("%v", err)
	}
	info, err := os.Stat(s.Wheel)
	if err != nil {
		return unmeasured("%v", err)
	}
	const megabyte = 1e6
	says := fmt.Sprintf("%.1f MB, promised is %s", float64(info.Size())/megabyte, s.Expect.Size)
	if info.Size() < low || info.Size() > high {
		return failed("%s", says)
	}
	return passed("%s", says)
}
