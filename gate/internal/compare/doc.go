// Package compare turns measurements of a base and a head into comparisons.
//
// All statistics of the gate live here. The package is pure: it opens no file,
// reads no clock, logs nothing, and takes randomness from its caller, so that
// the same input gives the same bytes.
//
// Exact quantities (registers, spilled bytes, instruction counts) are compared
// where they are judged and never put to a test. Latency is an experiment: [Driver] says
// which process runs next, [Summarize] reduces one process to two numbers, and
// [Decide] judges all experiments of a pull request together, because the error
// rate that is promised is one per pull request.
//
// The unit of observation is the process. Placement in memory, context
// state and clock state are drawn once per process and move all of its
// repetitions together, so repetitions inside a process never count as
// independent samples.
//
// Every decision starts as [Inconclusive] and is upgraded by proof only.
// Times are nanoseconds per call; effects are relative (0.02 is 2 % slower).
package compare
