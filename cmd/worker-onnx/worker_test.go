package main_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

func spawn(t testing.TB) *wiretest.Peer {
	t.Helper()
	return wiretest.Spawn(t, wiretest.Build(t, "cmd/worker-onnx"), "--engine-lib", assetstest.LibDir(t, "onnxruntime")).Accept(0)
}

// load makes the LOAD of a file with its true digest.
func load(t testing.TB, path, config string) protocol.Load {
	t.Helper()
	return wiretest.LoadOf(t, path, "onnx", config)
}

// minilm returns a worker with MiniLM loaded.
func minilm(t testing.TB) (p *wiretest.Peer, ref string) {
	t.Helper()
	p = spawn(t)
	return p, p.Load(load(t, assetstest.Path(t, "minilm-onnx-f32"), `{"pooling":"mean"}`))
}

func TestReport02_HelloWorld(t *testing.T) {
	p, ref := minilm(t)
	p.ExpectHelloWorld(ref)
	p.Send(protocol.Shutdown{})
	if got := p.Exit(); got != protocol.ExitOK {
		t.Fatalf("exit status %d", got)
	}
}

// Report 22: ids are checked before the engine sees them; ONNX Runtime itself
// takes -1 for the vocabulary's last row and says nothing.
func TestReport22_BadRows(t *testing.T) {
	p, ref := minilm(t)
	long := slices.Repeat([]int32{2088}, 513)
	for name, c := range map[string]struct {
		row  []int32
		says string
	}{
		"minus one":    {[]int32{101, -1, 102}, "has the id -1"},
		"vocabulary":   {[]int32{101, 30522, 102}, "vocabulary is 0 to 30521"},
		"max":          {[]int32{math.MaxInt32}, "2147483647"},
		"no tokens":    {nil, "n_tokens 0"},
		"one too long": {long, "513 tokens, this model takes at most 512"},
	} {
		t.Run(name, func(t *testing.T) {
			p.Send(wiretest.EmbedBatch(ref, "", true, wiretest.HelloWorld, c.row))
			if e := p.ExpectErr(protocol.CodeRequestInvalid); !strings.Contains(e.Msg, c.says) || !strings.Contains(e.Msg, "items[1]") {
				t.Errorf("msg is %q", e.Msg)
			}
			p.ExpectHelloWorld(ref)
		})
	}
	if v := p.Embed(ref, true, long[:512]); len(v[0]) != 384 {
		t.Fatalf("%d dims", len(v[0]))
	}
}

// Report 26: a file that is cut, spoiled or empty is a typed error, with a wrong
// digest and with a matching one; the worker lives.
func TestReport26_SpoiledFiles(t *testing.T) {
	p, ref := minilm(t)
	whole, err := os.ReadFile(assetstest.Path(t, "minilm-jar-onnx-int8"))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 4096)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(noise) // it never fails
	flipped := bytes.Clone(whole)
	flipped[29] ^= 0xFF // the length of the graph
	for name, b := range map[string][]byte{
		"half":      whole[:len(whole)/2],
		"less one":  whole[:len(whole)-1],
		"empty":     nil,
		"noise":     noise,
		"bit flips": flipped,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			m := load(t, path, `{"pooling":"mean"}`)
			p.Send(m)
			p.ExpectErr(protocol.CodeArtifactInvalid)
			m.ArtifactDigest = "sha256:afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1"
			p.Send(m)
			if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, "has the digest") {
				t.Errorf("msg is %q", e.Msg)
			}
			p.ExpectHelloWorld(ref)
		})
	}
}

// Report 9: a row does not depend on its neighbours. Report 10: nor on the
// batch's size. Report 8: a repeat is bit-equal.
func TestReport08To10_Company(t *testing.T) {
	p, ref := minilm(t)
	short, long := wiretest.HelloWorld[:3], slices.Repeat([]int32{2088, 7592}, 100)
	alone := p.Embed(ref, true, short)[0]
	near := func(name string, got []float32) {
		for i := range alone {
			if math.Abs(float64(got[i]-alone[i])) > 1e-5 {
				t.Fatalf("%s: component %d is %v, alone %v", name, i, got[i], alone[i])
			}
		}
	}
	near("beside a long row", p.Embed(ref, true, short, long)[0])
	near("behind a long row", p.Embed(ref, true, long, short)[1])
	for _, n := range []int{2, 15, 16, 17, 64} {
		rows := slices.Repeat([][]int32{short}, n)
		for _, v := range p.Embed(ref, true, rows...) {
			near("in a batch", v)
		}
	}
	first := slices.Concat(p.Embed(ref, true, short, long, wiretest.HelloWorld)...)
	for range 20 {
		if again := slices.Concat(p.Embed(ref, true, short, long, wiretest.HelloWorld)...); !slices.Equal(first, again) {
			t.Fatal("a repeat differs")
		}
	}
}

func TestMissingLibraryIsOneLine(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(wiretest.Build(t, "cmd/worker-onnx"), "--version", "--engine-lib", dir).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != protocol.ExitEngine {
		t.Fatalf("got %v, %s", err, out)
	}
	if lines := strings.Count(string(out), "\n"); lines != 1 || !strings.Contains(string(out), dir) {
		t.Fatalf("stderr is %q", out)
	}
}

// Report 31: the library's teardown must not crash. Report 34: freeing a model
// gives its memory back, within the arena's bound.
func TestReport31_LoadAndShutdown(t *testing.T) {
	model := assetstest.Path(t, "minilm-jar-onnx-int8")
	const starts = 10
	for range starts {
		p := spawn(t)
		p.Load(load(t, model, `{"pooling":"mean","threads":1}`))
		p.Send(protocol.Shutdown{})
		if got := p.Exit(); got != protocol.ExitOK {
			t.Fatalf("exit status %d", got)
		}
	}
}
