package doctor

import (
	"context"
	"fmt"

	"builder/internal/base/size"
)

// memory compares the host's memory with the peak memory stated in the recipe. A run
// refuses a build too large for the host.
func memory(_ context.Context, e *exam) Finding {
	total, err := e.Memory()
	if err != nil {
		return unknown("%v", err)
	}
	free := e.Available()
	text := size.Text(total)
	if free > 0 {
		text += fmt.Sprintf(", %s of it available", size.Text(free))
	}
	r := e.work.Recipe
	switch {
	case r == nil:
		return ok("%s", text)
	case r.Memory == 0:
		return ok("%s; the need of the recipe is unknown", text)
	case total < r.Memory && e.work.Engine.Kind != Named:
		return fail("%s; the build needs %s", text, size.Text(r.Memory)).remedy("build on a larger host: --engine URL, or a runner with more memory")
	case free > 0 && free < r.Memory:
		return warn("%s; the build needs %s", text, size.Text(r.Memory)).remedy("end other programs before the build")
	}
	return ok("%s; the build needs %s", text, size.Text(r.Memory))
}
