package report

import (
	"encoding/xml"
	"fmt"
	"strings"

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
	s := junitSuite{Name: term.Clean(c.ID), Time: fmt.Sprintf("%.3f", c.Seconds())}
	if len(c.Verdicts) == 0 || c.Error != nil {
		r := reasonsOf(c)[0]
		s.add(r.What, string(r.Status), s.Time, r.Text, r.Remedy)
	}
	for _, v := range c.Verdicts {
		s.add(v.Gate, v.Status.String(), fmt.Sprintf("%.3f", v.Seconds), v.Evidence, v.Remedy)
	}
	return s
}

// add adds a case and counts it. status is that of a gate or of a cell.
func (s *junitSuite) add(name, status, seconds, text, remedy string) {
	one := junitCase{Class: s.Name, Name: term.Clean(name), Time: seconds}
	text = term.Clean(text)
	message := &junitMessage{firstLine(text), status, strings.TrimSpace(text + "\n" + term.Clean(remedy))}
	s.Tests++
	switch Status(status) {
	case Pass:
		one.Out = text
	case Skipped, waived:
		one.Skipped = message
		s.Skipped++
	case Fail:
		one.Failure = message
		s.Failures++
	default:
		one.Error = message
		s.Errors++
	}
	s.Cases = append(s.Cases, one)
}

// waived is the status of a gate that a cell cannot have.
const waived Status = "waived"

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
