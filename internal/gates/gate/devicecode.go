package gate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var deviceCode = Gate{
	Name:   "device-code",
	Asks:   "the GPU targets inside are the requested ones",
	Remedy: "the compiler chose its own targets: pass HCC_AMDGPU_TARGET (ROCm) or the compute capability list (CUDA) to it",
	Wants:  func(e recipe.Expect) bool { return len(e.DeviceCode) > 0 },
	check:  checkDeviceCode,
}

func checkDeviceCode(ctx context.Context, s Subject) verdict.Verdict {
	want := slices.Sorted(slices.Values(s.Expect.DeviceCode))
	return s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		targets, err := elf.DeviceTargets(r)
		if err != nil {
			return nil, nil, err
		}
		var have []string
		for _, t := range targets {
			have = append(have, t.String())
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return []string{fmt.Sprintf("%s holds code for %v, expected %v", name, have, want)}, nil, nil
		}
		return nil, []string{fmt.Sprintf("%s holds code for %s", name, strings.Join(have, ", "))}, nil
	})
}
