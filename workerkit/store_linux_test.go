package workerkit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// meddler is an engine during whose load something happens, and its model.
type meddler struct {
	happens func()
	closed  bool
}

func (m *meddler) Info() Info { return Info{} }

func (m *meddler) Load(context.Context, Artifact, Config) (Model, error) {
	m.happens()
	return m, nil
}

func (m *meddler) Describe() Description { return Description{MaxTokens: 1, VocabSize: 1} }

func (m *meddler) Close() error {
	m.closed = true
	return nil
}

// TestFileWrittenToDuringALoad: what the engine read may not be what was hashed. A
// file that is replaced by renaming is still the one that was.
func TestFileWrittenToDuringALoad(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(path string) error
		refused bool
	}{
		"nothing": {func(string) error { return nil }, false},
		"other bytes": {func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("x"), 2)
			return errors.Join(err, f.Close())
		}, true},
		"cut":                  {func(path string) error { return os.Truncate(path, 3) }, true},
		"replaced by renaming": {func(path string) error { return os.Rename(path+".new", path) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model")
			write(t, path, "checked")
			write(t, path+".new", "another")
			old := time.Now().Add(-time.Hour) // clocks of file systems tick slowly
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
			a, release, err := storeIn(t, t.TempDir()).open(path, digestOf(t, "checked"), "fake")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			engine := &meddler{happens: func() {
				if err := c.happens(path); err != nil {
					t.Error(err)
				}
			}}
			_, err = (&server{engine: engine}).make(t.Context(), a, Config{}, release)
			if !c.refused {
				if err != nil || engine.closed {
					t.Errorf("got %v, closed %v", err, engine.closed)
				}
				return
			}
			if !errors.Is(err, &protocol.Error{Code: protocol.CodeArtifactInvalid}) || !strings.Contains(err.Error(), "renaming") || !engine.closed {
				t.Errorf("got %v, closed %v", err, engine.closed)
			}
		})
	}
}
