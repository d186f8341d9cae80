package reportpage

import (
	"net/url"
	"path"

	"builder/internal/files/artifact"
	"builder/internal/view/report"
)

// maxReasons bounds the reasons and the files at the top of the page. Each cell shows its
// own.
const maxReasons = 20

// maxLogs bounds the links to logs of a reason.
const maxLogs = 3

// reference is a link. Without an address it is plain text.
type reference struct{ Text, Address string }

// reason explains why cells did not pass, with links to the cells and logs.
type reason struct {
	report.Reason
	Cells []reference // in this page
	Logs  []reference // existing logs of the first cells
}

// newReasons adds links to cells and logs to the reasons of a run.
func (v view) newReasons() []reason {
	shown := map[string]cell{}
	for _, c := range v.Cells {
		shown[c.ID] = c
	}
	var all []reason
	reasons := report.Reasons(v.Run)
	for _, r := range reasons[:min(maxReasons, len(reasons))] {
		one := reason{Reason: r}
		for _, id := range r.Cells {
			one.Cells = append(one.Cells, reference{id, "#" + shown[id].Anchor})
			for _, s := range failedSteps(shown[id].Cell) {
				log, explains := v.Log(s), r.Status == report.Errored || s.Name == gateStep+r.What
				if explains && log.Address != "" && len(one.Logs) < maxLogs {
					one.Logs = append(one.Logs, reference{path.Base(log.Text), log.Address})
				}
			}
		}
		all = append(all, one)
	}
	return all
}

// Log returns a reference to the log of a step.
func (v view) Log(s report.Step) reference { return v.o.linked(s.Log, path.Join(v.o.LogDir, s.Log)) }

// File returns a reference to an artifact.
func (v view) File(a artifact.Artifact) reference { return v.o.linked(a.Name, a.Path) }

// linked returns a reference to a file of the run. It is a link if the file exists.
func (o Options) linked(text, file string) reference {
	if text == "" || o.Link == nil {
		return reference{Text: text}
	}
	at := o.Link(file)
	if at == "" {
		return reference{Text: text}
	}
	return reference{text, (&url.URL{Path: at}).String()}
}
