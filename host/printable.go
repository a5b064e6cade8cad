package host

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lastBytes is the end of s, at most n bytes, cut on the border of a character.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := len(s) - n
	for !utf8.RuneStart(s[cut]) {
		cut++
	}
	return s[cut:]
}

// printable makes a worker's bytes safe for a terminal and a log: valid UTF-8 in
// which control characters, and the invisible ones that reorder text, are
// written as escapes. Newlines and tabs stay; carriage returns become newlines.
func printable(raw []byte) string {
	for len(raw) > 0 && !utf8.RuneStart(raw[0]) {
		raw = raw[1:] // the rest of a character whose start was cut off
	}
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteRune(utf8.RuneError)
		case r == '\r':
			if len(raw) == 1 || raw[1] != '\n' {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r) && r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		raw = raw[size:]
	}
	return b.String()
}
