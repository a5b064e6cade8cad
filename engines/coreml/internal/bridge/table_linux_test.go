package bridge

import (
	"reflect"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// encodingOf says which Go type stands for each type of an encoding.
var encodingOf = map[string]reflect.Type{
	"@": reflect.TypeFor[objc.ID](), "@?": reflect.TypeFor[objc.ID](), "#": reflect.TypeFor[objc.ID](),
	"q": reflect.TypeFor[int64](), "Q": reflect.TypeFor[uint64](), "B": reflect.TypeFor[bool](),
	"d": reflect.TypeFor[float64](), "r*": reflect.TypeFor[string](), "^@": reflect.TypeFor[*objc.ID](),
	"v": reflect.TypeFor[void](), "Vv": reflect.TypeFor[void](), "{_NSRange=QQ}": reflect.TypeFor[objc.Range](),
}

// types splits an encoding into its types: the result, the receiver, the
// selector, the arguments.
func types(t *testing.T, encoding string) []string {
	t.Helper()
	var all []string
	for rest := encoding; rest != ""; {
		best := ":"
		for e := range encodingOf {
			if strings.HasPrefix(rest, e) && (best == ":" || len(e) > len(best)) {
				best = e
			}
		}
		if !strings.HasPrefix(rest, best) {
			t.Fatalf("encoding %q: no type begins with %q", encoding, rest)
		}
		all, rest = append(all, best), rest[len(best):]
	}
	return all
}

// A message that is sent with other Go types than its encoding has reads
// registers that hold something else.
func TestGoTypesAreThoseOfTheEncodings(t *testing.T) {
	for _, m := range new(messages).list() {
		parts, signature := types(t, m.Encoding), m.sender.signature()
		if len(parts) < 3 || parts[1] != "@" || parts[2] != ":" || signature.NumIn() != len(parts)-1 {
			t.Errorf("%v: encoding %s does not fit %v", m, m.Encoding, signature)
			continue
		}
		if got := signature.Out(0); got != encodingOf[parts[0]] {
			t.Errorf("%v: %v is returned, %s is declared", m, got, parts[0])
		}
		for i, p := range parts[3:] {
			if got := signature.In(i + 2); got != encodingOf[p] {
				t.Errorf("%v: argument %d is %v, %s is declared", m, i, got, p)
			}
		}
		if args := strings.Count(m.Selector, ":"); args != len(parts)-3 {
			t.Errorf("%v takes %d arguments, the encoding has %d", m, args, len(parts)-3)
		}
		if strings.HasPrefix(m.Since, "-") || Older(m.Since, "10.0") {
			t.Errorf("%v: since macOS %q", m, m.Since)
		}
	}
}

// asGCC is how gcc writes the encoding: blocks are plain objects to it, and BOOL
// is an unsigned char.
func asGCC(encoding string) string {
	return strings.NewReplacer("@?", "@", "B", "C").Replace(encoding)
}

// The stub has every method of the table in the table's types, so that no test
// proves a call that a Mac would refuse.
func TestStubHasTheTable(t *testing.T) {
	b := open(t)
	differences := map[string]string{}
	for _, d := range b.Differences() {
		differences[d.Message.String()] = d.Got
	}
	for _, m := range b.m.list() {
		got, differs := differences[m.String()]
		if differs && got != asGCC(m.Encoding) {
			t.Errorf("%v: the stub has %q, the table %q", m, got, m.Encoding)
		}
	}
	if b.Messages() < 70 {
		t.Errorf("the table has %d messages", b.Messages())
	}
}
