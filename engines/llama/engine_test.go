package llama

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// libDirVariable names another directory of libraries to test with: that of
// `make llama-libs`.
const libDirVariable = "SYNAPSE_TEST_LLAMA_LIBS"

// libDir is the directory of the libraries under test.
func libDir(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv(libDirVariable); dir != "" {
		return dir
	}
	return assetstest.LibDir(tb, "llama")
}

// open returns the process's one engine.
func open(tb testing.TB) workerkit.Engine {
	tb.Helper()
	shared.once.Do(func() {
		shared.err = errors.New("the libraries are missing, see the first failure")
		dir := libDir(tb)
		shared.engine, shared.err = Open(workerkit.Setup{LibDir: dir, Log: slog.New(slog.DiscardHandler)})
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.engine
}

// verified are the assets that this process has hashed already.
var verified sync.Map

func asset(tb testing.TB, name string) string {
	tb.Helper()
	if path, ok := verified.Load(name); ok {
		return path.(string)
	}
	path := assetstest.Path(tb, name)
	verified.Store(name, path)
	return path
}

// quiet completes a runtime_config in JSON where it does not say otherwise: a single
// thread, since llama.cpp's threads spin while they wait for one another and other
// packages' tests run on the same cores; and no GPU, whose figures are others.
func quiet(config string) jsontext.Value {
	rest, _ := strings.CutPrefix(config, "{")
	given := strings.Trim(strings.TrimSuffix(rest, "}"), " ")
	members := []string{}
	if given != "" {
		members = append(members, given)
	}
	for name, value := range map[string]int{optThreads: 1, optGPULayers: 0} {
		if !strings.Contains(config, name) {
			members = append(members, fmt.Sprintf("%q: %d", name, value))
		}
	}
	return jsontext.Value("{" + strings.Join(members, ", ") + "}")
}

// artifactOf opens a file as workerkit does. Its File is the caller's to close.
func artifactOf(tb testing.TB, path string) workerkit.Artifact {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	a := workerkit.Artifact{Path: path, File: f, Size: info.Size(), Format: "gguf", Name: path}
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		a.Path = "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	}
	return a
}

// loadFile loads a file as workerkit does, with a runtime_config in JSON.
func loadFile(tb testing.TB, path, config string) (workerkit.Model, error) {
	tb.Helper()
	e := open(tb)
	c, err := workerkit.DecodeConfig(e.Info().Options, quiet(config))
	if err != nil {
		return nil, err
	}
	a := artifactOf(tb, path)
	defer a.File.Close()
	m, err := e.Load(tb.Context(), a, c)
	if err == nil {
		tb.Cleanup(func() {
			if err := m.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	return m, err
}

func loadBytes(tb testing.TB, model []byte, config string) (workerkit.Model, error) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.gguf")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		tb.Fatal(err)
	}
	return loadFile(tb, path, config)
}

// loadAsset loads a model of assets.lock.
func loadAsset(tb testing.TB, name, config string) workerkit.Model {
	tb.Helper()
	m, err := loadFile(tb, asset(tb, name), config)
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

// row is n ids of BERT's vocabulary between [CLS] and [SEP], n >= 2; one row a
// seed.
func row(n int, seed int32) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = 1000 + (seed*7919+int32(i)*104729)%20000
	}
	ids[0], ids[n-1] = 101, 102
	return ids
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// maxDiff is the largest difference of two vectors of the same length.
func maxDiff(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
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
