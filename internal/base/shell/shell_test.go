package shell

import (
	"os/exec"
	"testing"

	"builder/test/kit/check"
)

// A shell parses the quoted words back to the same words.
func TestQuoteAndWord(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	for _, text := range []string{"", "plain", "it's", "''", "a b\tc\nd", "$(echo x)`echo y`$HOME", `\'"*?[]~#&;|<>`} {
		for _, word := range []string{Quote(text), Word(text)} {
			out, err := exec.Command(sh, "-c", "printf %s "+word).CombinedOutput()
			check.That(t, err == nil && string(out) == text, "%q became %q, %v", text, out, err)
		}
	}
}

func TestLineQuotesNoMoreThanItMust(t *testing.T) {
	if got, want := Line("run", "--rocm", "5.7,6.1", "--arch", ">=90", ""), "run --rocm 5.7,6.1 --arch '>=90' ''"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
