// Package harness carries the sources of the measuring program, so that a gate
// binary brings the one harness with it wherever it runs.
//
// The program loads an op and its contenders as shared objects (gate.h is the
// C interface), checks results, measures latency, and speaks JSON lines on its
// standard output. README.md in this folder documents both sides. It is built
// by one command in a folder that holds [Files]:
//
//	nvcc -O2 -std=c++17 -arch=native -I . *.cu -o gate-harness -ldl -lpthread
package harness

import "embed"

// Protocol names the command line and the JSON lines of the program. The
// program repeats it in its first line; evidence of another protocol is not
// comparable.
const Protocol = "gate-harness/3"

// Files holds every source that the program is built from, gate.h included,
// without folders.
//
//go:embed *.h *.cu
var Files embed.FS
