//go:build cgo

package onnx

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

var shared struct {
	once   sync.Once
	engine workerkit.Engine
	err    error
}

// open returns the process's one engine.
func open(tb testing.TB) workerkit.Engine {
	tb.Helper()
	shared.once.Do(func() {
		shared.engine, shared.err = Open(workerkit.Setup{LibDir: assetstest.LibDir(tb, "onnxruntime"), Log: slog.New(slog.DiscardHandler)})
	})
	if shared.engine == nil {
		tb.Fatalf("no engine: %v", shared.err)
	}
	return shared.engine
}

// loadFile loads a file as workerkit does, with a runtime_config in JSON, and
// closes the model with the test.
func loadFile(tb testing.TB, path, config string) (workerkit.Model, error) {
	tb.Helper()
	m, err := loadFileUnclosed(tb, path, config)
	if err == nil {
		tb.Cleanup(func() {
			if err := m.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	return m, err
}

func loadFileUnclosed(tb testing.TB, path, config string) (workerkit.Model, error) {
	tb.Helper()
	e := open(tb)
	c, err := workerkit.DecodeConfig(e.Info().Options, jsontext.Value(config))
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	a := workerkit.Artifact{Path: path, File: f, Size: info.Size(), Format: "onnx", Name: path}
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		a.Path = "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	}
	return e.Load(tb.Context(), a, c)
}

func loadBytes(tb testing.TB, model []byte, config string) (workerkit.Model, error) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.onnx")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		tb.Fatal(err)
	}
	return loadFile(tb, path, config)
}

func mustLoad(tb testing.TB, model []byte, config string) workerkit.Model {
	tb.Helper()
	m, err := loadBytes(tb, model, config)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// loadAsset loads a model of assets.lock.
func loadAsset(tb testing.TB, name, config string) workerkit.Model {
	tb.Helper()
	m, err := loadFile(tb, assetstest.Path(tb, name), config)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// embed returns copies: the vectors themselves live until the next call.
func embed(tb testing.TB, m workerkit.Model, p workerkit.Pooling, rows ...[]int32) [][]float32 {
	tb.Helper()
	vectors, err := m.(workerkit.Embedder).Embed(tb.Context(), rows, p)
	if err != nil {
		tb.Fatal(err)
	}
	out := make([][]float32, len(vectors))
	for i, v := range vectors {
		out[i] = slices.Clone(v)
	}
	return out
}

// wantCode checks an error's code, and that its text says what it must.
func wantCode(tb testing.TB, err error, code protocol.Code, contains ...string) {
	tb.Helper()
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		tb.Fatalf("got %v, want %s", err, code)
	}
	for _, s := range contains {
		if !strings.Contains(refusal.Msg, s) {
			tb.Errorf("%q does not say %q", refusal.Msg, s)
		}
	}
}
