package doctor

import (
	"context"
	"fmt"

	"builder/internal/base/size"
)

// memory shows the host's memory. No recipe states how much its build takes.
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
	return ok("%s", text)
}
