package gate

import (
	"encoding/json"
	"math"
	"strconv"
)

// Relation says on which side of its limit a value must lie.
type Relation string

// The relations.
const (
	AtLeast Relation = ">="
	AtMost  Relation = "<="
	Equal   Relation = "=="
)

// Check is one figure of a gate, held to its limit.
type Check struct {
	Gate     string   `json:"gate"`   // as in suite.yaml
	Figure   string   `json:"figure"` // what of the gate
	Value    Figure   `json:"value"`
	Relation Relation `json:"relation"`
	Limit    Figure   `json:"limit"`
	Passed   bool     `json:"passed"`
	Worst    string   `json:"worst,omitempty"`  // id of the input that lies worst
	Detail   string   `json:"detail,omitempty"` // what the number alone does not say
}

// Passed reports whether there are checks and all of them passed.
func Passed(checks []Check) bool {
	for _, c := range checks {
		if !c.Passed {
			return false
		}
	}
	return len(checks) > 0
}

// hold makes the check of value against limit. NaN passes no limit.
func hold(gate, figure string, value float64, r Relation, limit float64, worst string) Check {
	c := Check{Gate: gate, Figure: figure, Value: Figure(value), Relation: r, Limit: Figure(limit), Worst: worst}
	switch r {
	case AtLeast:
		c.Passed = value >= limit
	case AtMost:
		c.Passed = value <= limit
	case Equal:
		c.Passed = value == limit
	}
	return c
}

// Figure is a float64 that may be not finite, which JSON has no number for: it
// is then the string "NaN", "+Inf" or "-Inf".
type Figure float64

// MarshalJSON writes a number, or the name of what is none.
func (f Figure) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		v, err := strconv.ParseFloat(s, 64)
		*f = Figure(v)
		return err
	}
	return json.Unmarshal(b, (*float64)(f))
}

// worst returns the index of the value that lies worst: the first that is NaN,
// else the lowest, or the highest where high is set. It is -1 for no values.
func worst(values []float64, high bool) int {
	at := -1
	for i, v := range values {
		switch {
		case math.IsNaN(v):
			return i
		case at < 0, high && v > values[at], !high && v < values[at]:
			at = i
		}
	}
	return at
}

// lowest returns the lowest value and its id: NaN where there is none, or where
// one is NaN.
func lowest(values []float64, ids []string) (float64, string) {
	i := worst(values, false)
	if i < 0 {
		return math.NaN(), ""
	}
	return values[i], ids[i]
}

// largest returns the largest of values that are errors, and its id, which is
// empty where there is no error at all; NaN as in lowest.
func largest(values []float64, ids []string) (float64, string) {
	i := worst(values, true)
	switch {
	case i < 0:
		return math.NaN(), ""
	case values[i] == 0:
		return 0, ""
	}
	return values[i], ids[i]
}
