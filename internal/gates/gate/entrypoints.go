package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// readEntryPoints reads an entry_points.txt as sorted lines "[group] name = value". It
// refuses lines that installers read in different ways.
func readEntryPoints(data []byte) ([]string, error) {
	var all []string
	group := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		name, value, ok := strings.Cut(line, "=")
		switch {
		case line == "":
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			group = line
		case !ok || group == "" || strings.TrimLeft(line, " \t#;") != line:
			return nil, fmt.Errorf("the line %.100q is no entry point", line)
		default:
			all = append(all, entryPoint(group, name, value))
		}
	}
	slices.Sort(all)
	return all, nil
}

func entryPoint(group, name, value string) string {
	return fmt.Sprintf("%s %s = %s", group, strings.TrimSpace(name), strings.TrimSpace(value))
}

// projectEntryPoints reads the entry points of a pyproject.toml.
func projectEntryPoints(data []byte) ([]string, error) {
	var file struct {
		Project struct {
			Scripts     map[string]string            `toml:"scripts"`
			GUIScripts  map[string]string            `toml:"gui-scripts"`
			EntryPoints map[string]map[string]string `toml:"entry-points"`
		} `toml:"project"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("reading pyproject.toml: %w", err)
	}
	var all []string
	add := func(group string, entries map[string]string) {
		for name, value := range entries {
			all = append(all, entryPoint("["+group+"]", name, value))
		}
	}
	add("console_scripts", file.Project.Scripts)
	add("gui_scripts", file.Project.GUIScripts)
	for group, entries := range file.Project.EntryPoints {
		add(group, entries)
	}
	slices.Sort(all)
	return all, nil
}
