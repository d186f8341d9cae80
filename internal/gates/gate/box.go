package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A Box is a clean container without a network. It holds the installed artifact and its
// locked run-time dependencies, and nothing of the build.
type Box interface {
	// Run executes a command in the box. A nonzero exit status is a Result, not an
	// error.
	Run(ctx context.Context, c Command) (Result, error)
}

// A Command is an argument vector and files for its working directory. PYTHON in Args
// stands for the interpreter of the box.
type Command struct {
	Name  string
	Args  []string
	Env   map[string]string
	Files map[string]string
	Stdin string
}

// Result is the output of a command, including standard error, and its exit status.
type Result struct {
	Exit   int
	Output string
}

// run executes a command in the subject's box, if it has one.
func (s Subject) run(ctx context.Context, c Command) (Result, error) {
	if s.Box == nil {
		return Result{}, errNoBox
	}
	result, err := s.Box.Run(ctx, c)
	s.log(c, result)
	return result, err
}

var errNoBox = errors.New("no container to run the artifact in")

// log writes a command and its result to the log.
func (s Subject) log(c Command, result Result) {
	if s.Log != nil {
		fmt.Fprintf(s.Log, "$ %s\n%s[exit %d]\n", strings.Join(c.Args, " "), result.Output, result.Exit)
	}
}
