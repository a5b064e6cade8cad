//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

// kind is one family of faults.
type kind struct {
	name   string
	weight int // how often it is picked, relative to the others
	make   func(*bench, *rand.Rand) fault

	// possible says whether this bench can make such faults; nil for always. Where
	// it cannot, the first family takes their place and their line stays at 0.
	possible func(*bench) bool
}

// kinds are all families.
var kinds = []kind{
	{"death at a byte of the stream", 30, cutStream, nil},
	{"handshake", 14, badHandshake, nil},
	{"frame in place of an answer", 14, badFrame, nil},
	{"slow drip", 4, drip, nil},
	{"fault inside the engine", 18, engineFault, nil},
	{"signal from outside", 8, outsideSignal, nil},
	{"canceled by the caller", 4, canceled, nil},
	{"closed stdout and stderr", 2, mute, nil},
	{"memory limit", 2, memoryLimit, nil},
	{"full disk", 1, fullDisk, func(b *bench) bool { return b.full != "" }},
	{"pool under fire", 12, poolUnderFire, nil},
	{"real engine killed", 1, realEngine, func(b *bench) bool { return len(b.Engines) > 0 }},
}

// pick chooses a family by weight.
func (b *bench) pick(r *rand.Rand) kind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := r.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			if k.possible != nil && !k.possible(b) {
				return kinds[0]
			}
			return k
		}
	}
	return kinds[0]
}

var (
	signals = []string{"SIGKILL", "SIGSEGV", "SIGABRT", "SIGILL", "SIGBUS", "SIGFPE", "SIGTERM"}
	// answers are what a puppet says in each stage.
	answers = map[protocol.Type]host.Stage{
		protocol.TypeHello: host.StageHello, protocol.TypeLoaded: host.StageLoad, protocol.TypeVectors: host.StageEmbed,
		protocol.TypeScores: host.StageRerank, protocol.TypeText: host.StageGenerate, protocol.TypePong: host.StagePing,
		protocol.TypeUnloaded: host.StageUnload,
	}
)

// aDeath is a way for a puppet to die.
func aDeath(r *rand.Rand) string {
	switch r.IntN(10) {
	case 0, 1, 2, 3, 4:
		return "signal:" + signals[r.IntN(len(signals))]
	case 5, 6:
		return "exit:" + strconv.Itoa(r.IntN(256))
	case 7:
		return "close"
	case 8:
		return "stop"
	default:
		return "hang"
	}
}

// causeOfDeath is what the module must see of a puppet's death.
func causeOfDeath(how string) verdict {
	how, arg, _ := strings.Cut(how, ":")
	switch how {
	case "signal":
		return verdict{cause: host.CauseSignal, signal: arg}
	case "exit":
		code, _ := strconv.Atoi(arg)
		return verdict{cause: host.CauseExit, code: code}
	case "close":
		return verdict{cause: host.CauseEOF}
	default:
		return verdict{cause: host.CauseTimeout}
	}
}

// cutStream lets the worker die after any number of bytes of all that it says, in
// any way. The puppet itself says on stderr where that was.
func cutStream(b *bench, r *rand.Rand) fault {
	const whole = 800 // bytes of a whole series, about; more is a series that succeeds
	n, how := r.IntN(whole), aDeath(r)
	script := append(puppet.Script{{Do: "budget", N: n, Text: how}}, puppet.Handshake(puppet.Step{Do: "serve"})...)
	return fault{fmt.Sprintf("%s after %d bytes", how, n), func(ctx context.Context) error {
		if causeOfDeath(how).cause != host.CauseTimeout {
			return judgeCut(b.puppets(script, always(patience)).run(ctx), how)
		}
		// Which request will hang is not known beforehand, so all have a short
		// deadline; one that passed before the puppet said that it hangs was too
		// short for the machine's load.
		for limit := 2 * impatience; ; limit *= 8 {
			o := b.puppets(script, always(limit)).run(ctx)
			if o.err == nil || strings.Contains(o.log, "puppet: cut ") || limit > patience {
				return judgeCut(o, how)
			}
		}
	}}
}

