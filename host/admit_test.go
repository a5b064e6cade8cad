//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/synapse-module/workers/host"
)

// Admit sees what is about to be loaded, and what it refuses never reaches the
// worker.
func TestAdmitDecidesOverLoads(t *testing.T) {
	refusal := errors.New("not on a Monday")
	var seen []host.Admission
	s := fakeSpec(t)
	s.Admit = func(_ context.Context, a host.Admission) error {
		seen = append(seen, a)
		if len(seen) > 1 {
			return refusal
		}
		return nil
	}
	w := start(t, s)
	m := artifact(t, map[string]any{"dims": 4, "pooling": "cls"})
	loaded, err := w.Load(patient(t), m)
	if err != nil || loaded.Dims != 4 {
		t.Fatalf("%+v, %v", loaded, err)
	}
	a := seen[0]
	if a.Worker != s.Path || a.Digest != m.Digest || a.Format != m.Format || string(a.Config) != `{"dims":4,"pooling":"cls"}` || a.Engine.Name != "fake" || len(a.Args) != len(s.Args) {
		t.Errorf("it was told %+v", a)
	}
	_, err = w.Load(patient(t), m)
	var refused *host.NotAdmitted
	if !errors.As(err, &refused) || !errors.Is(err, refusal) || refused.Worker != w.ID() || refused.Model != string(m.Digest) {
		t.Errorf("got %v", err)
	}
	if pong, err := w.Ping(patient(t)); err != nil || pong.ModelsLoaded != 1 {
		t.Errorf("afterwards %+v, %v", pong, err)
	}
}
