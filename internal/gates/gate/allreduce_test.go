package gate

import (
	"context"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// launched records the arguments of horovodrun and answers like two good ranks.
type launched struct{ args *string }

// Run implements [Box].
func (l launched) Run(_ context.Context, c Command) (Result, error) {
	*l.args = strings.Join(c.Args, " ")
	return Result{Output: strings.NewReplacer("[1,0]<stdout>:", "[0]", "[1,1]<stdout>:", "[1]").Replace(ranks)}, nil
}

// MPICH's launcher refuses Open MPI's option to start two ranks on one processor, and
// labels lines differently.
func TestLaunchers(t *testing.T) {
	for launcher, want := range map[string]string{
		"mpi": "--mpi --mpi-args=--oversubscribe PYTHON", "mpich": "localhost:2 --mpi PYTHON", "gloo": "localhost:2 --gloo PYTHON",
	} {
		var args string
		v := checkAllreduce(t.Context(), Subject{Box: launched{&args}, Expect: recipe.Expect{Launcher: launcher, Import: []string{"horovod.torch"}}})
		if v.Status != verdict.Pass || !strings.Contains(args, want) {
			t.Errorf("%s: %q: %+v", launcher, args, v)
		}
	}
}
