package llama

import (
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// TestWhatIsNoRPCServerIsRefused: the library ends the process for each.
func TestWhatIsNoRPCServerIsRefused(t *testing.T) {
	listen := func(answer []byte) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.CopyN(io.Discard, c, 9+rpcCaps)
				_, _ = c.Write(answer)
				c.Close()
			}
		}()
		return l.Addr().String()
	}
	version := func(major byte) []byte {
		return slices.Concat([]byte{rpcHelloSize, 0, 0, 0, 0, 0, 0, 0, major}, make([]byte, rpcHelloSize-1))
	}
	for endpoint, want := range map[string]string{
		"nowhere":                          "not HOST:PORT",
		"127.0.0.1:1":                      "cannot be reached",
		listen([]byte("HTTP/1.1 400\r\n")): "does not answer as an RPC server",
		listen(nil):                        "does not answer as an RPC server",
		listen(version(rpcMajor + 1)):      "speaks RPC version 8, wanted is 7",
	} {
		if err := greetRPC(endpoint); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", endpoint, err, want)
		}
	}
	if err := greetRPC(listen(version(rpcMajor))); err != nil {
		t.Error(err)
	}
	if err := unreachable(&net.OpError{Op: "dial", Err: syscall.EPERM}); !strings.Contains(err.Error(), "--sandbox off") {
		t.Errorf("in a sandbox: %v", err)
	}
}

func TestLibrariesWithoutRPCSaySo(t *testing.T) {
	if open(t).(*engine).lib.HasRPC() {
		return // they are the subject of the next test
	}
	_, err := loadFile(t, asset(t, "minilm-gguf-f32"), `{"rpc_servers": ["127.0.0.1:50052"]}`)
	wantCode(t, err, protocol.CodeConfigInvalid, "without RPC", "make llama-rpc")
}

// TestAModelOverTwoServers computes the same as here.
func TestAModelOverTwoServers(t *testing.T) {
	if !open(t).(*engine).lib.HasRPC() {
		t.Skip("the package's libraries have no RPC: make llama-rpc builds some that have, and runs this")
	}
	server := filepath.Join(libDir(t), "ggml-rpc-server")
	servers := `{"rpc_servers": ["` + startRPC(t, server) + `", "` + startRPC(t, server) + `"]}`
	here, there := loadAsset(t, "minilm-gguf-f32", ""), loadAsset(t, "minilm-gguf-f32", servers)
	rows := [][]int32{row(80, 1), row(5, 2), row(300, 3)}
	want := embed(t, here, workerkit.PoolingMean, rows...)
	for i, v := range embed(t, there, workerkit.PoolingMean, rows...) {
		if d := directionDiff(v, want[i]); d > sameVector {
			t.Errorf("row %d differs by %v", i, d)
		}
	}
	// "The capital of France is": what a model of 4 bits is sure of. The servers do
	// not repack the weights for this processor, so near ties may fall otherwise.
	prompt := []int32{504, 3575, 282, 4649, 314}
	local := generate(t, loadAsset(t, "smollm2-gguf", ""), prompt, 8, "")
	if remote := generate(t, loadAsset(t, "smollm2-gguf", servers), prompt, 8, ""); remote != local {
		t.Errorf("remote %+v, here %+v", remote, local)
	}
	// A model that names no servers is not spread over those of another.
	if d := directionDiff(embed(t, loadAsset(t, "minilm-gguf-f32", ""), workerkit.PoolingMean, rows[0])[0], want[0]); d > sameVector {
		t.Errorf("afterwards, here: differs by %v", d)
	}
}

// startRPC starts a server on a free port of this machine and returns where it
// listens.
func startRPC(t *testing.T, program string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := l.Addr().String()
	l.Close()
	_, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	// Not under the test's context: it ends before the models are closed.
	cmd := exec.Command(program, "--host", "127.0.0.1", "--port", port, "--threads", "1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 100 { // until it listens
		if err := greetRPC(endpoint); err == nil {
			return endpoint
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not listen on %s", program, endpoint)
	return ""
}
