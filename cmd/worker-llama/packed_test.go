package main_test

import (
	"os"
	"slices"
	"testing"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// A packed model gives the bits of the file that it was made of, unpacked and out
// of the cache.
func TestPackedArtifact(t *testing.T) {
	path := assetstest.Path(t, "minilm-gguf-q8_0")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	digest, err := protocol.FileDigest(f)
	if err != nil {
		t.Fatal(err)
	}
	packed, packedDigest := packtest.File(t, path)
	p := wiretest.Spawn(t, wiretest.Build(t, "cmd/worker-llama"), "--engine-lib", assetstest.LibDir(t, "llama")).Accept(0)
	row := []int32{101, 7592, 2088, 102}
	var want []float32
	for _, m := range []protocol.Load{
		{ReqID: "1", ArtifactPath: path, ArtifactDigest: digest, Format: "gguf"},
		{ReqID: "1", ArtifactPath: packed, ArtifactDigest: packedDigest, Format: "gguf+zstd"},
		{ReqID: "1", ArtifactPath: packed, ArtifactDigest: packedDigest, Format: "gguf+zstd"},
	} {
		ref := p.Load(m)
		got := p.Embed(ref, true, row)[0]
		if want == nil {
			want = slices.Clone(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s gives other bits", m.Format)
		}
	}
	p.Send(protocol.Load{ReqID: "1", ArtifactPath: packed, ArtifactDigest: packedDigest, Format: "gguf+tar.zst"})
	p.ExpectErr(protocol.CodeArtifactInvalid)
	p.Send(protocol.Load{ReqID: "1", ArtifactPath: packed, ArtifactDigest: packedDigest, Format: "gguf"})
	p.ExpectErr(protocol.CodeArtifactInvalid)
}
