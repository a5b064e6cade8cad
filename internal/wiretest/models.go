package wiretest

import (
	"math"
	"os"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
)

// HelloWorld is "Hello World" as MiniLM's tokenizer gives it: [CLS] hello world
// [SEP].
var HelloWorld = []int32{101, 7592, 2088, 102}

// LoadOf is the LOAD of a file with its true digest.
func LoadOf(t testing.TB, path, format, config string) protocol.Load {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	digest, err := protocol.FileDigest(f)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Load{ReqID: "1", ArtifactPath: path, ArtifactDigest: digest, Format: format, RuntimeConfig: jsontext.Value(config)}
}

// ExpectHelloWorld proves that it is the same process still, in step, and that ref
// is MiniLM in fp32, true to its reference. The values are those given in
// Anush008/fastembed-go#12.
func (p *Peer) ExpectHelloWorld(ref string) {
	p.t.Helper()
	want := []float32{-0.034477, 0.031023, 0.006735, 0.026109, -0.039362, -0.160302}
	got := p.Embed(ref, true, HelloWorld)[0]
	for i, w := range want {
		if math.Abs(float64(got[i]-w)) > 2e-6 {
			p.t.Fatalf("Hello World begins %v, want %v", got[:len(want)], want)
		}
	}
}
