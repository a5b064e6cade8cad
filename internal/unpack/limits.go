package unpack

const (
	// maxWindow is the most memory that a frame may ask for to look back in: what
	// zstd itself decompresses without being told to (--long=27).
	maxWindow = 128 << 20

	// maxRatio is how many bytes may come of one. Weights give at most four, tables
	// of text ten; zeros give thirty thousand, and nothing but zeros is no model.
	maxRatio = 100

	// freeBytes may come of anything: small artifacts are mostly tables and padding.
	freeBytes = 64 << 20

	// maxBytes is over the largest models that one machine serves; what is more
	// fills a disk.
	maxBytes = 256 << 30

	// maxEntries bounds an archive's headers. A model with each weight in a file of
	// its own has some thousand.
	maxEntries = 10_000

	// maxNameBytes bounds one name of a path: what the usual file systems take.
	maxNameBytes = 255

	// maxPathBytes bounds a path in an archive. With the cache's own path before it
	// it stays within the 1,024 bytes that macOS takes.
	maxPathBytes = 512

	// maxDepth bounds the directories over a file. Core ML's packages have five.
	maxDepth = 16
)
