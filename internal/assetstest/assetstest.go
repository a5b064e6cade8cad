// Package assetstest gives tests the assets of assets.lock. A test that lacks
// its asset fails: one that was skipped would look like one that passed.
package assetstest

import (
	"io"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/synapse-module/workers/internal/assets"
)

// Path returns the verified main file of an asset, or fails the test with the
// command that fetches it. Nothing is fetched here.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	store, err := assets.Open(".", assets.NewProgress(io.Discard))
	if err != nil {
		tb.Fatal(err)
	}
	if err := store.Check(name); err != nil {
		tb.Fatal(err)
	}
	path, err := store.Path(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// LibDir returns the directory of a native library's build for this platform:
// the asset PREFIX-GOOS-GOARCH.
func LibDir(tb testing.TB, prefix string) string {
	tb.Helper()
	return filepath.Dir(Path(tb, prefix+"-"+runtime.GOOS+"-"+runtime.GOARCH))
}
