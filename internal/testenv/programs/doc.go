// Package programs runs programs that know nothing of toolhost against real servers that they are granted by name, and beside
// npm's sandbox-runtime: what works, and which refusals hold.
package programs
