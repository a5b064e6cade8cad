// Package gbnf holds a generation to a grammar: it reads GBNF, the notation of
// llama.cpp, checks it, and says at every point of a text which bytes may follow.
//
// An engine's own grammar code is not used, because a text from outside can end
// the process there: it recurses as deep as the text nests, takes an empty
// grammar for none, and aborts where no token can continue. Here a grammar that
// is accepted can be finished, and everything else is an error with its place.
//
// A grammar's text may also be a JSON Schema ([FromSchema]).
package gbnf
