package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/evidence/signing"
)

// homeKey is the name of the key below the state directory that signs where no
// other is named.
const homeKey = "key.pem"

// publicOf returns where the public half of a key lies.
func publicOf(path string) string { return path + ".pub" }

func keyFlag() cli.Flag {
	return &cli.StringFlag{Name: "key", EnvVars: []string{"BUILDER_KEY"}, Usage: "sign with the private key in `FILE`; the default is one of this host's own, made when it is first needed"}
}

func trustFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "trust", EnvVars: []string{"BUILDER_TRUST"}, Usage: "count signatures of the public key in `FILE`, beside those of this host's own"}
}

// signingKey reads the key that was named, or that of the host, which is made
// where there is none.
func signingKey(named, home string, note func(string, ...any)) (signing.Key, error) {
	if named != "" {
		return signing.ReadKey(named)
	}
	path := filepath.Join(home, homeKey)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		err := makeKey(path, time.Time{})
		switch {
		case err == nil:
			note("made a key that signs what this host builds; others check with %s", publicOf(path))
		case !errors.Is(err, fs.ErrExist): // another process was faster
			return signing.Key{}, err
		}
	}
	k, err := signing.ReadKey(path)
	if err != nil {
		return k, err
	}
	return k, publicHalf(k, publicOf(path))
}

// publicHalf makes sure that the public half of a key lies at path: a process
// that was killed may have left it out.
func publicHalf(k signing.Key, path string) error {
	err := k.Public().Write(path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	p, err := signing.ReadPublicKey(path)
	if err == nil && p.ID != k.Public().ID {
		err = diag.Errorf(diag.Usage, "%s is not the public half of the key beside it", path).
			WithHint("remove it: the right one is written anew")
	}
	return err
}

// makeKey makes a key with its public half beside it. Neither replaces a file.
func makeKey(path string, until time.Time) error {
	k, err := signing.NewKey(until)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := k.Write(path); err != nil {
		return err
	}
	return k.Public().Write(publicOf(path))
}

// trusted returns the keys whose signatures count: those that were named, and
// that of the host.
func trusted(named []string, home string) (signing.Trust, error) {
	t := signing.Trust{Now: time.Now()}
	own := publicOf(filepath.Join(home, homeKey))
	if _, err := os.Stat(own); err == nil {
		named = append(slices.Clone(named), own)
	}
	var faults []error
	for _, path := range named {
		if path == "" { // a variable that is set to nothing
			continue
		}
		k, err := signing.ReadPublicKey(path)
		t.Keys, faults = append(t.Keys, k), append(faults, err)
	}
	return t, errors.Join(faults...)
}

func keyCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "key", Usage: "the keys that statements about artifacts are signed with",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			{
				Name: "new", Usage: "make a key, and FILE.pub for those who check its signatures", ArgsUsage: "FILE", OnUsageError: usageError, HideHelpCommand: true,
				Description: "The key is ECDSA on P-256 in PEM; only its owner can read FILE. No file is replaced.",
				Flags:       keyNewFlags(),
				Action:      func(c *cli.Context) error { return doKeyNew(c, out) },
			},
			{
				Name: "show", Usage: "print the public key of this host", OnUsageError: usageError, HideHelpCommand: true,
				Action: func(c *cli.Context) error {
					if err := unexpected(c, 0); err != nil {
						return err
					}
					home, err := homeDir()
					if err != nil {
						return err
					}
					k, err := signingKey("", home, out.note)
					if err != nil {
						return err
					}
					out.say("%s", k.Public().PEM())
					return nil
				},
			},
		},
	}
}

func keyNewFlags() []cli.Flag {
	return []cli.Flag{&cli.IntFlag{Name: "days", Usage: "after `N` days its signatures count no longer; 0 is for ever"}}
}

func doKeyNew(c *cli.Context, out printer) error {
	if err := unexpected(c, 1); err != nil {
		return err
	}
	path, days := c.Args().First(), c.Int("days")
	if path == "" || days < 0 {
		return diag.Errorf(diag.Usage, "%s: name the file, and a number of days that is not negative", c.Command.HelpName).
			WithHint("%s signing.pem --days 365", c.Command.HelpName)
	}
	for _, file := range []string{path, publicOf(path)} {
		if _, err := os.Lstat(file); err == nil {
			return diag.Errorf(diag.Usage, "%s exists: a key is never replaced", file).WithHint("name another file, or move it away")
		}
	}
	var until time.Time
	if days > 0 {
		until = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, days)
	}
	if err := makeKey(path, until); err != nil {
		return diag.Errorf(diag.Usage, "making a key: %w", err)
	}
	k, err := signing.ReadPublicKey(publicOf(path))
	if err != nil {
		return err
	}
	out.say("%s\n%s\n%s", path, publicOf(path), k.ID)
	return nil
}
