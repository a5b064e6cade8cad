//go:build linux || darwin

// Package puppet is a worker that follows a script: it says what it is told, byte
// by byte, and dies where it is told. Tests hold the module's side of the wire to
// it, as package wiretest holds the worker's. A test binary becomes a puppet by
// being started with [Env]'s variable and calling [Main] first.
package puppet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/internal/signaldeath"
	"github.com/synapse-module/workers/protocol"
)

// variable holds the script of a puppet.
const variable = "SYNAPSE_TEST_PUPPET"

// Step is one thing that a puppet does.
type Step struct {
	Do   string // see [steps]
	N    int    `json:",omitzero"`
	Text string `json:",omitempty"`
}

// Script is what a puppet does, in order. At its end the puppet exits 0.
type Script []Step

// CutFormat is what a puppet says on stderr when its budget ends: the message it
// was writing, the bytes of it that were sent, and those that were not.
const CutFormat = "puppet: cut %s sent %d unsent %d\n"

// Env is the environment that makes this very executable a puppet. The race
// detector's pause at a process's end is turned off.
func (s Script) Env() []string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return []string{variable + "=" + string(b), "GORACE=atexit_sleep_ms=0"}
}

// Handshake is how every sound worker begins.
func Handshake(then ...Step) Script {
	return append(Script{{Do: "connect"}, {Do: "hello"}, {Do: "ack"}}, then...)
}

// Main runs the script of the environment and does not return, or returns at once
// where there is none.
func Main() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var s Script
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	p := &puppet{budget: -1}
	for i, arg := range os.Args[:len(os.Args)-1] {
		switch arg {
		case "--socket":
			p.socket = os.Args[i+1]
		case "--nonce":
			p.nonce = os.Args[i+1]
		}
	}
	for _, step := range s {
		do, ok := steps[step.Do]
		if !ok {
			panic("puppet: no step " + step.Do)
		}
		do(p, step)
	}
	os.Exit(0)
}

// Inheritable lists this process's descriptors that a child gets: those that are
// not marked to be closed.
func Inheritable() []int {
	const looked = 64 // a test has fewer
	var open []int
	for fd := range looked {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			open = append(open, fd)
		}
	}
	return open
}

type puppet struct {
	socket, nonce string
	conn          net.Conn
	in            *protocol.FrameReader
	header        protocol.Header
	ids           []int32
	loads         int

	budget int    // bytes that may still be written; -1 for any number
	death  string // what happens when they are spent

	writing protocol.Type // the message that is being written
	pause   time.Duration
	last    string // how it dies of SHUTDOWN

	place   string // see alone
	crowded bool
}

