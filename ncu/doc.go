// Package ncu reads what NVIDIA Nsight Compute prints and stores, and gives its
// figures names that mean the same on every GPU.
//
// Read takes the CSV of the ncu command: the raw page (--csv --page raw), the
// details page (--csv) and the output of --metrics, of releases 2020 to 2025,
// live or imported, with the program's own output around it. NewReader does the
// same launch by launch in constant memory. ReadReport reads the .ncu-rep
// container without Nsight Compute.
//
// A Launch gives its values by counter name (Launch.Metric). The catalogue
// (Metrics, Lookup) defines metrics such as ncu.shared_bank_conflicts by
// meaning: Counters says what to ask ncu for on a chip, Derive computes one
// launch, Aggregate a call of several launches, and Match pairs the launches of
// two runs.
//
// # Recording
//
//	ncu --csv --page raw --print-units base --metrics A,B,C --log-file out.csv PROGRAM
//
// Base units and a file of its own avoid rounding and torn rows; LC_ALL=C avoids
// thousands separators. None of that is required.
//
// # Traps
//
// The package is strict where a guess would be quiet and wrong:
//
//   - Imported reports print in units chosen per row: 56.06 us stands above
//     30.86 ms in one column. All values are converted to base units. Prefixes
//     are decimal, and a converted number is the float64 nearest to what is
//     printed.
//   - Numbers follow the locale of the machine. 6,480,321,285.14 and 27.595.520
//     and 65,77 each have one reading. 117.344 has two, a thousand times apart,
//     and is refused: ncu prints two decimals or six, so in English it does not
//     occur.
//   - A metric that was not collected, and one that prints n/a, nan, no data or
//     (!), is Missing and has a reason. It is never 0. The zero Value is Missing.
//   - Rows of a details page are ragged: a metric's row is shorter than the
//     header when rules ran. A row of any other length is refused, as are rows
//     out of order, an open quote and a row with program output inside.
//   - Two sections have a "Memory Throughput", in % and in byte/s. Labels are
//     looked up by section and label, or better by counter name. The tables and
//     charts of --print-details repeat labels for other values; Launch.Rows lists
//     them.
//   - Lines that begin with ==ERROR== make the whole file an error, even when a
//     table follows. A file without a table is an error, never an empty result.
//   - .sum, .avg and .max of a counter, and shares of active and of elapsed
//     cycles, are different metrics. The catalogue says which one it means.
//   - On Hopper, sm__pipe_tensor_cycles_active also counts a packed
//     half-precision fma that sets registers, so that kernels without any matrix
//     instruction show some use of the tensor pipe. The catalogue uses the
//     counter by instruction type, which counts mma and wgmma alike.
//   - On Hopper, sm__inst_executed_pipe_tensor_op_hmma and op_imma hold wgmma as
//     well as mma, and op_gmma counts wgmma again. Their sum counts it twice.
//   - Kernel names hold hashes, clone numbers, versions and source lines that
//     change without the code. NameKey takes them out.
//   - A .ncu-rep embeds the host's name, paths, network addresses, the command line and
//     the machine code. Nothing of that is kept or returned.
//
// # Checked on a GPU
//
// testdata/gpu/probe.cu has one kernel for each thing to be told apart: mma and
// wgmma of several number types, bank conflicts, local memory, none of them. The
// tests of build tag gpu hold the catalogue against it, and ReadReport against
// ncu's own raw page of the same report, value by value; a recording of the former
// is replayed everywhere. On an NVIDIA H200 (driver 580.159.04, CUDA 13.0.88, ncu
// 2025.3.1.0), go test -tags gpu -run GPU -v ./ncu, a report of nine launches with
// --set full: 20,043 of 20,043 values equal, in 0.09 s against 0.77 s of ncu
// --import, one run each.
//
// The package prints and runs nothing. It cannot read the text page, the source
// page, --print-summary and .ncu-repz; their refusal says what to do instead.
package ncu
