package report

import (
	"encoding/xml"
	"fmt"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/view/term"
)

// The elements of JUnit's XML as read by CI servers: a suite for each cell, a case for
// each gate, and one case for a cell without a result.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Name    string       `xml:"name,attr"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"` // seconds
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"` // seconds
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns the run as test results. A gate that did not run is an error, because
// CI servers treat skipped tests as passed. A waived failure is skipped.
func JUnit(run Run) ([]byte, error) {
	all := junitSuites{Name: "builder"}
	for _, c := range run.Cells {
		all.Suites = append(all.Suites, suiteOf(c))
	}
	data, err := xml.MarshalIndent(all, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing JUnit: %w", err)
	}
	return append([]byte(xml.Header), append(data, '\n')...), nil
}

func suiteOf(c Cell) junitSuite {
	s := junitSuite{Name: term.Clean(c.ID), Time: fmt.Sprintf("%.3f", float64(c.Seconds()))}
	for _, v := range c.Verdicts {
		s.Cases = append(s.Cases, caseOf(c, v))
	}
	switch status := StatusOf(c); {
	case c.Error != nil:
		text := term.Clean(strings.TrimSpace(c.Error.Message + "\n" + c.Error.Hint))
		s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: "result", Time: s.Time, Error: &junitMessage{firstLine(text), c.Error.Code, text}})
	case status == Skipped:
		s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: "result", Time: "0.000", Skipped: &junitMessage{"the cell has no result", string(status), ""}})
	case len(c.Verdicts) == 0:
		s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: "result", Time: s.Time, Error: &junitMessage{"no gate checked it", string(status), ""}})
	}
	for _, one := range s.Cases {
		s.Tests++
		switch {
		case one.Failure != nil:
			s.Failures++
		case one.Error != nil:
			s.Errors++
		case one.Skipped != nil:
			s.Skipped++
		}
	}
	return s
}

func caseOf(c Cell, v verdict.Verdict) junitCase {
	one := junitCase{Class: term.Clean(c.ID), Name: term.Clean(v.Gate), Time: fmt.Sprintf("%.3f", v.Seconds)}
	evidence := term.Clean(v.Evidence)
	message := &junitMessage{firstLine(evidence), v.Status.String(), term.Clean(v.Evidence + "\n" + v.Remedy)}
	switch v.Status {
	case verdict.Pass:
		one.Out = evidence
	case verdict.Waived:
		one.Skipped = message
	case verdict.Fail:
		one.Failure = message
	default:
		one.Error = message
	}
	return one
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
