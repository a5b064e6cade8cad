package main_test

import (
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
	packed, packedDigest := packtest.File(t, path)
	p := spawn(t)
	var want []float32
	for _, m := range []protocol.Load{
		wiretest.LoadOf(t, path, "gguf", "{}"),
		{ReqID: "1", ArtifactPath: packed, ArtifactDigest: packedDigest, Format: "gguf+zstd"},
		{ReqID: "1", ArtifactPath: packed, ArtifactDigest: packedDigest, Format: "gguf+zstd"},
	} {
		ref := p.Load(m)
		got := p.Embed(ref, true, wiretest.HelloWorld)[0]
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
