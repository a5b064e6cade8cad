//go:build linux || darwin

package transcript_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(variable); path != "" {
		playWorker(path)
	}
	os.Exit(m.Run())
}

// variable names the file of the transcript that this very executable plays the
// worker of.
const variable = "SYNAPSE_TEST_TRANSCRIPT"

// playWorker is a worker that says what a transcript says and holds the module to
// it. It does not return.
func playWorker(path string) {
	fmt.Fprintln(os.Stderr, followScript(path))
	os.Exit(99)
}

// followScript exits with the transcript's status, or returns what went wrong.
func followScript(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var tr transcript.Transcript
	if err := json.Unmarshal(b, &tr); err != nil {
		return err
	}
	args := map[string]string{}
	for i, arg := range os.Args[:len(os.Args)-1] {
		args[arg] = os.Args[i+1]
	}
	conn, err := net.Dial("unix", args["--socket"])
	if err != nil {
		return err
	}
	in := protocol.NewFrameReader(conn, math.MaxInt32)
	for i, step := range tr.Steps {
		switch {
		case step.From == transcript.Module:
			if err := expectStep(in, step); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		case step.Frame == transcript.End:
			conn.Close()
		default:
			b, err := step.Bytes()
			if err != nil {
				return err
			}
			if step.Type() == protocol.TypeHello {
				b = ownHello(b[4:], tr.Start.Nonce, args["--nonce"])
			}
			if _, err := conn.Write(b); err != nil {
				return err
			}
		}
	}
	if tr.Expect.Does == transcript.Exit {
		os.Exit(tr.Expect.Status)
	}
	// The module kills. It must not have to wait for this end of the connection.
	_, _ = io.Copy(io.Discard, conn)
	time.Sleep(wiretest.Patience)
	return errors.New("the module did not kill this worker")
}

func expectStep(in *protocol.FrameReader, step transcript.Step) error {
	if step.Frame == transcript.Raw {
		payload, err := in.ReadRaw(nil)
		if err != nil {
			return err
		}
		if want, err := step.Payload(); err != nil || !slices.Equal(payload, want) {
			return fmt.Errorf("the host sent %x, the transcript has %x", payload, want)
		}
		return nil
	}
	payload, err := in.ReadControl(nil)
	if err != nil {
		return err
	}
	if same, err := step.Same(payload); err != nil || !same {
		return fmt.Errorf("the host sent %s, the transcript has %s", payload, step.Message)
	}
	return nil
}

// ownHello is a HELLO with this process's id, and with the nonce that it was
// started with where it has the transcript's.
func ownHello(payload []byte, scripted, given string) []byte {
	var members transcript.Members
	if err := json.Unmarshal(payload, &members); err != nil {
		panic(err)
	}
	for i, m := range members {
		switch {
		case m.Name == "pid":
			members[i].Value = fmt.Appendf(nil, "%d", os.Getpid())
		case m.Name == "nonce" && string(m.Value) == `"`+scripted+`"`:
			members[i].Value = jsontext.Value(`"` + given + `"`)
		}
	}
	out, err := json.Marshal(members, jsontext.PreserveRawStrings(true))
	if err != nil {
		panic(err)
	}
	return frame(out)
}
