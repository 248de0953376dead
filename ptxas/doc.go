// Package ptxas reads what NVIDIA's assembler and linkers say about a kernel:
// the text of ptxas -v (nvcc -Xptxas -v, nvcc --resource-usage), of nvlink -v
// and of the driver's linker ([Parse]), and of cuobjdump -res-usage
// ([ParseResourceUsage]). [Reader] and [ResourceReader] do the same record by
// record, in memory that does not grow with the text. The package also computes
// theoretical occupancy ([Occupancy], [Entry.Occupancy]). It never runs a program
// and depends on the standard library only.
//
// The text is meant for people, has no specification and changes between
// releases. These are its traps, and what the package does about them:
//
//   - A field that is not printed is not always zero. Shared and local memory
//     are left out when they are zero; spills are left out when the line that
//     holds them is; barriers are left out by older compilers, constant banks
//     by some architectures. A figure is therefore a [Count], which knows
//     whether it is known.
//   - Device functions that were not inlined have lines of their own, before,
//     inside or after the entry that calls them, and can carry every spill
//     while the entry shows none. They are kept apart from the entry's own
//     figures, in [Entry.Callees] and [Entry.UnitFunctions].
//   - The same kernel appears once per architecture, once per compilation
//     unit, and once more from the linker. The key of an entry is (Source,
//     Arch, Key, Occurrence); nothing is overwritten.
//   - Names carry hashes of paths and contents, clone numbers and library
//     versions that change without any change of code; [Key] removes them.
//   - A stack frame is not a spill. Spills to shared memory can be printed as a
//     negative number, which is not a figure.
//   - Compile time changes in every run and is not kept.
//   - The text arrives inside build logs: the records are found behind time
//     stamps, job prefixes and program output. Output of several compilers
//     that was mixed line by line pairs one kernel's name with another's
//     registers; it is refused, as is a log that ends inside an entry.
//   - A log without any entry usually means that -v was lost on the way, not
//     that there is nothing to report; it is a [NoEntriesError]. The messages
//     that were read stand beside it, as does what was read before any error.
//
// An incremental build prints only what was rebuilt, so a kernel that is
// missing from a log was not necessarily removed.
package ptxas
