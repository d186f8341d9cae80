package gate

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// caseStatus is the result of a test case.
type caseStatus string

const (
	casePassed  caseStatus = "passed"
	caseFailed  caseStatus = "failed" // including errors before or after the test
	caseSkipped caseStatus = "skipped"
)

// A testCase is one case of a JUnit file. Message is the reason for a failure or a
// skip.
type testCase struct {
	Class   string     `json:"class,omitempty"`
	Name    string     `json:"name"`
	Status  caseStatus `json:"status"`
	Seconds string     `json:"seconds,omitempty"`
	Message string     `json:"message,omitempty"`
}

// Bounds of a JUnit file. Its content is not trusted.
const (
	maxJUnitDepth = 8
	maxCases      = 20_000
	maxMessage    = 2_000
)

// readJUnit parses the cases of a JUnit file written by pytest. It refuses a truncated
// file, a file without cases, and a file with suites that count more cases than they
// hold. pytest counts a case once if it fails and then has an error in its teardown.
func readJUnit(text string) ([]testCase, error) {
	r := junitReader{dec: xml.NewDecoder(strings.NewReader(text))}
	for {
		token, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.take(token)
		}
		if err != nil {
			return nil, fmt.Errorf("its JUnit file is unreadable: %.200v", err)
		}
	}
	switch {
	case !r.suites:
		return nil, errors.New("its JUnit file holds no suite")
	case len(r.cases) == 0:
		return nil, errors.New("it collected no test")
	case r.counted > len(r.cases):
		return nil, fmt.Errorf("its JUnit file counts %d cases and holds %d", r.counted, len(r.cases))
	}
	return r.cases, nil
}

type junitReader struct {
	dec     *xml.Decoder
	depth   int
	suites  bool
	counted int
	cases   []testCase
	inCase  bool
}

func (r *junitReader) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		if r.depth++; r.depth > maxJUnitDepth {
			return fmt.Errorf("elements are nested deeper than %d", maxJUnitDepth)
		}
		return r.begin(t)
	case xml.EndElement:
		r.depth--
		if t.Name.Local == "testcase" {
			r.inCase = false
		}
	case xml.Directive:
		return errors.New("it declares a document type")
	}
	return nil
}

func (r *junitReader) begin(e xml.StartElement) error {
	switch e.Name.Local {
	case "testsuite":
		r.suites = true
		n := 0
		if _, err := fmt.Sscanf(attribute(e, "tests"), "%d", &n); err != nil || n < 0 || n > maxCases {
			return fmt.Errorf("a suite counts %.20q cases", attribute(e, "tests"))
		}
		r.counted += n
	case "testcase":
		if r.inCase {
			return errors.New("a case lies in a case")
		}
		if len(r.cases) == maxCases {
			return fmt.Errorf("it holds more than %d cases", maxCases)
		}
		r.inCase = true
		r.cases = append(r.cases, testCase{
			Class: cut(attribute(e, "classname"), 200), Name: cut(attribute(e, "name"), 200),
			Status: casePassed, Seconds: cut(attribute(e, "time"), 20),
		})
	case "failure", "error", "skipped":
		if !r.inCase {
			return fmt.Errorf("%s lies outside a case", e.Name.Local)
		}
		r.note(e)
	}
	return nil
}

// note sets the status of the last case. A failed case stays failed.
func (r *junitReader) note(e xml.StartElement) {
	c := &r.cases[len(r.cases)-1]
	status := caseFailed
	if e.Name.Local == "skipped" {
		status = caseSkipped
	}
	if c.Status == caseFailed {
		return
	}
	c.Status, c.Message = status, cut(attribute(e, "message"), maxMessage)
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
