package gate

import (
	"context"
	"path/filepath"

	"builder/internal/files/inspect"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
)

var partsAgree = Gate{
	Name:   "parts-agree",
	Asks:   "the wheels of a stack's parts are of one platform: one ROCm, one Python, one C++ ABI, one MPI, or the axes named by the stack",
	Remedy: "give the parts equal axes, and rebuild a part whose bytes differ from the axes of its cell",
	Wants:  func(e recipe.Expect) bool { return e.Wheelhouse != nil && len(e.Wheelhouse.Agree) > 0 },
	check:  checkPartsAgree,
}

func checkPartsAgree(ctx context.Context, s Subject) verdict.Verdict {
	dir, house, _, err := s.wheelhouse()
	if err != nil {
		return verdict.Failed("%v", err)
	}
	var parts []stack.Part
	for _, p := range house.Parts {
		report, err := inspect.File(ctx, filepath.Join(dir, stack.Folder, p.Name))
		if err != nil {
			return verdict.Failed("%v", err)
		}
		name, err := wheel.ParseName(p.Name)
		if err != nil {
			return verdict.Failed("%v", err)
		}
		parts = append(parts, stack.Part{
			Name: name.Distribution + "-" + name.Version, Axes: p.Axes, Report: &report, StableABI: name.ABI == "abi3",
		})
	}
	if len(parts) == 0 {
		return verdict.Unmeasured("the wheelhouse has no parts")
	}
	return verdict.Judge(stack.Agree(s.Expect.Wheelhouse.Agree, parts))
}
