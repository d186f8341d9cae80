package pipelines

import (
	"context"
	"fmt"

	"dagger.io/dagger"
)

// CacheBytes returns the size of the engine's cache.
func (e *Engine) CacheBytes(ctx context.Context) (bytes int64, err error) {
	err = e.ask(ctx, func(ctx context.Context, s *session) error {
		n, err := s.client.Engine().LocalCache().EntrySet().DiskSpaceBytes(ctx)
		bytes = int64(n)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("asking for the size of the engine's cache: %w", err)
	}
	return bytes, nil
}

// Prune removes unused data from the engine's cache: down to its limit, or all of it.
func (e *Engine) Prune(ctx context.Context, all bool) error {
	err := e.ask(ctx, func(ctx context.Context, s *session) error {
		return s.client.Engine().LocalCache().Prune(ctx, dagger.EngineCachePruneOpts{UseDefaultPolicy: !all})
	})
	if err != nil {
		return fmt.Errorf("collecting the engine's cache: %w", err)
	}
	return nil
}

// ask sends a query in a new session.
func (e *Engine) ask(ctx context.Context, question func(context.Context, *session) error) error {
	ctx, s, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	return question(ctx, s)
}
