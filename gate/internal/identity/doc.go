// Package identity says when two builds of a kernel are the same thing to measure.
//
// An identity is all that went into a build, minus a short closed list of things that are proven harmless. A list of
// what counts would miss what nobody thought of; what is not on this list can only make an identity different. Each id
// is 64 lower-case hex digits of SHA-256.
//
//   - The id of a cubin covers what the GPU runs: every function, constant bank, global and attribute under its name.
//     Harmless are sections for debuggers, the note with the tools' command lines, the order of sections and symbols,
//     indices of symbols, and in names exactly the strings that nvcc made of this build's paths (Modules).
//   - The host id of a unit covers what launches it: every token of nvcc's host intermediate (x.cudafe1.cpp) and of the
//     launch stubs. Harmless are comments, white space, line numbers, what only the device compiles, and the headers of
//     the system, which differ from machine to machine.
//   - What the project's directives make of those headers is held by a hash over the directives (Source).
//   - The source hash covers a C or C++ file as text: every token, directives included.
//
// # What counts although it looks harmless
//
// A rename is a change. A line number is one where it is a value: __LINE__ is a token like any other, and code that asks
// for its place with __builtin_LINE or std::source_location has its lines hashed. Constant bank 3, the address bank 4
// and the globals belong to the whole module: a new table for one kernel changes its neighbours too. __DATE__ and
// __TIME__ are ordinary strings.
//
// # What is refused
//
// The intermediate's line markers say which tokens are the system's, so a #line that names a file of the system is
// refused, and assembler code that reads files is: no token shows what it brings in (SourceError).
package identity
