package gbnf

// The bounds of a grammar. They are far over what grammars are written with; what
// passes them costs at most some MiB and milliseconds.
const (
	// MaxText is the longest text, bytes. The grammar of C in llama.cpp's own
	// examples is 2 KiB, a schema of a hundred members becomes about 20.
	MaxText = 256 << 10

	maxNesting      = 100     // groups inside one another, and repetitions of repetitions
	maxRules        = 1 << 13 // named rules
	maxInstructions = 1 << 18 // of the compiled grammar: {m,n} is written out m to n times
	maxRepeat       = 1 << 16 // of one {m,n}, so that the product of two stays in range

	// maxThreads is how many ways of reading the text so far are followed at
	// once. A choice of a thousand words begins with some thousand; only a very
	// ambiguous grammar has more later on.
	maxThreads = 1 << 15
)
