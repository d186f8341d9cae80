package wheel

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Places lists where installers put the files of a wheel, except .dist-info.
type Places struct {
	Packages []string // names in site-packages: horovod, horovod.pth
	Programs []string // programs, from files and from entry_points.txt
	Data     []string // directories below the prefix, two levels deep: etc/profile.d
}

// moduleEnd matches the suffix of a single-file module, and of the library directory
// added by auditwheel, after the name of the package.
var moduleEnd = regexp.MustCompile(`(\.py|(\.[\w-]+)?\.so|\.libs)$`)

// Owns reports whether a name in site-packages belongs to the project itself. All
// NVIDIA projects share the name nvidia.
func Owns(project, name string) bool {
	project, name = NormalName(project), NormalName(moduleEnd.ReplaceAllString(name, ""))
	return name == project || name == "nvidia" && strings.HasPrefix(project, "nvidia-")
}

// maxEntryPoints limits entry_points.txt, in bytes. The longest real ones have 100 KiB.
const maxEntryPoints = 1 << 20

// Installs returns the places of the files, each list sorted. It ignores errors, which
// [Wheel.Check] reports.
func (w *Wheel) Installs() Places {
	var p Places
	for _, f := range w.Files {
		scheme, below := placeOf(f.Name, w.DistInfo)
		top, rest, deeper := strings.Cut(below, "/")
		switch scheme {
		case "":
			if top != w.DistInfo {
				p.Packages = append(p.Packages, top)
			}
		case "scripts":
			p.Programs = append(p.Programs, below)
		case "data":
			if second, _, ok := strings.Cut(rest, "/"); deeper && ok {
				top += "/" + second
			}
			p.Data = append(p.Data, top)
		}
	}
	names, _ := entryPoints(w.contents, w.DistInfo)
	return Places{sortedSet(p.Packages), sortedSet(append(p.Programs, names...)), sortedSet(p.Data)}
}

// dataDir returns the name of the wheel's .data directory (PEP 427). Its subdirectories
// name install schemes.
func dataDir(distInfo string) string { return strings.TrimSuffix(distInfo, ".dist-info") + ".data" }

// placeOf returns where a file goes: its path in site-packages with an empty scheme, or
// its path below the scheme of a .data directory. purelib and platlib are the same
// directory on current systems.
func placeOf(name, distInfo string) (scheme, below string) {
	rest, ok := strings.CutPrefix(name, dataDir(distInfo)+"/")
	if !ok || distInfo == "" {
		return "", name
	}
	scheme, below, _ = strings.Cut(rest, "/")
	if scheme == "purelib" || scheme == "platlib" {
		scheme = ""
	}
	return scheme, below
}

// checkPlaces checks where installers put the files. pip treats every NAME.data as the
// .data directory of PEP 427, and uv only the wheel's own. If two files go to one
// place, the later one wins, and installers differ in which is later.
func checkPlaces(in contents, files []File, distInfo string) (problems []string) {
	if distInfo == "" {
		return nil // checkDistInfo reports it
	}
	taken := map[[2]string]string{}
	for _, f := range files {
		top, _, ok := strings.Cut(f.Name, "/")
		if ok && strings.HasSuffix(top, ".data") && top != dataDir(distInfo) {
			problems = append(problems, fmt.Sprintf("%q is in another .data directory than %q: pip installs its files elsewhere, and uv does not", f.Name, dataDir(distInfo)))
			continue
		}
		if strings.HasSuffix(f.Name, ".pyc") && unchecked(in[f.Name]) {
			problems = append(problems, fmt.Sprintf("%q forbids Python to compare it with its source: pip overwrites it, and uv keeps it", f.Name))
		}
		scheme, below := placeOf(f.Name, distInfo)
		if !slices.Contains([]string{"", "scripts", "headers", "data"}, scheme) || below == "" {
			problems = append(problems, fmt.Sprintf("%q is in a directory of .data unknown to installers", f.Name))
		}
		at := [2]string{scheme, below}
		if other, ok := taken[at]; ok {
			problems = append(problems, fmt.Sprintf("%q and %q install to the same path", other, f.Name))
		}
		taken[at] = f.Name
	}
	names, err := entryPoints(in, distInfo)
	if err != nil {
		problems = append(problems, err.Error())
	}
	slices.Sort(names)
	for i, name := range names {
		if other, ok := taken[[2]string{"scripts", name}]; ok || i > 0 && name == names[i-1] {
			problems = append(problems, fmt.Sprintf("the program %.100q of entry_points.txt exists twice %s", name, other))
		}
	}
	return problems
}

// entryPoints lists the programs installers create from entry_points.txt.
func entryPoints(in contents, distInfo string) (names []string, err error) {
	file := distInfo + "/entry_points.txt"
	if in[file] == nil {
		return nil, nil
	}
	data, err := in.ReadFile(file, maxEntryPoints)
	if err != nil {
		return nil, err
	}
	makes := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }) {
			return names, fmt.Errorf("%s has the line %.100q, which Python reads as several lines", file, line)
		}
		switch name, _, ok := strings.Cut(line, "="); {
		case strings.HasPrefix(line, "["):
			if !strings.HasSuffix(line, "]") { // some parsers accept it as a group
				return names, fmt.Errorf("%s has the line %.100q, which is not a group", file, line)
			}
			group := strings.TrimSpace(strings.Trim(line, "[]"))
			makes = group == "console_scripts" || group == "gui_scripts"
		case makes && line != "" && line[0] != '#' && line[0] != ';':
			if name = strings.TrimSpace(name); !ok || name == "" || name != strings.TrimLeft(name, ".") || strings.ContainsAny(name, `/\`) {
				return names, fmt.Errorf("%s has the line %.100q, which does not define a program", file, line)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// unchecked reports whether Python runs a bytecode file without a comparison with its
// source (PEP 552). For other files the interpreter compares a hash of the source, or
// its time and size. The time is that of the installation.
func unchecked(f *zip.File) bool {
	r, err := f.Open()
	if err != nil {
		return true // installers may handle it in any way
	}
	defer r.Close()
	var head [8]byte // a magic number, then flags: 1 for a hash, 2 to check it
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return false // too short to run
	}
	return binary.LittleEndian.Uint32(head[4:])&3 == 1
}
