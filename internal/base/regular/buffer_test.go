package regular

import (
	"os/exec"
	"testing"
)

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
