package regular

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/test/kit/must"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Chdir(t.TempDir()) // the path of a socket must be short
	for _, err := range []error{
		os.WriteFile("file", []byte("four"), 0o600), os.Symlink("file", "link"), os.Symlink("pipe", "to-pipe"),
		os.Symlink("/dev/zero", "to-device"), os.Mkdir("dir", 0o700), syscall.Mkfifo("pipe", 0o600),
	} {
		must.Succeed(t, err)
	}
	l := must.Get(net.Listen("unix", "socket"))(t)
	defer l.Close()
	for _, c := range []struct{ path, open, follow string }{
		{"file", "", ""},
		{"link", "a symbolic link", ""},
		{"dir", "a directory", "a directory"},
		{"pipe", "a named pipe", "a named pipe"},
		{"socket", "a socket", "a socket"},
		{"/dev/zero", "a device", "a device"},
		{"to-pipe", "a symbolic link", "a named pipe"},
		{"to-device", "a symbolic link", "a device"},
		{"none", "no such file", "no such file"},
	} {
		for what, read := range map[string]func(string, int64) ([]byte, error){c.open + "/open": Read, c.follow + "/follow": ReadFollowed} {
			want, kind := strings.Split(what, "/")[0], strings.Split(what, "/")[1]
			data, err := within(t, func() ([]byte, error) { return read(c.path, 4) })
			switch {
			case want == "" && (err != nil || string(data) != "four"):
				t.Errorf("%s %s: %q, %v", kind, c.path, data, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s %s: %v, want %q", kind, c.path, err, want)
			}
		}
	}
	if _, err := Open("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// within fails the test if f blocks, as on a pipe without a writer.
func within(t *testing.T, f func() ([]byte, error)) (data []byte, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() { data, err = f(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	return data, err
}

func TestAFileLargerThanItsBoundIsNotRead(t *testing.T) {
	path := must.File(t, "file", "four")
	if data, err := Read(path, 4); err != nil || string(data) != "four" {
		t.Errorf("at its bound: %q, %v", data, err)
	}
	if data, err := Read(path, 3); err == nil || data != nil {
		t.Errorf("above its bound: %q, %v", data, err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err) // the file system does not support sparse files
	}
	if _, err := Read(path, 1<<20); err == nil {
		t.Error("a terabyte was read")
	}
}

// A program writes through io.Copy, which prefers the ReadFrom of its target.
func TestBufferBoundsAProgram(t *testing.T) {
	for _, whole := range []bool{false, true} {
		b := &Buffer{Max: 1000, Whole: whole}
		cmd := exec.Command("head", "-c", "100000", "/dev/zero")
		cmd.Stdout = b
		err := cmd.Run()
		if len(b.Bytes()) > 1000 || (err != nil) != whole {
			t.Errorf("whole %v: %d bytes, %v", whole, len(b.Bytes()), err)
		}
	}
	if _, err := (&Buffer{Max: 1, Whole: true}).Write([]byte("ab")); err == nil || err.Error() != "it printed more than 1 bytes" {
		t.Errorf("got %v", err)
	}
	b := &Buffer{Max: 4}
	for _, text := range []string{"ab", "cd", "ef"} {
		if n, err := b.Write([]byte(text)); n != 2 || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	if b.String() != "abcd" {
		t.Errorf("kept %q", b)
	}
}
