package release

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/publishing/publish"
	"builder/test/kit/check"
)

// holding is a destination with one publication.
type holding struct {
	publish.Catalogue
	key string
}

func (h holding) Has(_ context.Context, key string) (bool, error) { return key == h.key, nil }
func (h holding) String() string                                  { return "file:wheels" }

// A published cell whose requirements name a wheel that the destination lacks cannot be
// installed from it.
func TestPublishNotesLackingInputs(t *testing.T) {
	cell := func(id string, e lock.Entry, inputs ...string) publish.Bundle {
		e.ID = id
		for _, in := range inputs {
			e.Inputs = append(e.Inputs, lock.Input{ID: in, Key: "key of " + in})
		}
		return publish.Bundle{Entry: e}
	}
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	err := noteMissingInputs(t.Context(), holding{key: "key of there"}, []publish.Bundle{
		cell("alone", lock.Entry{}), cell("horovod", lock.Entry{}, "rccl", "there"),
		cell("stack", lock.Entry{Expect: recipe.Expect{Wheelhouse: &recipe.Wheelhouse{}}}, "part"),
	}, note)
	want := []string{"horovod: its requirements file names the wheel of rccl, which file:wheels lacks: publish the directory of that cell too"}
	check.That(t, err == nil && slices.Equal(notes, want), "%v, %q", err, notes)
}
