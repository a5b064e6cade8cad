package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/synapse-module/workers/protocol"
)

var startCases = []Case{
	{"start/no flags", "without --socket and --nonce a worker exits 64 and says so", atStart, true, func(ctx context.Context, s *session) error {
		return s.ending(ctx, protocol.ExitUsage)
	}},
	{"start/nobody listens", "a socket that nobody listens on is exit 74", atStart, true, func(ctx context.Context, s *session) error {
		return s.ending(ctx, protocol.ExitIO, "--socket", nowhere(), "--nonce", randomHex(protocol.NonceBytes))
	}},
	{"start/long path", "a socket path over the system's limit is exit 64", atStart, true, func(ctx context.Context, s *session) error {
		return s.ending(ctx, protocol.ExitUsage, "--socket", tooLong(), "--nonce", randomHex(protocol.NonceBytes))
	}},
	{"start/version", "--version prints a JSON object that names the engine, and exits 0", atStart, true, func(ctx context.Context, s *session) error {
		p, err := launch(ctx, s.o, append([]string{"--version"}, s.o.Args...)...)
		if err != nil {
			return err
		}
		defer p.kill()
		if err := p.exits(protocol.ExitOK); err != nil {
			return err
		}
		var v struct {
			Engine protocol.Engine `json:"engine"`
		}
		if err := json.Unmarshal([]byte(p.stdout.String()), &v); err != nil {
			return fmt.Errorf("stdout: %w", err)
		}
		if v.Engine.Name == "" {
			return errors.New(`the member "engine" with a "name" is missing`)
		}
		return nil
	}},
	{"start/help", "--help exits 0", atStart, true, func(ctx context.Context, s *session) error {
		p, err := launch(ctx, s.o, "--help")
		if err != nil {
			return err
		}
		defer p.kill()
		return p.exits(protocol.ExitOK)
	}},
}

// ending starts the worker with these flags and wants it to end with status and
// to say why.
func (s *session) ending(ctx context.Context, status int, flags ...string) error {
	p, err := launch(ctx, s.o, append(flags, s.o.Args...)...)
	if err != nil {
		return err
	}
	defer p.kill()
	if err := p.exits(status); err != nil {
		return err
	}
	if p.stderr.String() == "" {
		return errors.New("the worker did not say why on stderr")
	}
	return nil
}
