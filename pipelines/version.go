package pipelines

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Version asks the engine at an address for its version, with the client program
// at a path. It does not wait longer than the context allows, not even for an
// engine that hangs.
func Version(ctx context.Context, address, client string) (string, error) {
	e := Engine{Address: address, CLI: client}
	ctx, s, err := e.connect(ctx)
	if err != nil {
		return "", err
	}
	defer s.close(ctx)
	v, err := s.client.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the engine at %s for its version: %w", address, err)
	}
	return v, nil
}

// Image returns the name of the engine's image that a client program wants, as
// its upstream publishes it; "" where it does not say.
func Image(ctx context.Context, client string) string {
	if client == "" {
		return ""
	}
	// dagger v0.19.10 (image://REGISTRY/engine:v0.19.10) linux/amd64
	out, err := exec.CommandContext(ctx, client, "version").Output()
	_, rest, found := strings.Cut(string(out), "image://")
	image, _, closed := strings.Cut(rest, ")")
	if err != nil || !found || !closed {
		return ""
	}
	return image
}
