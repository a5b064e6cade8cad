package main_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

func loadMean(path string, digest protocol.Digest, format string) protocol.Load {
	return protocol.Load{ReqID: "1", ArtifactPath: path, ArtifactDigest: digest, Format: format, RuntimeConfig: jsontext.Value(`{"pooling":"mean"}`)}
}

// spawnIn is spawn with a cache of the caller's and the whole sandbox: the worker
// may write in nothing but the cache, and read artifacts in these folders alone.
func spawnIn(t *testing.T, cache string, roots ...string) *wiretest.Peer {
	t.Helper()
	args := []string{"--engine-lib", assetstest.LibDir(t, "onnxruntime"), "--sandbox=require", "--cache-dir", cache}
	for _, root := range roots {
		args = append(args, "--artifact-root", root)
	}
	return wiretest.Spawn(t, wiretest.Build(t, "cmd/worker-onnx"), args...).Accept(0)
}

// One model in every kind of artifact gives the same bits, unpacked, out of the
// cache, and unpacked anew where that has spoilt.
func TestPackedArtifacts(t *testing.T) {
	dir, whole := externalDir(t), assetstest.Path(t, "minilm-onnx-f32")
	tree, err := protocol.TreeDigest(os.DirFS(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	zstd, zstdDigest := packtest.File(t, whole)
	tarred, tarDigest := packtest.Dir(t, dir)
	cache := t.TempDir()
	p := spawnIn(t, cache, filepath.Dir(whole), dir, filepath.Dir(zstd), filepath.Dir(tarred))
	rows := [][]int32{wiretest.HelloWorld, {101, 102}, slices.Repeat([]int32{2088, 7592}, 40)}
	var want []float32
	for i, m := range []protocol.Load{
		load(t, whole, `{"pooling":"mean"}`),
		loadMean(dir, tree, "onnx"),
		loadMean(zstd, zstdDigest, "onnx+zstd"),
		loadMean(tarred, tarDigest, "onnx+tar.zst"),
		loadMean(zstd, zstdDigest, "onnx+zstd"),
		loadMean(tarred, tarDigest, "onnx+tar.zst"),
	} {
		for range 2 {
			ref := p.Load(m)
			got := slices.Concat(p.Embed(ref, true, rows...)...)
			if want == nil {
				p.ExpectHelloWorld(ref)
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("load %d (%s) gives other bits", i, m.Format)
			}
			p.Send(protocol.Unload{ReqID: "1", ModelRef: ref})
			p.Expect(&protocol.Unloaded{})
		}
		if i == 3 {
			flipInWeights(t, cache)
		}
	}
	if n := strings.Count(p.Stderr.String(), "not what was put there"); n != 2 {
		t.Errorf("%d entries were found spoilt, want both", n)
	}
}

// flipInWeights changes one bit in the middle of each file of weights that lies in
// the cache.
func flipInWeights(t *testing.T, cache string) {
	t.Helper()
	file, err := filepath.Glob(filepath.Join(cache, "artifacts", "*-zstd.*", "content"))
	if err != nil {
		t.Fatal(err)
	}
	weights, err := filepath.Glob(filepath.Join(cache, "artifacts", "*-tar.zst.*", "content", weightsName))
	if err != nil {
		t.Fatal(err)
	}
	if len(file) != 1 || len(weights) != 1 {
		t.Fatalf("the cache holds %v and %v", file, weights)
	}
	for _, path := range []string{file[0], weights[0]} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, info.Size()/2); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b, info.Size()/2); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Two workers that load the same archive at once give the same bits, out of one
// entry of the cache.
func TestPackedArtifactInTwoWorkersAtOnce(t *testing.T) {
	tarred, digest := packtest.Dir(t, externalDir(t))
	cache := t.TempDir()
	workers := []*wiretest.Peer{spawnIn(t, cache), spawnIn(t, cache)}
	for _, p := range workers {
		p.Send(loadMean(tarred, digest, "onnx+tar.zst"))
	}
	for _, p := range workers {
		var loaded protocol.Loaded
		p.Expect(&loaded)
		p.ExpectHelloWorld(loaded.ModelRef)
	}
	if entries, err := filepath.Glob(filepath.Join(cache, "artifacts", "*-tar.zst.*")); err != nil || len(entries) != 1 {
		t.Errorf("the cache holds %v, %v", entries, err)
	}
}

// Hostile archives are typed errors, write nowhere, and the worker serves on.
func TestHostileArchives(t *testing.T) {
	p, ref := minilm(t)
	outside := filepath.Join(filepath.Dir(p.Dir), "evil")
	model := packtest.Entry{Header: tar.Header{Name: "model.onnx"}, Content: "graph"}
	for name, c := range map[string]struct {
		entries []packtest.Entry
		says    string
	}{
		"a path upwards":   {[]packtest.Entry{model, {Header: tar.Header{Name: "../../../../evil"}, Content: "x"}}, "without .."},
		"an absolute path": {[]packtest.Entry{model, {Header: tar.Header{Name: outside}, Content: "x"}}, "not absolute"},
		"a symbolic link":  {[]packtest.Entry{{Header: tar.Header{Name: "model.onnx", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}}}, "symbolic link"},
		"a name twice":     {[]packtest.Entry{model, model}, "twice"},
		"no graph":         {[]packtest.Entry{{Header: tar.Header{Name: "README.md"}, Content: "hello"}}, "no .onnx file"},
		"a spoilt graph":   {[]packtest.Entry{model}, "no ONNX file"},
	} {
		t.Run(name, func(t *testing.T) {
			path, digest := packtest.Write(t, packtest.Tar(t, c.entries...))
			p.Send(loadMean(path, digest, "onnx+tar.zst"))
			if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, c.says) || !strings.Contains(e.Msg, path) {
				t.Errorf("msg is %q, wanted %q and the path", e.Msg, c.says)
			}
			p.ExpectHelloWorld(ref)
		})
	}
	if _, err := os.Lstat(outside); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", outside, err)
	}
}
