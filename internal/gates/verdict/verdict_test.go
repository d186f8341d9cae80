package verdict

import (
	"fmt"
	"testing"

	"builder/test/kit/check"
)

func TestStatusTexts(t *testing.T) {
	for _, s := range []Status{NotMeasured, Pass, Fail, Waived} {
		text, _ := s.MarshalText()
		var back Status
		err := back.UnmarshalText(text)
		check.That(t, err == nil && back == s, "%v: got %v, %v", s, back, err)
	}
	var zero Status
	check.That(t, zero == NotMeasured, "the zero value must be not-measured")
	err := zero.UnmarshalText([]byte("passed"))
	check.That(t, err != nil, "an unknown verdict must not be read")
}

func TestStatusOutsideItsRange(t *testing.T) {
	for s, want := range map[Status]string{-1: "not-measured", 0: "not-measured", 3: "waived", 4: "not-measured"} {
		check.Same(t, fmt.Sprint(int(s)), want, s.String())
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		problems, seen []string
		status         Status
		evidence       string
	}{
		{nil, nil, NotMeasured, "nothing to check"},
		{nil, []string{"a", "b"}, Pass, "a; b"},
		{[]string{"x", "y"}, []string{"a"}, Fail, "x; y"},
		{[]string{"x"}, nil, Fail, "x"},
	} {
		a := Judge(c.problems, c.seen)
		check.That(t, a.Status == c.status && a.Evidence == c.evidence, "%q, %q: %v %q", c.problems, c.seen, a.Status, a.Evidence)
	}
}
