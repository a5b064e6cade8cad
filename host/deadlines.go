package host

import (
	"fmt"
	"time"
)

// The default deadlines. They bound what must not be endless, not what should
// be fast: a scheduler that knows its work gives each request a context with a
// tighter one.
const (
	// DefaultStartDeadline covers exec, loading an engine's libraries (hundreds
	// of megabytes from a cold disk) and the handshake.
	DefaultStartDeadline = 60 * time.Second

	// DefaultLoadDeadline: Core ML compiles a model for the Neural Engine at its
	// first load, for which 440 and 560 seconds are published; loads of half an
	// hour are reported. Killing a compile makes the next one begin anew.
	DefaultLoadDeadline = 60 * time.Minute

	// DefaultEmbedDeadline: one full frame of tokens on a slow machine takes tens
	// of seconds; an embedding that takes minutes is a hang.
	DefaultEmbedDeadline = 2 * time.Minute

	// DefaultRerankDeadline: as an embedding, one forward pass a candidate.
	DefaultRerankDeadline = 2 * time.Minute

	// DefaultGenerateDeadline: generations are short (the protocol is meant for
	// some 64 tokens), at a few tokens a second in the worst case.
	DefaultGenerateDeadline = 5 * time.Minute

	// DefaultUnloadDeadline: freeing gigabytes page by page takes seconds.
	DefaultUnloadDeadline = time.Minute

	// DefaultPingDeadline: PING and DESCRIBE touch no engine. On an overloaded
	// machine a process may still wait seconds for its turn.
	DefaultPingDeadline = 10 * time.Second

	// DefaultShutdownDeadline: the worker frees its models and exits.
	DefaultShutdownDeadline = 30 * time.Second
)

// Deadlines bounds each kind of request for which the caller's context has no
// deadline of its own. A zero field is the default of that kind.
type Deadlines struct {
	Start    time.Duration // from spawn to HELLO_ACK
	Load     time.Duration
	Embed    time.Duration
	Rerank   time.Duration
	Generate time.Duration
	Unload   time.Duration
	Ping     time.Duration // PING and DESCRIBE
	Shutdown time.Duration // from SHUTDOWN to the process's end
}

// withDefaults fills zero fields, or names the first negative one.
func (d Deadlines) withDefaults() (Deadlines, error) {
	for _, f := range []struct {
		name  string
		value *time.Duration
		std   time.Duration
	}{
		{"Start", &d.Start, DefaultStartDeadline},
		{"Load", &d.Load, DefaultLoadDeadline},
		{"Embed", &d.Embed, DefaultEmbedDeadline},
		{"Rerank", &d.Rerank, DefaultRerankDeadline},
		{"Generate", &d.Generate, DefaultGenerateDeadline},
		{"Unload", &d.Unload, DefaultUnloadDeadline},
		{"Ping", &d.Ping, DefaultPingDeadline},
		{"Shutdown", &d.Shutdown, DefaultShutdownDeadline},
	} {
		switch {
		case *f.value < 0:
			return d, fmt.Errorf("host: Deadlines.%s is %v: give a positive duration, or 0 for the default of %v", f.name, *f.value, f.std)
		case *f.value == 0:
			*f.value = f.std
		}
	}
	return d, nil
}

// of is the deadline of a request of the given stage.
func (d Deadlines) of(s Stage) time.Duration {
	switch s {
	case StageSpawn, StageHello:
		return d.Start
	case StageLoad:
		return d.Load
	case StageEmbed:
		return d.Embed
	case StageRerank:
		return d.Rerank
	case StageGenerate:
		return d.Generate
	case StageUnload:
		return d.Unload
	case StageShutdown:
		return d.Shutdown
	default:
		return d.Ping
	}
}
