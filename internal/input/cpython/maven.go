package cpython

import (
	"archive/zip"
	"cmp"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/regular"
)

// settings is the part of Maven's settings.xml that names repositories.
type settings struct {
	Mirrors []struct {
		Of      string `xml:"mirrorOf"`
		URL     string `xml:"url"`
		Blocked bool   `xml:"blocked"`
	} `xml:"mirrors>mirror"`
}

// project is the part of Maven's built-in POM that names its own repository.
type project struct {
	Repositories []struct {
		ID  string `xml:"id"`
		URL string `xml:"url"`
	} `xml:"repositories>repository"`
}

// central is the id of Maven's own repository.
const central = "central"

// MavenRepositories returns the addresses of the Maven repositories of this host, in the
// order to try: the mirrors of the user's and of Maven's settings, or, if there is none,
// the repository built into the installed Maven. It runs nothing.
func MavenRepositories() []string {
	home := mavenHome()
	files := []string{filepath.Join(home, "conf", "settings.xml")}
	if user, err := os.UserHomeDir(); err == nil {
		files = slices.Insert(files, 0, filepath.Join(user, ".m2", "settings.xml"))
	}
	var all []string
	for _, file := range files {
		var s settings
		data, err := regular.ReadFollowed(file, 1<<20)
		if err != nil || xml.Unmarshal(data, &s) != nil {
			continue // Maven's files are optional
		}
		for _, m := range s.Mirrors {
			if !m.Blocked && mirrorsCentral(m.Of) {
				all = append(all, strings.TrimSpace(m.URL))
			}
		}
	}
	if len(all) == 0 {
		all = builtIn(home)
	}
	return all
}

// mirrorsCentral reports whether a mirrorOf of Maven's settings covers its own
// repository. A name after "!" is an exception.
func mirrorsCentral(of string) bool {
	names := strings.Split(strings.ReplaceAll(of, " ", ""), ",")
	return !slices.Contains(names, "!"+central) &&
		slices.ContainsFunc(names, func(n string) bool { return n == "*" || n == central || n == "external:*" })
}

// mavenHome returns the directory of the installed Maven, or "".
func mavenHome() string {
	if dir := cmp.Or(os.Getenv("MAVEN_HOME"), os.Getenv("M2_HOME")); dir != "" {
		return dir
	}
	program, err := exec.LookPath("mvn")
	if err != nil {
		return ""
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return ""
	}
	return filepath.Dir(filepath.Dir(program))
}

// builtIn reads the POM that every project of an installed Maven inherits.
func builtIn(home string) []string {
	jars, _ := filepath.Glob(filepath.Join(home, "lib", "maven-model-builder-*.jar")) // the pattern is well formed
	for _, jar := range jars {
		var p project
		if data, err := superPOM(jar); err != nil || xml.Unmarshal(data, &p) != nil {
			continue
		}
		for _, repository := range p.Repositories {
			if repository.ID == central {
				return []string{strings.TrimSpace(repository.URL)}
			}
		}
	}
	return nil
}

func superPOM(jar string) ([]byte, error) {
	r, err := zip.OpenReader(jar)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Open("org/apache/maven/model/pom-4.0.0.xml")
	if err != nil {
		return nil, err
	}
	return regular.All(f, 1<<20)
}
