package ptxas

import "fmt"

// A Launch is what decides how many blocks of a kernel an SM can hold.
type Launch struct {
	RegistersPerThread int
	StaticSharedBytes  int // as ptxas prints it, without the driver's reserve
	DynamicSharedBytes int // the launch's third argument
	BlockSize          int // threads
	Barriers           int // named barriers that the kernel uses
	ClusterSize        int // blocks of a cluster; 0 or 1 without
	CarveOutBytes      int // shared memory of the SM (Nsight Compute: launch__shared_mem_config_size); 0 for the largest
}

// A Limiter is a resource that an SM runs out of first.
type Limiter string

// The limiters.
const (
	LimiterRegisters Limiter = "registers"
	LimiterShared    Limiter = "shared memory"
	LimiterWarps     Limiter = "warps"
	LimiterBlocks    Limiter = "blocks"
	LimiterBarriers  Limiter = "barriers"
)

// A Result is the theoretical occupancy of a launch. The limits are in blocks
// per SM, and are those that Nsight Compute prints as
// launch__occupancy_limit_*.
type Result struct {
	BlocksPerSM int     // 0: the launch fails for want of a resource
	WarpsPerSM  int     // resident warps
	Percent     float64 // of the warps that an SM can hold, 0 to 100

	// Limiters are the resources whose limit is BlocksPerSM, in the order of
	// the fields below.
	Limiters       []Limiter
	LimitRegisters int
	LimitShared    int
	LimitWarps     int
	LimitBlocks    int
	LimitBarriers  int

	AllocatedRegisters   int // per thread, with rounding
	AllocatedSharedBytes int // per block, with the driver's reserve and rounding
}

// AllocatedRegisters returns how many registers a thread occupies when a kernel
// uses n: registers are handed out to warps in units of 256, that is 8 per
// thread.
func AllocatedRegisters(arch string, n int) (int, error) {
	d, err := Device(arch)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > d.RegistersPerThread {
		return 0, fmt.Errorf("registers per thread must be 0 to %d, not %d", d.RegistersPerThread, n)
	}
	return roundUp(n*warpSize, d.RegisterUnitPerWarp) / warpSize, nil
}

const warpSize = 32

// Occupancy computes how many blocks of a launch are resident on one SM, and
// why not more. It assumes that the opt-in attribute for dynamic shared memory
// above 48 KiB is set where it is needed, and does not model how clusters pack
// into the groups of SMs that a device was made with.
func Occupancy(arch string, l Launch) (Result, error) {
	d, err := Device(arch)
	if err != nil {
		return Result{}, err
	}
	if err := l.check(&d); err != nil {
		return Result{}, err
	}
	warps := (l.BlockSize + warpSize - 1) / warpSize
	r := Result{LimitBlocks: d.BlocksPerSM, LimitWarps: d.WarpsPerSM / warps}
	r.LimitRegisters = r.registers(&d, l.RegistersPerThread, warps)
	r.LimitShared = r.shared(&d, &l)
	r.LimitBarriers = d.BlocksPerSM
	if d.BarriersPerSM > 0 && l.Barriers > 0 {
		r.LimitBarriers = min(d.BarriersPerSM/l.Barriers, d.BlocksPerSM)
	}
	r.BlocksPerSM = min(r.LimitRegisters, r.LimitShared, r.LimitWarps, r.LimitBlocks, r.LimitBarriers)
	r.WarpsPerSM = r.BlocksPerSM * warps
	r.Percent = 100 * float64(r.WarpsPerSM) / float64(d.WarpsPerSM)
	r.limiters()
	return r, nil
}

