package gate

import (
	"context"
	"fmt"
	"strings"
)

// A Box is a clean container without a network that holds the artifact,
// installed, and its locked run-time dependencies, and nothing of the build. That
// of a wheelhouse holds it as files in the working directory, and uv.
type Box interface {
	// Run executes a command in the box. A command that exits with a status
	// other than zero is a Result, not an error.
	Run(ctx context.Context, c Command) (Result, error)
}

// A Command is an argument vector, and files that it finds in its working
// directory. PYTHON in Args stands for the interpreter of the box, UV for the uv of
// a box that holds a wheelhouse.
type Command struct {
	Name  string
	Args  []string
	Env   map[string]string
	Files map[string]string
}

// Result is what a command printed, standard error included, and its status.
type Result struct {
	Exit   int
	Output string
}

// run executes a command in the subject's box, if it has one.
func (s Subject) run(ctx context.Context, c Command) (Result, error) {
	if s.Box == nil {
		return Result{}, fmt.Errorf("no container to run it in")
	}
	result, err := s.Box.Run(ctx, c)
	if s.Log != nil {
		fmt.Fprintf(s.Log, "$ %s\n%s[exit %d]\n", strings.Join(c.Args, " "), result.Output, result.Exit)
	}
	return result, err
}
