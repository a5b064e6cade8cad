package bridge

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// The macOS releases that the worker tells apart.
const (
	serveSince    = "13.0" // compute units "CPU and Neural Engine", asynchronous compile
	devicesSince  = "14.0" // MLModel's list of compute devices
	planSince     = "14.4" // MLComputePlan
	functionSince = "15.0" // several functions in one package
)

// Bridge is Core ML over one runtime. Its methods may be called by any
// goroutine.
type Bridge struct {
	rt     objc.Runtime
	m      messages
	system objc.System

	metadataKey objc.ID // of what a model's author put into its metadata
	deviceClass map[DeviceKind]objc.ID
	differences []Difference
}

// Difference is a message that this system has not, or has with other types.
type Difference struct {
	Message Message
	Got     string // the encoding here, empty where the message is missing
}

func (d Difference) String() string {
	if d.Got == "" {
		return fmt.Sprintf("%v is missing; it came with macOS %s", d.Message, d.Message.Since)
	}
	return fmt.Sprintf("%v has the types %s, expected are %s", d.Message, d.Got, d.Message.Encoding)
}

// Open looks every message up. One that this macOS should have and has not is an
// error; one that is newer than this macOS is never sent.
func Open(rt objc.Runtime) (*Bridge, error) {
	b := &Bridge{rt: rt, system: rt.System(), metadataKey: rt.Constant("MLModelCreatorDefinedKey"), deviceClass: map[DeviceKind]objc.ID{}}
	if Older(b.system.Version, serveSince) {
		return nil, fmt.Errorf("this is macOS %s, the Neural Engine can be asked for from macOS %s on: update macOS", b.system.Version, serveSince)
	}
	if b.metadataKey == 0 {
		return nil, fmt.Errorf("macOS %s: Core ML has no MLModelCreatorDefinedKey, so this worker does not fit it", b.system.Version)
	}
	var lost []string
	for _, m := range b.m.list() {
		class, selector := rt.Class(m.Class), rt.Selector(m.Selector)
		got, ok := rt.Encoding(class, selector, m.ClassMethod)
		switch {
		case ok:
			if got = withoutOffsets(got); got != m.Encoding {
				b.differences = append(b.differences, Difference{m, got})
			}
		case !Older(b.system.Version, m.Since):
			lost = append(lost, Difference{Message: m}.String())
		default:
			b.differences = append(b.differences, Difference{Message: m})
		}
		m.sender.bind(bound{selector: selector, class: class}, rt.MessageSend())
	}
	if len(lost) > 0 {
		return nil, fmt.Errorf("macOS %s (%s): Core ML lacks what it should have, so this worker does not fit it: %s", b.system.Version, b.system.Build, strings.Join(lost, "; "))
	}
	for kind, name := range deviceClasses {
		b.deviceClass[kind] = rt.Class(name)
	}
	return b, nil
}

// System says what Core ML runs on.
func (b *Bridge) System() objc.System { return b.system }

// CanPlan says whether this macOS makes compute plans.
func (b *Bridge) CanPlan() bool { return !Older(b.system.Version, planSince) }

// CanSelect says whether this macOS can load one function of several.
func (b *Bridge) CanSelect() bool { return !Older(b.system.Version, functionSince) }

// Differences are the messages that are newer than this macOS, and those whose
// types are not the expected ones. Neither keeps the worker from serving.
func (b *Bridge) Differences() []Difference { return b.differences }

// Messages is how many messages the bridge knows.
func (b *Bridge) Messages() int { return len(b.m.list()) }

// withoutOffsets turns "@24@0:8@16" into "@@:@".
func withoutOffsets(encoding string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, encoding)
}

// Older compares versions of macOS by number: 14.10 is not older than 14.4.
func Older(version, than string) bool {
	v, t := strings.Split(version, "."), strings.Split(than, ".")
	for i := range max(len(v), len(t)) {
		if c := cmp.Compare(part(v, i), part(t, i)); c != 0 {
			return c < 0
		}
	}
	return false
}

func part(version []string, i int) int {
	if i >= len(version) {
		return 0
	}
	n, err := strconv.Atoi(version[i])
	if err != nil {
		return 0
	}
	return n
}