// steps is what a puppet can do.
var steps = map[string]func(*puppet, Step){
	"connect": func(p *puppet, _ Step) {
		conn, err := net.Dial("unix", p.socket)
		p.must(err)
		p.conn, p.in = conn, protocol.NewFrameReader(conn, protocol.MaxMaxFrame)
	},
	"hello": func(p *puppet, s Step) { // Text: members that differ, as JSON
		h := protocol.Hello{V: protocol.Version, Nonce: p.nonce, PID: os.Getpid(), MaxFrame: protocol.DefaultMaxFrame, Engine: protocol.Engine{Name: "puppet", Version: "1", BuildFlags: []string{}}}
		if s.Text != "" {
			p.must(json.Unmarshal([]byte(s.Text), &h))
		}
		p.message(h)
	},
	"ack":     func(p *puppet, _ Step) { _, err := p.in.ReadControl(nil); p.must(err) },
	"request": func(p *puppet, _ Step) { p.request() },
	"json":    func(p *puppet, s Step) { p.frame([]byte(strings.ReplaceAll(s.Text, "$ID", p.header.ReqID.String()))) },
	"raw":     func(p *puppet, s Step) { p.frame(make([]byte, s.N)) },
	"bytes":   func(p *puppet, s Step) { b, err := hex.DecodeString(s.Text); p.must(err); p.write(b) },
	"frame":   func(p *puppet, s Step) { b, err := hex.DecodeString(s.Text); p.must(err); p.frame(b) },
	"length":  func(p *puppet, s Step) { p.write(binary.LittleEndian.AppendUint32(nil, uint32(s.N))) },
	"serve":   func(p *puppet, s Step) { p.serve(s.N) },
	// serve until shutdown dies of SHUTDOWN by Text.
	"serve until shutdown": func(p *puppet, s Step) { p.last = s.Text; p.serve(0) },
	// alone has no room beside another puppet that was told the same: it refuses to
	// load while the other is there.
	"alone": func(p *puppet, s Step) {
		f, err := os.OpenFile(s.Text, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			p.crowded = true
			return
		}
		f.Close()
		p.place = s.Text
	},
	// unless exits 1 at the next request while the file Text is not there.
	"unless": func(p *puppet, s Step) {
		if _, err := os.Stat(s.Text); err != nil {
			p.request()
			os.Exit(1)
		}
	},
	"budget": func(p *puppet, s Step) { p.budget, p.death = s.N, s.Text },
	"drip":   func(p *puppet, s Step) { p.pause = time.Duration(s.N) * time.Millisecond },
	"die":    func(p *puppet, s Step) { p.die(s.Text) },
	"mute":   func(_ *puppet, _ Step) { _, _ = unix.Close(1), unix.Close(2) },
	"sleep":  func(_ *puppet, s Step) { time.Sleep(time.Duration(s.N) * time.Millisecond) },
	"stderr": func(_ *puppet, s Step) { os.Stderr.WriteString(s.Text) },
	"cat": func(p *puppet, s Step) {
		b, err := os.ReadFile(s.Text)
		p.must(err)
		os.Stderr.Write(b)
	},
	// environment tells what the puppet was given.
	"environment": func(p *puppet, _ Step) {
		dir, err := os.Getwd()
		p.must(err)
		var open []string
		for _, fd := range Inheritable() {
			open = append(open, strconv.Itoa(fd))
		}
		fmt.Fprintf(os.Stderr, "%s\ndir=%s\nfds=%s\n", strings.Join(os.Environ(), "\n"), dir, strings.Join(open, ","))
	},
	// holder leaves a process behind that has left the group and holds stderr.
	"holder": func(p *puppet, s Step) {
		cmd := exec.Command("/bin/sleep", strconv.Itoa(s.N))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		p.must(cmd.Start())
		fmt.Fprintln(os.Stderr, "holder", cmd.Process.Pid)
	},
	// child leaves a process behind that stays in the group.
	"child": func(p *puppet, s Step) {
		cmd := exec.Command("/bin/sleep", strconv.Itoa(s.N))
		p.must(cmd.Start())
		fmt.Fprintln(os.Stderr, "child", cmd.Process.Pid)
	},
	// stranger connects from another process, which writes what it is told.
	"stranger": func(p *puppet, s Step) {
		cmd := exec.Command("/proc/self/exe", "--socket", p.socket, "--nonce", p.nonce)
		cmd.Env = Script{{Do: "connect"}, {Do: "hello", Text: s.Text}, {Do: "sleep", N: s.N}}.Env()
		_ = cmd.Run() // it is sent away
	},
}

func (p *puppet) must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "puppet:", err)
		os.Exit(protocol.ExitIO)
	}
}

// die ends the puppet, or makes it useless, in one of these ways.
func (p *puppet) die(how string) {
	how, arg, _ := strings.Cut(how, ":")
	switch how {
	case "exit":
		code, _ := strconv.Atoi(arg)
		os.Exit(code)
	case "signal":
		signaldeath.By(unix.SignalNum(arg))
	case "stop":
		p.must(unix.Kill(os.Getpid(), unix.SIGSTOP))
		select {} // the signal is on its way
	case "close":
		p.conn.Close()
		select {}
	case "hang":
		select {}
	default:
		panic("puppet: no death " + how)
	}
}

// write honours budget and drip. Before a death in the middle it says on stderr
// what it was writing and how far it came, so that a test knows without asking the
// module.
func (p *puppet) write(b []byte) {
	last := p.budget >= 0 && len(b) >= p.budget
	var unsent int
	if last {
		b, unsent = b[:p.budget], len(b)-p.budget
	}
	if p.budget > 0 {
		p.budget -= len(b)
	}
	sent, step := len(b), len(b)
	if p.pause > 0 {
		step = 1
	}
	for len(b) > 0 {
		_, err := p.conn.Write(b[:step])
		p.must(err)
		b = b[step:]
		time.Sleep(p.pause)
	}
	if last {
		fmt.Fprintf(os.Stderr, CutFormat, p.writing, sent, unsent)
		p.die(p.death)
	}
}

func framed(b, payload []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(payload))), payload...)
}

func (p *puppet) frame(payload []byte) { p.write(framed(nil, payload)) }

// message writes a message and its raw frames.
func (p *puppet) message(m protocol.Message, raw ...[]byte) {
	payload, err := protocol.Marshal(m)
	p.must(err)
	b := framed(nil, payload)
	for _, r := range raw {
		b = framed(b, r)
	}
	p.writing = m.MessageType()
	p.write(b)
}
