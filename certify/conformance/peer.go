package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/synapse-module/workers/protocol"
)

const (
	// defaultPatience bounds what takes no time of its own: connecting, PING, a
	// refusal, an exit. Half a minute is what a starved machine may need; a
	// worker that needs more hangs.
	defaultPatience = 30 * time.Second

	// outputGrace is how long a dead worker's pipes are waited for: a child of
	// its own may hold them.
	outputGrace = time.Second
)

// process is a worker process that this package started.
type process struct {
	cmd      *exec.Cmd
	stdout   *tail
	stderr   *tail
	exited   chan struct{} // closed when it is reaped
	patience time.Duration
}

// launch starts the worker with the given arguments and no environment but its
// id, as package host does.
func launch(ctx context.Context, o Options, args ...string) (*process, error) {
	p := &process{stdout: new(tail), stderr: new(tail), exited: make(chan struct{}), patience: o.patience()}
	p.cmd = exec.CommandContext(ctx, o.Worker, args...)
	p.cmd.Env = []string{"SYNAPSE_WORKER_ID=certify-protocol"}
	if runtime.GOOS == "windows" {
		p.cmd.Env = append(p.cmd.Env, "SYSTEMROOT="+os.Getenv("SYSTEMROOT"))
	}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.WaitDelay = outputGrace
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the worker cannot be started: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // the status is read from ProcessState
		close(p.exited)
	}()
	return p, nil
}

// status waits for the process's end and returns its exit status, -1 for a
// signal.
func (p *process) status() (int, error) {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(p.patience):
		return 0, fmt.Errorf("the worker still runs after %v", p.patience)
	}
}

// exits waits for the process's end and wants one of the statuses.
func (p *process) exits(want ...int) error {
	got, err := p.status()
	if err != nil {
		return err
	}
	for _, w := range want {
		if got == w {
			return nil
		}
	}
	return fmt.Errorf("exit status %d (%v), due is %d", got, p.cmd.ProcessState, want)
}

func (p *process) kill() {
	select {
	case <-p.exited:
	default:
		_ = p.cmd.Process.Kill() // it may end by itself just now
		<-p.exited
	}
}

// peer is a worker that has connected.
type peer struct {
	*process
	conn  net.Conn
	in    *protocol.FrameReader
	nonce string
}

// connect starts the worker and accepts its connection.
func connect(ctx context.Context, o Options) (*peer, error) {
	l, address, err := listen()
	if err != nil {
		return nil, fmt.Errorf("no socket to listen on: %w", err)
	}
	defer l.Close()
	nonce := randomHex(protocol.NonceBytes)
	p, err := launch(ctx, o, append([]string{"--socket", address, "--nonce", nonce}, o.Args...)...)
	if err != nil {
		return nil, err
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	select {
	case c := <-accepted:
		return &peer{process: p, conn: c, in: protocol.NewFrameReader(c, protocol.HandshakeMaxFrame), nonce: nonce}, nil
	case <-p.exited:
		return nil, &EarlyEnd{fmt.Sprintf("the worker ended (%v) before it connected", p.cmd.ProcessState), p.stderr.String()}
	case <-time.After(p.patience):
		p.kill()
		return nil, &EarlyEnd{fmt.Sprintf("the worker did not connect within %v", p.patience), p.stderr.String()}
	}
}

// EarlyEnd is a worker that never connected.
type EarlyEnd struct {
	Reason  string
	LogTail string
}

func (e *EarlyEnd) Error() string { return e.Reason }

func (p *peer) close() {
	_ = p.conn.Close()
	p.kill()
}

// bound gives the next reads and writes their limit.
func (p *peer) bound(d time.Duration) error { return p.conn.SetDeadline(time.Now().Add(d)) }

// closed wants the worker to say no more and to end the connection.
func (p *peer) closed() error {
	if err := p.bound(p.patience); err != nil {
		return err
	}
	payload, err := p.in.ReadControl(nil)
	switch {
	case err == nil:
		return fmt.Errorf("the worker answered %s, it must close the connection", show(payload))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the worker neither answered nor closed the connection within %v", p.patience)
	}
	return nil
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}
