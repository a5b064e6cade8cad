//go:build linux || darwin

package certified_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/host/certified"
	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// newKey makes a key that signs, and reads its public half.
func newKey(t *testing.T) (private, public *certificate.Key) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(kind string, der []byte, err error) *certificate.Key {
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := certificate.ReadKey(path)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	private = read("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(pub)
	return private, read("PUBLIC KEY", der, err)
}

// issue writes a certificate of what is here, changed by change, into folder, as
// x.certificate.json.
func issue(t *testing.T, folder string, key *certificate.Key, worker, libraries string, m host.LoadRequest, change func(*certificate.Certificate)) {
	t.Helper()
	digest, err := certificate.DigestOf(worker)
	if err != nil {
		t.Fatal(err)
	}
	files, err := certificate.Libraries(worker, libraries)
	if err != nil {
		t.Fatal(err)
	}
	c := &certificate.Certificate{
		Version: certificate.Version, Issued: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Tool: "test",
		Worker: certificate.File{Name: filepath.Base(worker), Digest: digest}, Libraries: files,
		Engine:   protocol.Engine{Name: "engine", Version: "1", BuildFlags: []string{}},
		Artifact: certificate.Artifact{File: certificate.File{Name: "model", Digest: m.Digest}, Format: m.Format, Requested: []byte(`{"pooling":"mean","threads":1}`), Config: []byte(`{}`)},
		Model:    "a model", Suite: certificate.File{Name: "a-suite", Digest: m.Digest}, Machine: machine.This(t.Context()),
		Checks:   []gate.Check{{Gate: "cosine", Figure: "min", Value: 1, Relation: gate.AtLeast, Limit: 0.9999, Passed: true}},
		Controls: []gate.Control{{Name: "swapped_pooling", Held: true, Checks: []gate.Check{}}},
	}
	if change != nil {
		change(c)
	}
	envelope, err := certificate.Sign(t.Context(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "x.certificate.json"), envelope, 0o600); err != nil {
		t.Fatal(err)
	}
}

// config is the runtime_config that issue certifies.
func config() map[string]any { return map[string]any{"threads": 1, "pooling": "mean"} }

// startWith starts a worker that admits what policy does.
func startWith(t *testing.T, worker string, args []string, policy *certified.Policy) *host.Worker {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	w, err := host.Start(t.Context(), host.Spec{Path: worker, Args: args, RuntimeDir: dir, Admit: policy.Admit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Kill()
		<-w.Done()
		os.RemoveAll(dir)
	})
	return w
}

func fakeModel(t *testing.T) host.LoadRequest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.fake")
	if err := os.WriteFile(path, []byte(fake.Magic+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := certificate.DigestOf(path)
	if err != nil {
		t.Fatal(err)
	}
	return host.LoadRequest{Path: path, Digest: digest, Format: fake.Format, Config: map[string]any{"pooling": "mean"}}
}

func other(c string) protocol.Digest { return protocol.Digest("sha256:" + strings.Repeat(c, 64)) }

func TestOnlyWhatIsCertifiedIsLoaded(t *testing.T) {
	worker := wiretest.Build(t, "cmd/worker-fake")
	private, public := newKey(t)
	stranger, _ := newKey(t)
	for _, c := range []struct {
		name   string
		change func(*certificate.Certificate)
		ask    func(*host.LoadRequest)
		key    *certificate.Key
		free   []string
		want   []string // in the error; nil where it is loaded
	}{
		{name: "as certified"},
		{name: "with a config", ask: func(m *host.LoadRequest) { m.Config = map[string]any{"dims": 4, "pooling": "mean"} }, change: func(c *certificate.Certificate) {
			c.Artifact.Requested = []byte(`{"dims":4,"pooling":"mean"}`)
		}},
		{name: "another config", ask: func(m *host.LoadRequest) { m.Config = map[string]any{"pooling": "cls"} }, want: []string{`runtime_config: certified is {"pooling":"mean"}, here is {"pooling":"cls"}`}},
		{name: "a number that a float64 rounds to the same", ask: func(m *host.LoadRequest) { m.Config = map[string]any{"dims": 9007199254740993} }, change: func(c *certificate.Certificate) {
			c.Artifact.Requested = []byte(`{"dims":9007199254740992}`)
		}, want: []string{"runtime_config: certified is {\"dims\":9007199254740992}, here is {\"dims\":9007199254740993}"}},
		{name: "a free member", ask: func(m *host.LoadRequest) { m.Config = map[string]any{"pooling": "mean", "vocab_size": 900} }, free: []string{"vocab_size"}},
		{name: "another artifact", change: func(c *certificate.Certificate) { c.Artifact.Digest = other("a") }, want: []string{"none of the 1 in ", "is for this artifact", "certify run SUITE --worker "}},
		{name: "another worker", change: func(c *certificate.Certificate) { c.Worker.Digest = other("b") }, want: []string{"x.certificate.json: worker: certified is sha256:bbbb", "Use what was certified"}},
		{name: "another library", change: func(c *certificate.Certificate) {
			c.Libraries = []certificate.File{{Name: "engine/x.so", Digest: other("c")}}
		}, want: []string{"library engine/x.so: certified is sha256:cccc", "here is missing"}},
		{name: "another system", change: func(c *certificate.Certificate) { c.Machine.OSVersion = "0.1" }, want: []string{"system: certified is "}},
		{name: "another processor", change: func(c *certificate.Certificate) { c.Machine.ISA = "z80" }, want: []string{"instruction-set class: certified is z80"}},
		{name: "another format", change: func(c *certificate.Certificate) { c.Artifact.Format = "onnx" }, want: []string{"format: certified is onnx, here is fake"}},
		{name: "a stranger's signature", key: stranger, want: []string{"not signed by a trusted key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, m := t.TempDir(), fakeModel(t)
			key := private
			if c.key != nil {
				key = c.key
			}
			issue(t, folder, key, worker, "", m, func(k *certificate.Certificate) {
				k.Artifact.Requested = []byte(`{"pooling":"mean"}`)
				if c.change != nil {
					c.change(k)
				}
			})
			if c.ask != nil {
				c.ask(&m)
			}
			w := startWith(t, worker, nil, &certified.Policy{Folder: folder, Keys: []*certificate.Key{public}, FreeConfig: c.free})
			_, err := w.Load(t.Context(), m)
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var refused *host.NotAdmitted
			var uncertified *certified.Uncertified
			if !errors.As(err, &refused) || !errors.As(err, &uncertified) || refused.Model != string(m.Digest) {
				t.Fatalf("%v is no NotAdmitted with an Uncertified", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has more than one line", err)
			}
			if pong, err := w.Ping(t.Context()); err != nil || pong.ModelsLoaded != 0 {
				t.Errorf("afterwards %+v, %v", pong, err)
			}
		})
	}
}

// A certificate that comes while the module runs counts from then on, also in a
// pool, and what is beside it does no harm.
func TestAPoolAdmitsWhatIsCertifiedMeanwhile(t *testing.T) {
	worker, folder, m := wiretest.Build(t, "cmd/worker-fake"), t.TempDir(), fakeModel(t)
	private, public := newKey(t)
	dir, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	policy := &certified.Policy{Folder: folder, Keys: []*certificate.Key{public}}
	pool, err := host.NewPool(host.PoolSpec{Worker: host.Spec{Path: worker, RuntimeDir: dir, Admit: policy.Admit}})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close(t.Context())
	var uncertified *certified.Uncertified
	if _, err := pool.Acquire(t.Context(), m); !errors.As(err, &uncertified) || uncertified.Read != 0 {
		t.Fatalf("with an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "garbage.certificate.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.certificate.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "huge.certificate.json"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Acquire(t.Context(), m); !errors.As(err, &uncertified) || len(uncertified.Refusals) != 3 {
		t.Fatalf("with files that are no certificates: %v", err)
	}
	issue(t, folder, private, worker, "", m, func(c *certificate.Certificate) { c.Artifact.Requested = []byte(`{"pooling":"mean"}`) })
	lease, err := pool.Acquire(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
}

func TestAFolderThatCannotBeReadAdmitsNothing(t *testing.T) {
	worker, m := wiretest.Build(t, "cmd/worker-fake"), fakeModel(t)
	w := startWith(t, worker, nil, &certified.Policy{Folder: filepath.Join(t.TempDir(), "nosuch")})
	var refused *host.NotAdmitted
	if _, err := w.Load(t.Context(), m); !errors.As(err, &refused) || !strings.Contains(err.Error(), "nosuch") {
		t.Fatalf("got %v", err)
	}
}

// A real engine: its libraries are under the certificate, wherever it was told
// that they lie.
func TestARealEnginesLibrariesAreCertified(t *testing.T) {
	worker, libs, path := wiretest.Build(t, "cmd/worker-onnx"), assetstest.LibDir(t, "onnxruntime"), assetstest.Path(t, "minilm-onnx-f32")
	digest, err := certificate.DigestOf(path)
	if err != nil {
		t.Fatal(err)
	}
	m := host.LoadRequest{Path: path, Digest: digest, Format: "onnx", Config: config()}
	private, public := newKey(t)
	policy := &certified.Policy{Folder: t.TempDir(), Keys: []*certificate.Key{public}}
	w := startWith(t, worker, []string{"--engine-lib", libs}, policy)

	issue(t, policy.Folder, private, worker, "", m, nil) // of a worker without libraries
	var mismatch *certificate.MismatchError
	if _, err := w.Load(t.Context(), m); !errors.As(err, &mismatch) || !strings.HasPrefix(mismatch.What, "library ") {
		t.Fatalf("libraries that nobody certified: %v", err)
	}
	issue(t, policy.Folder, private, worker, libs, m, nil)
	loaded, err := w.Load(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.Embed(t.Context(), host.EmbedRequest{Model: loaded.Ref, Normalize: true, Rows: [][]int32{{101, 7592, 2088, 102}}})
	if err != nil || v.Dims != 384 {
		t.Errorf("%d dims, %v", v.Dims, err)
	}
}
