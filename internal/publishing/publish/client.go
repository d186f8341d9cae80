package publish

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/files/wheel"
	"builder/internal/input/pypi"
	"builder/internal/publishing/index"
)

// A Taker brings the publication of a key and verifies it, as its users do.
type Taker func(key string, bring func(index.Vet) (path string, err error)) (Bundle, error)

// install installs a published wheel by its hash into an empty directory, with unmodified
// pip, for the platform of its tags. A host without pip cannot check, which is an error
// too. install does not import the wheel: importing needs the run-time image, and the gate
// import has done so there.
func install(ctx context.Context, indexURL string, b Bundle) (by []string, err error) {
	scratch, err := os.MkdirTemp("", "builder-client-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	requirements, target := filepath.Join(scratch, "requirements.txt"), filepath.Join(scratch, "installed")
	line := index.Record{Project: b.project, Version: b.version, SHA256: b.Wheel.SHA256}.Requirement()
	if err := os.WriteFile(requirements, []byte(line+"\n"), 0o600); err != nil {
		return nil, err
	}
	args := slices.Concat(pipArgs(b.name), []string{"--index-url", indexURL, "--target", target, "-r", requirements})
	pip := pypi.PipCommand(ctx, []string{"python3", "-m", "pip"}, args...)
	pip.Env = append(os.Environ(), "PIP_CONFIG_FILE="+os.DevNull) // --isolated leaves out the other settings
	pip.WaitDelay = 5 * time.Second
	out, err := pip.CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out))
		return nil, diag.Errorf(diag.Publish, "installing %s from %s with pip: %w: %s", b.Wheel.Name, indexURL, err, said[strings.LastIndex(said, "\n")+1:]).
			WithHint("nothing was published; --no-check publishes without this check")
	}
	return []string{"pip"}, nil
}

// pull takes a publication, as run --from does, and verifies it.
func (take Taker) pull(b Bundle, key string, bring func(dir string, vet index.Vet) (path string, err error)) ([]string, error) {
	scratch, err := os.MkdirTemp("", "builder-client-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	again, err := take(key, func(vet index.Vet) (string, error) { return bring(scratch, vet) })
	if err != nil {
		return nil, refused(err)
	}
	if again.Wheel.SHA256 != b.Wheel.SHA256 {
		return nil, diag.Errorf(diag.Publish, "pulling %s: got sha256 %s, published was %s", b.Wheel.Name, again.Wheel.SHA256, b.Wheel.SHA256)
	}
	return []string{"pull and verify"}, nil
}

// tag is a Python tag of a wheel: py3, cp311.
var tag = regexp.MustCompile(`^([a-z]+)(\d)(\d*)$`)

// pipArgs requests the platform of the wheel instead of the host's: that of the last Python
// tag, which is the newest, such as py3 of py2.py3. A wheel for py3 has no minor version.
// pip would read "3" as 3.0, which Requires-Python refuses, so the version of the host's
// interpreter counts then.
func pipArgs(name wheel.Name) []string {
	args := []string{
		"install", "--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile",
		"--abi", name.ABI,
	}
	tags := strings.Split(name.Python, ".")
	if python := tag.FindStringSubmatch(tags[len(tags)-1]); python != nil {
		args = append(args, "--implementation", python[1])
		if python[3] != "" {
			args = append(args, "--python-version", python[2]+"."+python[3])
		}
	}
	for p := range strings.SplitSeq(name.Platform, ".") {
		args = append(args, "--platform", p)
	}
	return args
}
