package ptxas

import (
	"fmt"
	"strings"
)

// Limits are what one streaming multiprocessor (SM) of an architecture can
// hold, and the units in which it hands it out.
type Limits struct {
	Arch                string // "sm_90"
	WarpsPerSM          int    // resident warps of 32 threads
	BlocksPerSM         int    // resident thread blocks
	SharedBytesPerSM    int    // shared memory at the largest carve-out
	SharedBytesPerBlock int    // most that one block can get, with the opt-in attribute set
	SharedReservedBytes int    // per block, taken by the driver
	SharedUnitBytes     int    // shared memory is allocated in multiples of this
	BarriersPerSM       int    // named barriers; 0 when they never limit
	RegistersPerSM      int
	RegistersPerThread  int   // most that a thread can use
	RegisterUnitPerWarp int   // registers are allocated to warps in multiples of this
	PartitionsPerSM     int   // each has its own part of the register file
	ThreadsPerBlock     int   // most that a block can have
	CarveOutBytes       []int // sizes that the shared part of L1 can be set to, ascending
	ClusterBlocks       int   // largest thread block cluster (16 needs the non-portable attribute); 0 without clusters
}

// The table below. Sources:
//
//   - resident warps and blocks: the table of technical specifications per
//     compute capability in the CUDA C++ Programming Guide 13.0; checked for
//     sm_75 and up against the ranges that ptxas 13.0 accepts for
//     .minnctapersm (testdata/limits.ptx and its recordings);
//   - allocation units, partitions, carve-out sizes and barriers per SM:
//     cuda_occupancy.h 12.1 of CUDA 13.0, the header behind NVIDIA's
//     occupancy calculator;
//   - the reserved kilobyte from compute capability 8.0 on:
//     cudaDevAttrReservedSharedMemoryPerBlock, also printed by Nsight Compute
//     as launch__shared_mem_per_block_driver.
//
// Common to all: 65,536 registers per SM, all of which one block can have, 255
// per thread, allocated to warps in units of 256, in four partitions; blocks of
// at most 1,024 threads.
var architectures = []struct {
	numbers         string // "80 87": architectures with equal limits
	warps, blocks   int
	shared          []int // carve-out sizes in KiB
	unit, reserved  int   // bytes
	barriersByBlock int   // barriers per SM = this × blocks; 0: no limit is applied below compute capability 9.0
}{
	{"70 72", 64, 32, []int{0, 8, 16, 32, 64, 96}, 256, 0, 0},
	{"75", 32, 16, []int{32, 64}, 256, 0, 0},
	{"80", 64, 32, []int{0, 8, 16, 32, 64, 100, 132, 164}, 128, 1024, 0},
	{"87", 48, 16, []int{0, 8, 16, 32, 64, 100, 132, 164}, 128, 1024, 0},
	{"86 88", 48, 16, []int{0, 8, 16, 32, 64, 100}, 128, 1024, 0},
	{"89", 48, 24, []int{0, 8, 16, 32, 64, 100}, 128, 1024, 0},
	{"90 100 103", 64, 32, []int{0, 8, 16, 32, 64, 100, 132, 164, 196, 228}, 128, 1024, 2},
	{"101 110", 48, 24, []int{0, 8, 16, 32, 64, 100, 132, 164, 196, 228}, 128, 1024, 1},
	{"120 121", 48, 24, []int{0, 8, 16, 32, 64, 100}, 128, 1024, 1},
}

// Device returns the limits of an architecture, given as "sm_90a", "sm_90",
// "compute_90", "90" or "9.0". An architecture that is not in the table is an
// error; its limits are not guessed.
func Device(arch string) (Limits, error) {
	number, err := archNumber(arch)
	if err != nil {
		return Limits{}, err
	}
	for _, a := range architectures {
		for _, n := range strings.Fields(a.numbers) {
			if n != number {
				continue
			}
			l := Limits{
				Arch: "sm_" + n, WarpsPerSM: a.warps, BlocksPerSM: a.blocks,
				SharedUnitBytes: a.unit, SharedReservedBytes: a.reserved,
				BarriersPerSM:  a.barriersByBlock * a.blocks,
				RegistersPerSM: 65536, RegistersPerThread: 255,
				RegisterUnitPerWarp: 256, PartitionsPerSM: 4, ThreadsPerBlock: 1024,
			}
			for _, kib := range a.shared {
				l.CarveOutBytes = append(l.CarveOutBytes, kib<<10)
			}
			l.SharedBytesPerSM = l.CarveOutBytes[len(l.CarveOutBytes)-1]
			l.SharedBytesPerBlock = l.SharedBytesPerSM - l.SharedReservedBytes
			if l.BarriersPerSM > 0 { // both came with compute capability 9.0
				l.ClusterBlocks = 16
			}
			return l, nil
		}
	}
	return Limits{}, fmt.Errorf("limits of architecture %q are not known", shorten(arch))
}

// archNumber turns any spelling of an architecture into "90".
func archNumber(arch string) (string, error) {
	s, ok := strings.CutPrefix(arch, "sm_")
	if !ok {
		s = strings.TrimPrefix(arch, "compute_")
	}
	major, minor, point := strings.Cut(s, ".")
	if !point {
		if n := len(s); n > 0 && (s[n-1] == 'a' || s[n-1] == 'f') {
			major = s[:n-1]
		}
	}
	if !allDigits(major) || (point && (len(minor) != 1 || !allDigits(minor))) {
		return "", fmt.Errorf("%q is not an architecture: want sm_90, compute_90 or 9.0", shorten(arch))
	}
	return major + minor, nil
}