// Occupancy computes the occupancy of a launch of the entry. Its registers,
// static shared memory and barriers take the place of the launch's; one that the
// log does not say is an error, except for barriers where they never limit.
func (e *Entry) Occupancy(l Launch) (Result, error) {
	d, err := Device(e.Arch)
	if err != nil {
		return Result{}, err
	}
	for _, f := range []struct {
		what  string
		count Count
		dst   *int
	}{
		{"registers", e.Registers, &l.RegistersPerThread},
		{"shared memory", e.SharedBytes, &l.StaticSharedBytes},
		{"barriers", e.Barriers, &l.Barriers},
	} {
		if !f.count.Known && (f.dst != &l.Barriers || d.BarriersPerSM > 0) {
			return Result{}, fmt.Errorf("the log does not say the %s of %s", f.what, shorten(e.Name))
		}
		*f.dst = int(min(f.count.N, maxShared+1)) // what is too much stays too much
	}
	return Occupancy(e.Arch, l)
}

// maxShared bounds shared memory so that a sum fits into 32 bits.
const maxShared = 1 << 28

// check refuses what no compiler or runtime would produce; a launch that asks
// for too much of a resource is not refused but has 0 blocks.
func (l *Launch) check(d *Limits) error {
	switch {
	case l.RegistersPerThread < 1 || l.RegistersPerThread > d.RegistersPerThread:
		return fmt.Errorf("registers per thread must be 1 to %d, not %d", d.RegistersPerThread, l.RegistersPerThread)
	case l.BlockSize < 1 || l.BlockSize > d.ThreadsPerBlock:
		return fmt.Errorf("block size must be 1 to %d threads, not %d", d.ThreadsPerBlock, l.BlockSize)
	case l.StaticSharedBytes < 0 || l.StaticSharedBytes > maxShared, l.DynamicSharedBytes < 0 || l.DynamicSharedBytes > maxShared:
		return fmt.Errorf("shared memory of %d + %d bytes is out of range", l.StaticSharedBytes, l.DynamicSharedBytes)
	case l.Barriers < 0 || l.Barriers > 16:
		return fmt.Errorf("barriers must be 0 to 16, not %d", l.Barriers)
	case l.ClusterSize < 0 || l.ClusterSize > max(d.ClusterBlocks, 1):
		return fmt.Errorf("cluster of %d blocks: %s has at most %d", l.ClusterSize, d.Arch, max(d.ClusterBlocks, 1))
	case l.CarveOutBytes < 0 || l.CarveOutBytes > d.SharedBytesPerSM:
		return fmt.Errorf("carve-out must be 0 to %d bytes, not %d", d.SharedBytesPerSM, l.CarveOutBytes)
	}
	return nil
}

// registers returns the limit by registers. A warp stays in one partition, so
// whole warps must fit into each.
func (r *Result) registers(d *Limits, perThread, warps int) int {
	perWarp := roundUp(perThread*warpSize, d.RegisterUnitPerWarp)
	r.AllocatedRegisters = perWarp / warpSize
	warpsPerPartition := d.RegistersPerSM / d.PartitionsPerSM / perWarp
	return warpsPerPartition * d.PartitionsPerSM / warps
}

// shared returns the limit by shared memory. A carve-out too small for one
// block is raised to the next size; a block without shared memory is limited
// by the number of blocks only.
func (r *Result) shared(d *Limits, l *Launch) int {
	perBlock := roundUp(l.StaticSharedBytes+l.DynamicSharedBytes+d.SharedReservedBytes, d.SharedUnitBytes)
	r.AllocatedSharedBytes = perBlock
	if perBlock == 0 {
		return d.BlocksPerSM
	}
	want := max(l.CarveOutBytes, perBlock)
	if l.CarveOutBytes == 0 {
		want = d.SharedBytesPerSM
	}
	for _, size := range d.CarveOutBytes {
		if size >= want {
			return size / perBlock
		}
	}
	return 0
}

func (r *Result) limiters() {
	for _, x := range []struct {
		limiter Limiter
		limit   int
	}{
		{LimiterRegisters, r.LimitRegisters}, {LimiterShared, r.LimitShared}, {LimiterWarps, r.LimitWarps},
		{LimiterBlocks, r.LimitBlocks}, {LimiterBarriers, r.LimitBarriers},
	} {
		if x.limit == r.BlocksPerSM {
			r.Limiters = append(r.Limiters, x.limiter)
		}
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