func judgeCut(o outcome, how string) error {
	i := strings.LastIndex(o.log, "puppet: cut ")
	if i < 0 {
		return oneOf(o, success)
	}
	var message protocol.Type
	var sent, unsent int
	if _, err := fmt.Sscanf(o.log[i:], puppet.CutFormat, &message, &sent, &unsent); err != nil {
		return fmt.Errorf("the puppet's last words: %w", err)
	}
	stage := answers[message]
	if unsent == 0 { // answered in full: what comes next meets the death
		right := dies(how, next(stage), host.StageIdle)
		if stage == host.StageHello {
			right = append(right, dies(how, stage)...)
		}
		return oneOf(o, right...)
	}
	right := dies(how, stage)
	if how == "close" && sent > 0 { // in the middle of a frame, or before a raw one
		right[0].cause = host.CauseViolation
	}
	return oneOf(o, right...)
}

// badHandshake is a worker that does not begin as it must.
func badHandshake(b *bench, r *rand.Rand) fault {
	connect, hello := puppet.Step{Do: "connect"}, puppet.Step{Do: "hello"}
	hang := puppet.Step{Do: "die", Text: "hang"}
	say := func(members string) puppet.Script { return puppet.Script{connect, {Do: "hello", Text: members}, hang} }
	raw := func(text string) puppet.Script { return puppet.Script{connect, {Do: "json", Text: text}, hang} }
	violation := verdict{stage: host.StageHello, cause: host.CauseViolation}
	timeout := verdict{stage: host.StageHello, cause: host.CauseTimeout}
	choices := []struct {
		name   string
		script puppet.Script
		right  verdict
	}{
		{"never connects", puppet.Script{hang}, timeout},
		{"connects and is silent", puppet.Script{connect, hang}, timeout},
		{"stopped before it connects", puppet.Script{{Do: "die", Text: "stop"}}, timeout},
		{"wrong nonce", say(fmt.Sprintf(`{"nonce":"%032x"}`, r.Uint64())), violation},
		{"no nonce", say(`{"nonce":""}`), violation},
		{"wrong version", say(fmt.Sprintf(`{"v":%d}`, 2+r.IntN(200))), violation},
		{"version 0", say(`{"v":0}`), violation},
		{"wrong pid", say(`{"pid":1}`), violation},
		{"max_frame too small", say(fmt.Sprintf(`{"max_frame":%d}`, r.IntN(protocol.MinMaxFrame))), violation},
		{"max_frame too large", say(fmt.Sprintf(`{"max_frame":%d}`, protocol.MaxMaxFrame+1+r.IntN(1<<20))), violation},
		{"another message first", raw(`{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0}`), violation},
		{"no JSON", raw("HELLO"), violation},
		{"length 0", puppet.Script{connect, {Do: "length", N: 0}, hang}, violation},
		{"length 64 KiB + 1", puppet.Script{connect, {Do: "length", N: protocol.HandshakeMaxFrame + 1}, hang}, violation},
		{"length 2^32-1", puppet.Script{connect, {Do: "length", N: 1<<32 - 1}, hang}, violation},
		{"length 64 KiB and silence", puppet.Script{connect, {Do: "length", N: protocol.HandshakeMaxFrame}, hang}, timeout},
		{"slow drip", puppet.Script{connect, {Do: "drip", N: 25}, hello, hang}, timeout},
		{"HELLO twice", puppet.Script{connect, hello, hello, hang}, verdict{}},
		{"a stranger first", append(puppet.Script{{Do: "stranger"}}, puppet.Handshake(puppet.Step{Do: "serve"})...), success},
	}
	c := choices[r.IntN(len(choices))]
	return fault{c.name, func(ctx context.Context) error {
		limit := always(patience)
		if c.right == timeout {
			limit = only(host.StageHello)
		}
		o := b.puppets(c.script, limit).run(ctx)
		if c.name == "HELLO twice" { // seen while idle, or by the next request
			return oneOf(o, verdict{stage: host.StageIdle, cause: host.CauseViolation}, verdict{stage: host.StageLoad, cause: host.CauseViolation})
		}
		return oneOf(o, c.right)
	}}
}

