package pairs

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Layout{
		"101 $A 102 $B:1 102:1": BERT(101, 102),
		"0 $A 2 2 $B 2":         RoBERTa(0, 2),
		"$A $B":                 {Pair: []Piece{{Part: Query}, {Part: Document}}},
	} {
		got, err := Parse(strings.Fields(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		a, b := []int32{7, 8}, []int32{9}
		row, _ := got.Append(nil, a, b)
		wantRow, _ := want.Append(nil, a, b)
		if !reflect.DeepEqual(row, wantRow) || !reflect.DeepEqual(got.AppendTypes(nil, a, b), want.AppendTypes(nil, a, b)) {
			t.Errorf("%s lays out %v", text, row)
		}
		if !reflect.DeepEqual(got.Prefix, want.Prefix) || !reflect.DeepEqual(got.Suffix, want.Suffix) {
			t.Errorf("%s has the ends %v and %v", text, got.Prefix, got.Suffix)
		}
	}
	for text, says := range map[string]string{
		"":              "once each",
		"$A":            "once each",
		"$B $A":         "once each",
		"$A $B $B":      "once each",
		"$A $C $B":      `"$C" is neither`,
		"-1 $A $B":      `"-1" is neither`,
		"$A $B:x":       `"$B:x" has no token type`,
		"$A $B:-1":      `"$B:-1" has no token type`,
		"4294967296 $A": `"4294967296" is neither`,
	} {
		if _, err := Parse(strings.Fields(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, wanted %s", text, err, says)
		}
	}
}
