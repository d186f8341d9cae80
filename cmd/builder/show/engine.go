package show

import (
	"time"

	"builder/internal/base/size"
	"builder/internal/build/native"
	"builder/internal/view/term"
)

// Engine prints the state of the native engine.
func Engine(out term.Printer, s native.Status) {
	switch {
	case s.Running:
		out.Say("running %s at %s (process %d, since %s, %d connections)", s.Version, s.Address, s.PID, s.Since.Format(time.DateTime), s.Connections)
	case s.Built:
		out.Say("built %s, not running", s.Version)
	default:
		out.Say("not built: the first run builds it")
	}
	out.Say("cache %s, %s", s.StateDir, size.Text(s.StateBytes))
	out.Say("log %s", s.Log)
}
