package app

import "context"

// refusal returns the error with which run would end before it builds anything: the lock
// lacks a pin and --locked or --offline forbids resolving it, or no locked cell reads a
// source of --set.
func (s *Session) refusal(ctx context.Context, of Selection) error {
	if !s.Locked && !s.Offline && len(s.Overrides) == 0 {
		return nil
	}
	drafts, _, err := s.choose(of)
	if err != nil {
		return err
	}
	entries, err := s.Assembler().Entries(ctx, of.Recipe, of.Filter, drafts)
	if err != nil && !s.Locked && !s.Offline { // run resolves missing pins
		return nil
	}
	if err == nil {
		err = unusedOverrides(s.Overrides, entries)
	}
	return err
}
