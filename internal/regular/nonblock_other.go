//go:build !unix

package regular

const nonblock = 0 // a pipe is no name in a directory there