// badFrame is a worker that serves up to a stage and then says something else than
// the answer.
func badFrame(b *bench, r *rand.Rand) fault {
	at := 1 + r.IntN(len(order)-2) // a stage between HELLO and SHUTDOWN
	stage := order[at]
	hang := puppet.Step{Do: "die", Text: "hang"}
	json := func(text string) []puppet.Step { return []puppet.Step{{Do: "json", Text: text}, hang} }
	length := func(n int) []puppet.Step { return []puppet.Step{{Do: "length", N: n}, hang} }
	violation, timeout := host.CauseViolation, host.CauseTimeout
	choices := []struct {
		name  string
		steps []puppet.Step
		cause host.Cause
	}{
		{"length 0", length(0), violation},
		{"length max + 1", length(protocol.DefaultMaxFrame + 1), violation},
		{"length 2^32-1", length(1<<32 - 1), violation},
		{"length max and silence", length(protocol.DefaultMaxFrame), timeout},
		{"garbage", []puppet.Step{{Do: "frame", Text: garbage(r)}, hang}, violation},
		{"half a length", []puppet.Step{{Do: "bytes", Text: "0102"}, hang}, timeout},
		{"an answer to nobody", json(`{"type":"PONG","req_id":999,"rss_mb":1,"models_loaded":0}`), violation},
		{"an answer to something else", json(`{"type":"HELLO_ACK","req_id":$ID,"v":1,"accept":true,"max_frame":65536}`), violation},
		{"a refusal of another request", json(`{"type":"ERR","req_id":999,"code":"oom","msg":"x"}`), violation},
		{"a malformed refusal", json(`{"type":"ERR","req_id":$ID}`), violation},
		{"a request", json(`{"type":"PING","req_id":$ID}`), violation},
		{"a member twice", json(`{"type":"UNLOADED","req_id":$ID,"req_id":$ID}`), violation},
		{"silence", []puppet.Step{hang}, timeout},
	}
	c := choices[r.IntN(len(choices))]
	script := puppet.Handshake(puppet.Step{Do: "serve", N: at - 1})
	if at == 1 {
		script = puppet.Handshake()
	}
	script = append(append(script, puppet.Step{Do: "request"}), c.steps...)
	return fault{c.name + " in " + string(stage), func(ctx context.Context) error {
		limit := always(patience)
		if c.cause == timeout {
			limit = only(stage)
		}
		return oneOf(b.puppets(script, limit).run(ctx), verdict{stage: stage, cause: c.cause})
	}}
}

// garbage is a frame's worth of bytes that are no JSON, in hex.
func garbage(r *rand.Rand) string {
	var hex strings.Builder
	for range 1 + r.IntN(4096) {
		fmt.Fprintf(&hex, "%02x", 0x80|r.IntN(0x80)) // no JSON begins so
	}
	return hex.String()
}

// drip is a worker that says everything right, a byte at a time.
func drip(b *bench, r *rand.Rand) fault {
	if stage := order[1+r.IntN(len(order)-2)]; r.IntN(2) == 0 {
		at := 0
		for order[at+1] != stage {
			at++
		}
		script := puppet.Handshake(puppet.Step{Do: "serve", N: at}, puppet.Step{Do: "drip", N: 40}, puppet.Step{Do: "serve"})
		if at == 0 {
			script = puppet.Handshake(puppet.Step{Do: "drip", N: 40}, puppet.Step{Do: "serve"})
		}
		return fault{"too slow in " + string(stage), func(ctx context.Context) error {
			return oneOf(b.puppets(script, only(stage)).run(ctx), verdict{stage: stage, cause: host.CauseTimeout})
		}}
	}
	script := puppet.Handshake(puppet.Step{Do: "drip", N: 1}, puppet.Step{Do: "serve"})
	return fault{"slow but in time", func(ctx context.Context) error {
		return oneOf(b.puppets(script, always(patience)).run(ctx), success)
	}}
}

// mute is a worker that closes its stdout and stderr and serves on.
func mute(b *bench, _ *rand.Rand) fault {
	script := append(puppet.Script{{Do: "mute"}}, puppet.Handshake(puppet.Step{Do: "serve"})...)
	return fault{"serves on", func(ctx context.Context) error {
		return oneOf(b.puppets(script, always(patience)).run(ctx), success)
	}}
}
