package pipelines

import (
	"context"
	"fmt"
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
