// Package guest runs programs that nobody has to trust on this host: a wheel or a library
// under test, with access to the GPUs and without access to the keys, the home and the
// processes of the user.
package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"builder/internal/base/diag"
)

// nobody is the user and the group of a guest.
const nobody = 65534

// A Guest is a way to run programs. The zero Guest runs nothing.
type Guest struct {
	kind   kind
	bwrap  []string // start of bubblewrap's command line
	user   *syscall.Credential
	hidden []string // files and directories that a guest must not see
}

type kind int

const (
	none      kind = iota
	contained      // bubblewrap, with namespaces of its own
	otherUser      // the user nobody, in the namespaces of the host
	asCaller       // the user of this process
)

// AsCaller returns the Guest that runs programs as the user of this process. It is for
// the launcher that a user names, whose ranks may run on other hosts.
func AsCaller() Guest { return Guest{kind: asCaller} }

// Find returns a Guest for this host: bubblewrap, or for root another user if this host
// lets bubblewrap make no namespaces. bwrap is the path of bubblewrap, and why says why
// there is none. Guests never see the files and directories in hidden.
func Find(ctx context.Context, bwrap string, why error, hidden ...string) (Guest, error) {
	g := Guest{kind: contained, hidden: append(slices.Clone(hidden), "/run")}
	var faults []error
	if bwrap == "" {
		faults = append(faults, fmt.Errorf("bubblewrap is missing: %w", why))
	} else {
		for _, options := range [][]string{{"--unshare-user"}, {}} {
			g.bwrap = append([]string{bwrap}, options...)
			err := g.try(ctx)
			if err == nil {
				return g, nil
			}
			faults = append(faults, fmt.Errorf("bubblewrap: %w", err))
			if os.Geteuid() != 0 { // only root makes namespaces without a user namespace
				break
			}
		}
	}
	if os.Geteuid() == 0 && runtime.GOOS == "linux" {
		g.kind, g.user = otherUser, &syscall.Credential{Uid: nobody, Gid: nobody, Groups: deviceGroups()}
		err := g.try(ctx)
		if err == nil {
			return g, nil
		}
		faults = append(faults, fmt.Errorf("another user: %w", err))
	}
	return Guest{}, diag.Errorf(diag.Usage, "this host cannot isolate the artifact, which would run with your rights: %w", errors.Join(faults...)).
		WithHint("allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or user.max_user_namespaces), or run the command as root")
}

// Found reports whether g runs programs.
func (g Guest) Found() bool { return g.kind != none }

// try runs a program that does nothing.
func (g Guest) try(ctx context.Context) error {
	cmd, err := g.Command(ctx, Program{Path: "/bin/sh", Args: []string{"-c", ":"}, Dir: "/"})
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Weaker says what a Guest does not have, or "".
func (g Guest) Weaker() string {
	switch g.kind {
	case otherUser:
		return "the artifact runs as the user nobody without namespaces of its own: it sees processes, the network, and files that others may read"
	case asCaller:
		return "not isolated: the artifact ran with your rights"
	}
	return ""
}

// A Program is a program to run and all that it may see. Relative paths are an error.
type Program struct {
	Path    string
	Args    []string
	Env     []string // complete
	Dir     string
	Read    []string // files and directories beside those of the system
	Write   []string // directories, see [Guest.Give]
	Network bool     // the network of the host, not a loopback of its own
	Stdin   io.Reader
	Grace   time.Duration // between SIGTERM and SIGKILL; 0 is five seconds
}

// Command returns the command that runs a program as a guest, in a process group of its
// own. [Guest.Run] runs it.
func (g Guest) Command(ctx context.Context, p Program) (*exec.Cmd, error) {
	for _, path := range slices.Concat([]string{p.Path, p.Dir}, p.Read, p.Write) {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%q is not an absolute path", path)
		}
	}
	if _, err := exec.LookPath(p.Path); err != nil {
		return nil, errors.Unwrap(err)
	}
	var cmd *exec.Cmd
	switch g.kind {
	case contained:
		args, err := g.arguments(p)
		if err != nil {
			return nil, err
		}
		// The environment is bubblewrap's own: LD_LIBRARY_PATH of the program would load
		// its libraries into bubblewrap, outside of the container.
		cmd = exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = []string{"LC_ALL=C"}
	case otherUser, asCaller:
		if err := g.reachable(p); err != nil {
			return nil, err
		}
		cmd = exec.CommandContext(ctx, p.Path, p.Args...)
		cmd.Env, cmd.Dir = p.Env, p.Dir
	default:
		return nil, errors.New("no guest was chosen to run the program")
	}
	// In a session of its own a guest has no terminal to type into.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: g.user}
	return cmd, nil
}

// Give makes an empty directory one that a guest may write to.
func (g Guest) Give(dir string) error {
	if g.kind != otherUser {
		return nil
	}
	return os.Chown(dir, nobody, nobody)
}

// Take makes a directory of a guest, with its content, one that it may only read.
func (g Guest) Take(dir string) error {
	if g.kind != otherUser {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, os.Geteuid(), os.Getegid())
	})
}

// reachable returns an error if the user nobody cannot reach the files of a program.
func (g Guest) reachable(p Program) error {
	if g.kind != otherUser {
		return nil
	}
	for _, path := range slices.Concat([]string{p.Path, p.Dir}, p.Read) {
		for at := filepath.Dir(path); ; at = filepath.Dir(at) {
			info, err := os.Stat(at)
			if err != nil {
				return err
			}
			if info.Mode().Perm()&1 == 0 {
				return diag.Errorf(diag.Usage, "%s: %s is closed to the user nobody, as which the artifact runs", path, at).
					WithHint("let others enter it (chmod o+x), or put the files elsewhere; TMPDIR names the directory for temporary files")
			}
			if at == "/" {
				break
			}
		}
	}
	return nil
}

// deviceGroups lists the groups that may use the GPUs.
func deviceGroups() []uint32 {
	var groups []uint32
	for _, path := range devices() {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o060 != 0o060 {
			continue
		}
		if of, ok := info.Sys().(*syscall.Stat_t); ok && of.Gid != 0 && !slices.Contains(groups, of.Gid) {
			groups = append(groups, of.Gid)
		}
	}
	return groups
}
