package show

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"

	"builder/internal/app/judge"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/view/term"
)

// The parts of SARIF 2.1.0 that code scanners read
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				Line int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
	}
)

// SARIF returns the refusals of a report as SARIF, with one rule for each gate that refused.
// A gate that did not measure is an error there too. A binary file has no lines, but GitHub
// wants one: it is the first.
func SARIF(r judge.GateReport) ([]byte, error) {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "builder", Version: r.Builder, Rules: []sarifRule{}}
	driver := &run.Tool.Driver
	for _, a := range r.Artifacts {
		for _, v := range a.Verdicts {
			if !v.Refuses() {
				continue
			}
			run.Results = append(run.Results, sarifRefusal(a.Path, v))
			rule := sarifRule{v.Gate, sarifText{asks(v.Gate)}}
			if !slices.Contains(driver.Rules, rule) {
				driver.Rules = append(driver.Rules, rule)
			}
		}
	}
	log := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
	return json.MarshalIndent(log, "", "  ")
}

// asks returns the question of a gate. Verdicts on facts of --expect belong to no gate.
func asks(name string) string {
	for _, g := range gate.All() {
		if g.Name == name {
			return g.Asks
		}
	}
	return "the file has the expected fact"
}

func sarifRefusal(path string, v verdict.Verdict) sarifResult {
	text := v.Status.String() + ": " + v.Evidence
	if v.Remedy != "" {
		text += "\n" + v.Remedy
	}
	var at sarifLocation
	at.Physical.Artifact.URI = (&url.URL{Path: filepath.ToSlash(path)}).String()
	at.Physical.Region.Line = 1
	return sarifResult{Rule: v.Gate, Level: "error", Message: sarifText{term.Clean(text)}, Locations: []sarifLocation{at}}
}
