// Package identity says when two builds of a kernel are the same thing to measure.
//
// A kernel's evidence is stored under three identities, each 64 lower-case hex digits of SHA-256:
//
//   - The code id covers what the GPU runs. It is read from a cubin: the instructions of the chosen entries and of
//     every other device function, relocations by symbol, constant banks, globals, sizes of shared and local memory,
//     and the attributes of .nv.info that decide a launch. Names of entries, folders, debug information and the
//     order of sections and symbols have no part in it.
//   - The host id covers what launches it. It is read from nvcc's host intermediate (x.cudafe1.cpp): every token of
//     the project's own files, without device bodies, comments, white space and line numbers.
//   - The source hash covers a C or C++ file as text: every token, directives included.
//
// A doubt always makes an id different, never equal: an attribute or a section that is not known is hashed as it is.
//
// # What it does not see
//
// Constant bank 3, the address bank 4 and the globals belong to the whole module, because instructions address the
// banks by offset without a relocation: a new string or table for one entry changes the code id of its neighbours.
// The line number inside a device assert is an operand of an instruction, so it is part of the code id.
//
// The host id trusts the line markers that the compiler wrote. Source that carries a #line directive naming a system
// header hides the tokens after it; a caller that does not trust the author refuses such sources before the build.
// Compiler flags that act after this intermediate (--default-stream, -Xcompiler, libraries to link) are not in it:
// a caller adds them with Combine. A host-side use of __LINE__ is ignored only beside the name of the file, as assert
// and the usual error-checking macros write it. __DATE__ and __TIME__ are ordinary strings and change the id.
package identity
