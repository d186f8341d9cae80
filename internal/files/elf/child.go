package elf

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Limits of the child process that reads a library. The package debug/elf and the readers
// of device code are not hardened: a few kilobytes of version tables, or of a compressed
// bundle, make them use gigabytes and minutes.
const (
	maxMemory  = 512 << 20
	freeTime   = 3 * time.Second  // of a processor, for the libraries of one file
	timePerMiB = time.Second / 32 // more for each MiB of that file
	maxWait    = 10 * time.Minute // for a child that gets no processor
)

// childName is the name under which this program starts itself to read a library.
const childName = "builder-read-elf"

// operations are what a child does with the library on its standard input. Its standard
// output gets the result.
var operations = map[string]func(r io.ReaderAt, w io.Writer) error{
	"describe":  replying(describe),
	"targets":   replying(deviceTargets),
	"functions": replying(deviceFunctions),
	"cpu":       replying(cpuUses),
}

// init turns a process with the name of a child into one. It works in every program with
// this package, so tests read libraries in the same way as builder.
func init() {
	if len(os.Args) != 3 || os.Args[0] != childName {
		return
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		panic(err) // the parent reads its first line
	}
	os.Exit(0)
}

// serve sets the limits of this process and does one operation.
func serve(operation, seconds string) error {
	limit, err := strconv.ParseUint(seconds, 10, 32)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		resource int
		most     uint64
	}{{syscall.RLIMIT_CPU, limit}, {syscall.RLIMIT_DATA, maxMemory}} {
		if err := syscall.Setrlimit(of.resource, &syscall.Rlimit{Cur: of.most, Max: of.most}); err != nil {
			return fmt.Errorf("limiting the process: %w", err)
		}
	}
	library := io.ReaderAt(os.Stdin)
	if info, err := os.Stdin.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		library = bytes.NewReader(data)
	}
	return operations[operation](library, os.Stdout)
}

// reply is the result of an operation. Fault is its error.
type reply[T any] struct {
	Fault string
	Value T
}

func replying[T any](read func(io.ReaderAt) (T, error)) func(io.ReaderAt, io.Writer) error {
	return func(r io.ReaderAt, w io.Writer) error {
		value, err := read(r)
		if err != nil {
			return gob.NewEncoder(w).Encode(reply[T]{Fault: err.Error()})
		}
		return gob.NewEncoder(w).Encode(reply[T]{Value: value})
	}
}

// ask does an operation in a child process.
func ask[T any](r io.ReaderAt, operation string) (value T, err error) {
	output, err := budgeted(r).run(operation)
	if err != nil {
		return value, err
	}
	var got reply[T]
	if err := gob.NewDecoder(bytes.NewReader(output)).Decode(&got); err != nil {
		return value, fmt.Errorf("reading the answer of a child process: %w", err)
	}
	if got.Fault != "" {
		return value, errors.New(got.Fault)
	}
	return got.Value, nil
}

// run runs a child process, and charges its time to the budget.
func (b *bounded) run(operation string) ([]byte, error) {
	if b.budget.left <= 0 {
		return nil, b.budget.exceeded()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		self = "/proc/self/exe" // also if the file was replaced since the start
	}
	ctx, cancel := context.WithTimeout(b.ctx, maxWait)
	defer cancel()
	var output, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = []string{childName, operation, strconv.Itoa(int((b.budget.left + time.Second - 1) / time.Second))}
	cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none", "GOGC=25", fmt.Sprint("GOMEMLIMIT=", maxMemory/2)}
	cmd.Stdout, cmd.Stderr = &output, &complaint
	if file, isFile := b.ReaderAt.(*os.File); isFile {
		cmd.Stdin = file // without a copy
	} else {
		cmd.Stdin = io.NewSectionReader(b.ReaderAt, 0, 1<<62)
	}
	err = cmd.Run()
	if state := cmd.ProcessState; state != nil {
		b.budget.left -= state.UserTime() + state.SystemTime()
	}
	if err == nil {
		return output.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() < 0 { // the system ends a process after its time
		b.budget.left = 0
		return nil, b.budget.exceeded()
	}
	said, _, _ := bytes.Cut(complaint.Bytes(), []byte("\n"))
	return nil, fmt.Errorf("reading it within %d MB of memory failed: %w: %s", maxMemory>>20, err, said)
}

// A Budget limits the processor time spent on the libraries of one file, over all
// libraries and all calls, and remembers what they said. A file over the limit is an
// error, never a partial result.
type Budget struct {
	all, left time.Duration
	known     map[io.ReaderAt]description
}

// NewBudget returns the budget of a file of size bytes, counted on disk, before unpacking.
func NewBudget(size int64) *Budget {
	all := freeTime + timePerMiB*time.Duration(max(0, min(size, 1<<40))>>20)
	return &Budget{all: all, left: all, known: map[io.ReaderAt]description{}}
}

func (b *Budget) exceeded() error {
	return fmt.Errorf("reading it takes more than %v of a processor, the limit for a file of its size: it unpacks, or points to the same bytes, too often", b.all)
}

// Reader returns a reader for one library of the file. The functions of this package
// charge their work on it to the budget, and stop when ctx ends.
func (b *Budget) Reader(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	return &bounded{r, b, ctx}
}

// Bounded returns a reader for a library in a file of its own. Its budget follows from
// the size of the file.
func Bounded(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	size := int64(0)
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
	}
	return NewBudget(size).Reader(ctx, r)
}

// bounded is a library with its budget.
type bounded struct {
	io.ReaderAt
	budget *Budget
	ctx    context.Context
}

// budgeted returns a library with a budget, a new one if it has none.
func budgeted(r io.ReaderAt) *bounded {
	if b, ok := r.(*bounded); ok {
		return b
	}
	return Bounded(context.Background(), r).(*bounded)
}
