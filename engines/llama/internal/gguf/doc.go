// Package gguf reads the header of a GGUF file and holds it to the format and
// to the file's length, so that what passes is safe to hand to llama.cpp, whose
// own reader has trusted such files too far more than once.
//
// Nothing is allocated from a length in the file. Arrays are walked and checked
// but not kept: their elements are read when they are asked for.
package gguf
