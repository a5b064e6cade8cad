package workerkit_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// packedFormat is a fake model, compressed.
const packedFormat = fake.Format + "+zstd"

// packed is the LOAD of a fake model of so many bytes that do not compress.
func packed(t *testing.T, seed byte, bytes int) protocol.Load {
	t.Helper()
	model := make([]byte, bytes)
	if _, err := rand.NewChaCha8([32]byte{seed}).Read(model); err != nil {
		t.Fatal(err)
	}
	copy(model, fake.Magic+"\n")
	path, digest := packtest.Write(t, packtest.Zstd(t, model))
	return protocol.Load{ReqID: "1", ArtifactPath: path, ArtifactDigest: digest, Format: packedFormat}
}

// cached lists the entries of a worker's cache: whole ones by their keys, others
// by their names.
func cached(t *testing.T, cache string) (keys []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(cache, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if key, _, _ := strings.Cut(d.Name(), "."); d.IsDir() {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func keyOf(m protocol.Load) string { return m.ArtifactDigest.Hex() + "-zstd" }

func wantCached(t *testing.T, cache string, loads ...protocol.Load) {
	t.Helper()
	var want []string
	for _, m := range loads {
		want = append(want, keyOf(m))
	}
	slices.Sort(want)
	if got := cached(t, cache); !slices.Equal(got, want) {
		t.Errorf("the cache holds %v, want %v", got, want)
	}
}

// content is the unpacked file of the one entry of a cache.
func content(t *testing.T, cache string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "artifacts", "*.*", "content"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the cache holds %v, %v", found, err)
	}
	return found[0]
}

func unload(p *wiretest.Peer, ref string) {
	p.Send(protocol.Unload{ReqID: "1", ModelRef: ref})
	p.Expect(&protocol.Unloaded{})
}

// kill ends a worker as the system does, and waits for its end.
func kill(t *testing.T, p *wiretest.Peer) {
	t.Helper()
	worker, err := os.FindProcess(p.Hello.PID)
	if err == nil {
		err = worker.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Exit()
}

func TestPackedArtifact(t *testing.T) {
	p := spawn(t).Accept(0)
	cache := filepath.Join(p.Dir, "cache")
	m := packed(t, 1, 4096)
	first := p.Load(m)
	good(t, p, first)
	unpacked, err := os.Stat(content(t, cache))
	if err != nil {
		t.Fatal(err)
	}
	good(t, p, p.Load(m))
	if again, err := os.Stat(content(t, cache)); err != nil || !os.SameFile(unpacked, again) {
		t.Errorf("the second load unpacked again: %v", err)
	}
	good(t, p, first)
}

// What lies in the cache is loaded only where it is what was unpacked: a flipped
// bit is found, and unpacked over.
func TestPackedArtifactSpoiltInTheCache(t *testing.T) {
	p := spawn(t).Accept(0)
	cache := filepath.Join(p.Dir, "cache")
	m := packed(t, 1, 4096)
	unload(p, p.Load(m))
	at := content(t, cache)
	b, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 // the engine would refuse it
	if err := os.WriteFile(at, b, 0o600); err != nil {
		t.Fatal(err)
	}
	good(t, p, p.Load(m))
	wantCached(t, cache, m)
	if !strings.Contains(p.Stderr.String(), "not what was put there") {
		t.Error("the log does not say it")
	}
}

// Whether the cache has an artifact changes no answer: the packed file must be
// there, and be what its digest says.
func TestCacheChangesNoAnswer(t *testing.T) {
	p := spawn(t).Accept(0)
	m := packed(t, 1, 4096)
	refuse := func(says string, change func(*protocol.Load)) {
		t.Helper()
		bad := m
		change(&bad)
		p.Send(bad)
		if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, says) {
			t.Errorf("msg is %q, wanted %q", e.Msg, says)
		}
	}
	other := packed(t, 2, 4096)
	for range 2 { // without it in the cache, and with it
		refuse("no such file", func(m *protocol.Load) { m.ArtifactPath += "-not" })
		refuse("has the digest", func(m *protocol.Load) { m.ArtifactPath = other.ArtifactPath })
		refuse("is a directory", func(m *protocol.Load) { m.ArtifactPath = t.TempDir() })
		refuse("the packed file's (sha256:)", func(m *protocol.Load) {
			m.ArtifactDigest = protocol.Digest("sha256-tree:" + m.ArtifactDigest.Hex())
		})
		refuse("does not begin with", func(m *protocol.Load) { m.Format = fake.Format })
		refuse("none that this engine loads", func(m *protocol.Load) { m.Format = fake.Format + "+tar.zst" })
		good(t, p, p.Load(m))
	}
}

func TestPackedArtifactRefused(t *testing.T) {
	p := spawn(t).Accept(0)
	ref := p.Load(packed(t, 1, 4096))
	whole := packtest.Zstd(t, []byte(fake.Magic+"\n"+strings.Repeat("x", 4096)))
	for name, c := range map[string]struct {
		packed []byte
		says   string
	}{
		"no zstd":  {[]byte(fake.Magic), "zstd: "},
		"cut":      {whole[:len(whole)-3], "zstd: "},
		"a bomb":   {packtest.Zstd(t, make([]byte, 65<<20)), "unpacks to more than 64 MiB"},
		"no model": {packtest.Zstd(t, []byte("junk")), "does not begin with"},
	} {
		t.Run(name, func(t *testing.T) {
			path, digest := packtest.Write(t, c.packed)
			p.Send(protocol.Load{ReqID: "1", ArtifactPath: path, ArtifactDigest: digest, Format: packedFormat})
			if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, c.says) || !strings.Contains(e.Msg, path) {
				t.Errorf("msg is %q, wanted %q and the path", e.Msg, c.says)
			}
			good(t, p, ref)
		})
	}
}

// Over --cache-limit the longest unused go, and nothing that a worker has loaded.
func TestCacheLimit(t *testing.T) {
	const size = 4096
	cache := t.TempDir()
	limit := strconv.Itoa(2*size + size/2)
	p := spawn(t, "--cache-dir", cache, "--cache-limit", limit).Accept(0)
	q := spawn(t, "--cache-dir", cache, "--cache-limit", limit).Accept(0)
	a, b, c, d := packed(t, 1, size), packed(t, 2, size), packed(t, 3, size), packed(t, 4, size)
	inUse := p.Load(a)
	unload(q, q.Load(b))
	wantCached(t, cache, a, b)
	unload(q, q.Load(c))
	wantCached(t, cache, a, c) // b is younger, a is loaded by another worker
	good(t, p, inUse)
	unload(p, inUse)
	unload(q, q.Load(c))
	unload(q, q.Load(d))
	wantCached(t, cache, c, d)
	status, stderr := run(t, "--socket", "x", "--nonce", "00", "--cache-limit", "-1")
	if status != protocol.ExitUsage || !strings.Contains(stderr, "cache-limit") {
		t.Errorf("a negative limit: exit status %d, %s", status, stderr)
	}
}

// Two workers that load the same at once both serve it, out of one entry.
func TestTwoWorkersAtOnce(t *testing.T) {
	cache := t.TempDir()
	m := packed(t, 1, 16<<20)
	workers := []*wiretest.Peer{spawn(t, "--cache-dir", cache).Accept(0), spawn(t, "--cache-dir", cache).Accept(0)}
	for _, p := range workers {
		p.Send(m)
	}
	for _, p := range workers {
		var loaded protocol.Loaded
		p.Expect(&loaded)
		good(t, p, loaded.ModelRef)
	}
	wantCached(t, cache, m)
}

// A worker that is killed while it unpacks leaves what is half written, which the
// next one removes.
func TestKilledWhileUnpacking(t *testing.T) {
	cache := t.TempDir()
	m := packed(t, 1, 64<<20)
	half := func() []string {
		found, err := filepath.Glob(filepath.Join(cache, "artifacts", "making-*", "content"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const tries = 20 // the worker may be done before the signal is sent
	for range tries {
		if err := os.RemoveAll(filepath.Join(cache, "artifacts")); err != nil {
			t.Fatal(err)
		}
		p := spawn(t, "--cache-dir", cache).Accept(0)
		p.Send(m)
		for deadline := time.Now().Add(wiretest.Patience); len(half()) == 0 && time.Now().Before(deadline); {
		}
		kill(t, p)
		if len(half()) > 0 {
			break
		}
	}
	left := half()
	if len(left) != 1 {
		t.Fatalf("no worker was killed at the right moment: %v", left)
	}
	p := spawn(t, "--cache-dir", cache).Accept(0)
	good(t, p, p.Load(m))
	wantCached(t, cache, m)
}

// Killed at moments that are spread over a load, a worker leaves nothing that is
// loaded in place of a model, and nothing that stays.
func TestKilledAtAnyMoment(t *testing.T) {
	const (
		kills = 12
		size  = 8 << 20
		step  = 4 * time.Millisecond // the last one is over when the worker is killed
	)
	cache := t.TempDir()
	args := []string{"--cache-dir", cache, "--cache-limit", strconv.Itoa(3 * size)}
	var loads []protocol.Load
	for i := range kills {
		m := packed(t, byte(i), size)
		loads = append(loads, m)
		p := spawn(t, args...).Accept(0)
		p.Send(m)
		time.Sleep(time.Duration(i) * step)
		kill(t, p)
	}
	p := spawn(t, args...).Accept(0)
	for _, m := range loads {
		ref := p.Load(m)
		good(t, p, ref)
		unload(p, ref)
	}
	wantCached(t, cache, loads[kills-3:]...)
}
