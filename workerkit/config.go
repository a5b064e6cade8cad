package workerkit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// OptionKind is the kind of value that a member of runtime_config takes.
type OptionKind int

// The kinds of option.
const (
	KindInt OptionKind = iota
	KindFloat
	KindBool
	KindString
	KindEnum
	KindStrings
)

// Option describes one member of runtime_config. The same table decodes,
// documents and reports it.
type Option struct {
	Name     string
	Help     string // one sentence: what it does and when to change it
	Kind     OptionKind
	Default  any      // int, float64, bool, string or []string; nil where absence has its own meaning
	Min, Max float64  // KindInt, KindFloat: the legal range, both ends in it
	Enum     []string // KindEnum: the legal values
}

// Allowed says in words what values the option takes.
func (o Option) Allowed() string {
	switch o.Kind {
	case KindInt:
		return fmt.Sprintf("an integer from %.0f to %.0f", o.Min, o.Max)
	case KindFloat:
		return fmt.Sprintf("a number from %g to %g", o.Min, o.Max)
	case KindBool:
		return "true or false"
	case KindEnum:
		return `one of "` + strings.Join(o.Enum, `", "`) + `"`
	case KindStrings:
		return "a list of strings"
	default:
		return "a string"
	}
}

// Config is a runtime_config in force: every member known, of the right kind and
// in range, defaults filled in.
type Config struct{ values map[string]any }

// DecodeConfig reads the runtime_config of a LOAD. Its errors are of
// config_invalid and name the member and what is allowed.
func DecodeConfig(options []Option, raw jsontext.Value) (Config, error) {
	c := Config{values: map[string]any{}}
	for _, o := range options {
		if o.Default != nil {
			c.values[o.Name] = o.Default
		}
	}
	if len(raw) == 0 || raw.Kind() == jsontext.KindNull {
		return c, nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return c, ConfigInvalid("runtime_config: a member stands there twice: %v", err)
		}
		return c, ConfigInvalid("runtime_config must be a JSON object")
	}
	for name, v := range members {
		i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
		if i < 0 {
			return c, ConfigInvalid("runtime_config.%.64s is unknown; this engine has %s", name, optionNames(options))
		}
		got, ok := options[i].decode(v)
		if !ok {
			return c, ConfigInvalid("runtime_config.%s is %.64s; allowed is %s", name, bytes.TrimSpace(v), options[i].Allowed())
		}
		c.values[name] = got
	}
	return c, nil
}

func optionNames(options []Option) string {
	if len(options) == 0 {
		return "no members"
	}
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Name
	}
	return strings.Join(names, ", ")
}

func (o Option) decode(v jsontext.Value) (any, bool) {
	if v.Kind() == jsontext.KindNull {
		return nil, false // absence is written as absence
	}
	switch o.Kind {
	case KindInt:
		var n int
		err := json.Unmarshal(v, &n)
		return n, err == nil && float64(n) >= o.Min && float64(n) <= o.Max
	case KindFloat:
		var f float64
		err := json.Unmarshal(v, &f)
		return f, err == nil && f >= o.Min && f <= o.Max
	case KindBool:
		var b bool
		err := json.Unmarshal(v, &b)
		return b, err == nil
	case KindStrings:
		var s []string
		err := json.Unmarshal(v, &s)
		return s, err == nil
	default:
		var s string
		err := json.Unmarshal(v, &s)
		return s, err == nil && (o.Kind == KindString || slices.Contains(o.Enum, s))
	}
}

// Has says whether the member was given or has a default.
func (c Config) Has(name string) bool { _, ok := c.values[name]; return ok }

// Int, Float, Bool, String and Strings return a member's value, or the zero
// value where it is absent and has no default.
func (c Config) Int(name string) int          { v, _ := c.values[name].(int); return v }
func (c Config) Float(name string) float64    { v, _ := c.values[name].(float64); return v }
func (c Config) Bool(name string) bool        { v, _ := c.values[name].(bool); return v }
func (c Config) String(name string) string    { v, _ := c.values[name].(string); return v }
func (c Config) Strings(name string) []string { v, _ := c.values[name].([]string); return v }

// JSON is the config as DESCRIBE reports it, its members sorted by name.
func (c Config) JSON() jsontext.Value {
	b, err := json.Marshal(c.values, json.Deterministic(true))
	if err != nil {
		panic("workerkit: a config holds only JSON values: " + err.Error())
	}
	return b
}
