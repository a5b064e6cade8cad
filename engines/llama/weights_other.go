//go:build !linux

package llama

import (
	"os"
	"path/filepath"

	"github.com/synapse-module/workers/internal/diskcache"
)

// weightsDir is where copies lie in the worker's cache directory while a model is
// loaded.
const weightsDir = "weights"

// newCopied keeps the file in a private directory, where this system's artifacts
// are copied too.
func (e *engine) newCopied() (*copied, error) {
	cache := diskcache.New(filepath.Join(e.setup.CacheDir, weightsDir), e.setup.CacheLimit, e.setup.Log)
	private, err := cache.Private()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(private.Dir, "model.gguf")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		private.Release()
		return nil, notCopied(err)
	}
	// Windows lets no library open a file that is open for writing.
	finish := func() (string, error) {
		if err := f.Close(); err != nil {
			return "", notCopied(err)
		}
		return path, nil
	}
	return &copied{Writer: f, finish: finish, release: func() {
		f.Close() // again, where it was finished
		private.Release()
	}}, nil
}
