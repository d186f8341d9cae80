package upload

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// whereCredentials is a hint with the sources of credentials, in order of precedence.
const whereCredentials = "set BUILDER_PUBLISH_USERNAME and BUILDER_PUBLISH_PASSWORD, or BUILDER_PUBLISH_TOKEN; " +
	"builder also reads TWINE_USERNAME and TWINE_PASSWORD, a netrc file and the program keyring"

// tokenUser is the user name for a token, which itself identifies the user.
const tokenUser = "__token__"

// credentials are a user name and a password. Every form of printing shows only their
// source, and encoders cannot reach them.
type credentials struct {
	// from is the source of the credentials, "" for none.
	from string

	get func() (user, password string) // a function, because %#v of an enclosing value would print a string
}

// credentialsFrom returns credentials found in the source from.
func credentialsFrom(from, user, password string) credentials {
	return credentials{from: from, get: func() (string, string) { return user, password }}
}

// String returns the source of the credentials.
func (c credentials) String() string {
	if c.get == nil {
		return "no credentials"
	}
	return "credentials from " + c.from
}

// GoString returns the same source for %#v.
func (c credentials) GoString() string { return fmt.Sprintf("upload.credentials(%q)", c.String()) }

func (c credentials) authorise(req *http.Request) {
	if c.get != nil {
		req.SetBasicAuth(c.get())
	}
}

// scrub removes the credentials from a server's answer.
func (c credentials) scrub(text string) string {
	if c.get == nil {
		return text
	}
	user, password := c.get()
	for _, secret := range []string{base64.StdEncoding.EncodeToString([]byte(user + ":" + password)), url.QueryEscape(password), password} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// advice returns a hint for a server that refuses the credentials.
func (c credentials) advice(code int) string {
	switch {
	case c.get == nil:
		return "no credentials were found for this server: " + whereCredentials
	case code == http.StatusForbidden:
		return fmt.Sprintf("the %s are wrong, or lack the right to upload there", c)
	}
	return fmt.Sprintf("the server refuses the %s: correct them there", c)
}

// find searches for credentials for a server.
func (o Options) find(ctx context.Context, u *url.URL) (credentials, error) {
	c, user, err := o.environment()
	if err != nil || c.get != nil {
		return c, err
	}
	if c, err = o.netrcFor(u, user); err != nil || c.get != nil {
		return c, err
	}
	ask := o.keyring
	if ask == nil {
		ask = func(address, user string) string { return askKeyring(ctx, address, user) }
	}
	if user == "" {
		user = tokenUser
	}
	if password := ask(u.String(), user); password != "" {
		return credentialsFrom("keyring", user, password), nil
	}
	return credentials{}, nil
}

// environment reads the environment variables. A user name without a password applies
// to the other sources.
func (o Options) environment() (c credentials, user string, err error) {
	token, password := o.env("BUILDER_PUBLISH_TOKEN"), o.env("BUILDER_PUBLISH_PASSWORD")
	if token != "" && password != "" {
		return c, "", diag.Errorf(diag.Usage, "both BUILDER_PUBLISH_TOKEN and BUILDER_PUBLISH_PASSWORD are set").
			WithHint("unset one of them")
	}
	user = o.env("BUILDER_PUBLISH_USERNAME")
	switch {
	case token != "":
		if user == "" {
			user = tokenUser
		}
		return credentialsFrom("BUILDER_PUBLISH_TOKEN", user, token), user, nil
	case password != "" && user == "":
		return c, "", diag.Errorf(diag.Usage, "BUILDER_PUBLISH_PASSWORD is set and BUILDER_PUBLISH_USERNAME is not").
			WithHint("set BUILDER_PUBLISH_USERNAME too, or put a token without a user name into BUILDER_PUBLISH_TOKEN")
	case password != "":
		return credentialsFrom("BUILDER_PUBLISH_USERNAME and BUILDER_PUBLISH_PASSWORD", user, password), user, nil
	case user != "":
		return c, user, nil
	}
	user, password = o.env("TWINE_USERNAME"), o.env("TWINE_PASSWORD")
	if password == "" {
		return c, user, nil
	}
	if user == "" {
		user = tokenUser
	}
	return credentialsFrom("TWINE_USERNAME and TWINE_PASSWORD", user, password), user, nil
}

// netrc returns the credentials for a host in the netrc file.
func (o Options) netrc(u *url.URL) (credentials, error) { return o.netrcFor(u, "") }

// netrcFor is netrc for the given user, or for any user if user is "".
func (o Options) netrcFor(u *url.URL, user string) (credentials, error) {
	file, home := o.env("NETRC"), o.env("HOME")
	switch {
	case file == "" && home == "":
		return credentials{}, nil
	case file == "":
		file = filepath.Join(home, ".netrc")
	}
	data, err := regular.ReadFollowed(file, maxNetrc)
	if errors.Is(err, fs.ErrNotExist) && o.env("NETRC") == "" {
		return credentials{}, nil
	}
	if err != nil {
		return credentials{}, diag.Errorf(diag.Usage, "reading netrc: %w", err).WithHint("set NETRC to another file")
	}
	for _, host := range []string{u.Host, u.Hostname()} {
		for _, m := range parseNetrc(string(data)) {
			if !strings.EqualFold(m.host, host) || user != "" && m.login != user || m.password == "" {
				continue
			}
			if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
				o.Warn("other users can read the passwords in %s: run chmod 600 %s", file, file)
			}
			return credentialsFrom(file, m.login, m.password), nil
		}
	}
	return credentials{}, nil
}

// maxNetrc limits a netrc file, in bytes.
const maxNetrc = 1 << 20

// machine is an entry of a netrc file.
type machine struct{ host, login, password string }

// parseNetrc reads the entries of hosts. It ignores the entry default, because a
// password is meant for one server only.
func parseNetrc(text string) []machine {
	var all []machine
	m := &machine{} // collects fields outside any entry
	words := netrcWords(text)
	for i := 0; i < len(words); i++ {
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch words[i] {
		case "machine":
			all = append(all, machine{host: value})
			m = &all[len(all)-1]
		case "login":
			m.login = unquote(value)
		case "password":
			m.password = unquote(value)
		case "default":
			m = &machine{}
			continue
		case "account":
		default:
			continue
		}
		i++
	}
	return all
}

// netrcWords returns the words without comments and macros. A comment is a line of its
// own, and a macro ends with an empty line.
func netrcWords(text string) []string {
	var words []string
	macro := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		macro = macro && len(fields) > 0
		if macro || len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if i := slices.Index(fields, "macdef"); i >= 0 && i == max(0, len(fields)-2) {
			macro, fields = true, fields[:i]
		}
		words = append(words, fields...)
	}
	return words
}

// unquote removes the quotes around a value, as curl does.
func unquote(value string) string {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// keyringPatience is the time the user has to unlock a keyring.
const keyringPatience = 30 * time.Second

// askKeyring gets a password from the program keyring. It returns "" without the
// program or without a password.
func askKeyring(ctx context.Context, address, user string) string {
	program, err := exec.LookPath("keyring")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, keyringPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "get", address, user).Output()
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(out), "\r\n")
}
