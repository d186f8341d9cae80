package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"builder/internal/input/store"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// terminal opens a pseudo-terminal of 80 columns: the user's side and the programs'
// side.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { person.Close() })
	var number, unlocked uint32
	size := [4]uint16{24, 80}
	for request, value := range map[uintptr]unsafe.Pointer{
		syscall.TIOCSPTLCK: unsafe.Pointer(&unlocked),
		syscall.TIOCGPTN:   unsafe.Pointer(&number),
		syscall.TIOCSWINSZ: unsafe.Pointer(&size),
	} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(value)); errno != 0 {
			t.Skip(errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// onTerminal starts the program on its own terminal in an empty directory.
func onTerminal(t *testing.T, dir string, env []string, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	person, program := terminal(t)
	path := must.Get(exec.LookPath("builder"))(t)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, program, program, program
	cmd.Env = append([]string{"TERM=xterm-256color", "PATH=/nowhere", "BUILDER_HOME=" + filepath.Join(dir, "home"), "BUILDER_NO_INSTALL=1"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	program.Close()
	return cmd, person
}

// patience limits the time of a process, so that a hanging one fails with its output.
const patience = time.Minute

// until reads the terminal until a text appears and returns everything read.
func until(t *testing.T, person *os.File, text string) string {
	t.Helper()
	var seen strings.Builder
	deadline := time.AfterFunc(patience, func() { person.Close() })
	defer deadline.Stop()
	for buffer := make([]byte, 4096); !strings.Contains(seen.String(), text); {
		n, err := person.Read(buffer)
		must.Hold(t, err == nil, "%v, and no %q in\n%s", err, text, seen.String())
		seen.Write(buffer[:n])
	}
	return seen.String()
}

// Ctrl-C is answered at once, before running steps end.
func TestAnInterruptIsAnswered(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	free, err := store.Lock(context.Background(), filepath.Join(dir, "out", ".lock"), nil)
	must.Succeed(t, err)
	defer free()
	cmd, person := onTerminal(t, dir, nil, "run", "horovod", "--rocm", "5.7", "--locked")
	until(t, person, "another run writes to out")
	must.Get(person.WriteString("\x03"))(t)
	until(t, person, "stopping the running steps (interrupt again to stop at once)")
	go func() { _, _ = io.Copy(io.Discard, person) }() // until the program ends
	err = cmd.Wait()
	check.That(t, cmd.ProcessState.ExitCode() == 130, "exit code %d: %v", cmd.ProcessState.ExitCode(), err)
}

// A run updates lines in place on a terminal, with colours, and with --progress plain it
// prints a log. TestDetect of progress has the other terminals.
func TestTerminals(t *testing.T) {
	home := t.TempDir()
	must.Succeed(t, sealCells("", filepath.Join(home, "home"), []string{"horovod", "rocm=5.7"}))
	const cell, frame, green = "horovod-0.28.1+rocm5.7-tf2.13.0-cp311", "\x1b[?2026h", "\x1b[32m"
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live ", live), func(t *testing.T) {
			args := []string{"run", "horovod", "--rocm", "5.7", "--locked"}
			if !live {
				args = append(args, "--progress", "plain")
			}
			_, person := onTerminal(t, home, nil, args...)
			seen := until(t, person, ".whl")
			check.Same(t, fmt.Sprintf("lines move %q", seen), live, strings.Contains(seen, frame))
			check.Same(t, fmt.Sprintf("colours %q", seen), live, strings.Contains(seen, green))
			for _, want := range []string{"pass", cell, "from store"} {
				check.That(t, strings.Contains(seen, want), "no %q in\n%q", want, seen)
			}
		})
	}
}
