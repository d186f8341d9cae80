package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

// checkLog checks every file of a log with Tessera: the checkpoint, the entries, and all
// tiles of hashes.
func checkLog(dir, key string) error {
	text, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	files := client.FileFetcher{Root: dir}
	if err := fsck.New(verifier.Name(), verifier, files, leaves, fsck.Opts{N: 2}).Check(context.Background()); err != nil {
		return fmt.Errorf("tessera: %w", err)
	}
	head, _, _, err := client.FetchCheckpoint(context.Background(), files.ReadCheckpoint, verifier, verifier.Name())
	if err != nil {
		return fmt.Errorf("tessera: %w", err)
	}
	fmt.Printf("%s: Tessera checks %d entries\n", verifier.Name(), head.Size)
	return nil
}

// leaves returns the hashes of the entries in a file.
func leaves(data []byte) (all [][]byte, err error) {
	var entries api.EntryBundle
	if err := entries.UnmarshalText(data); err != nil {
		return nil, err
	}
	for _, e := range entries.Entries {
		all = append(all, rfc6962.DefaultHasher.HashLeaf(e))
	}
	return all, nil
}
