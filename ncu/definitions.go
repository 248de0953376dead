package ncu

// definitions is gate's closed list of Nsight Compute metrics. The counters of
// each chip were checked against `ncu --query-metrics` of ncu 2025.3.1; names
// that start with launch__, derived__, sass__ or memory_ are not part of that
// query and come from reports of the chips.
func definitions() []definition {
	var out []definition
	for _, group := range [][]definition{
		timeMetrics(), occupancyMetrics(), sharedMetrics(), trafficMetrics(), tensorMetrics(), instructionMetrics(), throughputMetrics(), stallMetrics(),
	} {
		out = append(out, group...)
	}
	return out
}

// on gives the same formulas to several chips.
func on(cs []chip, f ...formula) map[chip][]formula {
	m := make(map[chip][]formula, len(cs))
	for _, c := range cs {
		m[c] = f
	}
	return m
}

func everywhere(f ...formula) map[chip][]formula { return on(chips, f...) }

func timeMetrics() []definition {
	return []definition{
		{Metric{"ncu.duration", "ns", Lower, Sum,
			"Time on the GPU under the profiler, which serialises launches and may lock clocks: a figure to explain with, not to gate latency on."},
			everywhere(sum(durationCounter))},
		{Metric{"ncu.cycles", "cycle", Lower, Sum,
			"Elapsed cycles of the GPC clock, which do not depend on the clock rate for work that stays on the chip."},
			everywhere(sum("gpc__cycles_elapsed.max"))},
		{Metric{"ncu.sm_frequency", "hz", Neither, Mean,
			"Mean GPC clock during the launch; durations at different clocks are not comparable."},
			everywhere(sum("gpc__cycles_elapsed.avg.per_second"))},
		{Metric{"ncu.active_sms", "SM", Higher, Mean,
			"Active SM cycles divided by those of the busiest SM: how many SMs' worth of work there was, equal to the SM count when all were busy alike."},
			everywhere(ratio("sm__cycles_active.sum", "sm__cycles_active.max"))},
		{Metric{"ncu.waves", "", Neither, Mean,
			"Waves of thread blocks per SM: the grid divided by what fits on the GPU at once."},
			everywhere(sum("launch__waves_per_multiprocessor"))},
	}
}

func occupancyMetrics() []definition {
	limit := func(name, counter, what string) definition {
		return definition{Metric{"ncu.block_limit." + name, "block", Higher, Min,
			"Thread blocks per SM that " + what + " would allow."}, everywhere(sum("launch__occupancy_limit_" + counter))}
	}
	return []definition{
		{Metric{"ncu.achieved_occupancy", "%", Higher, Mean,
			"Active warps per active SM cycle, as a share of what an SM can hold."},
			everywhere(sum("sm__warps_active.avg.pct_of_peak_sustained_active"))},
		{Metric{"ncu.theoretical_occupancy", "%", Higher, Mean,
			"Warps per SM that registers, shared memory, barriers and block size allow, as a share of what an SM can hold."},
			everywhere(sum("sm__maximum_warps_per_active_cycle_pct"))},
		{Metric{"ncu.registers_per_thread", "register/thread", Lower, Max,
			"Registers per thread as launched, before rounding to the allocation unit."},
			everywhere(sum("launch__registers_per_thread"))},
		{Metric{"ncu.shared_bytes", "byte/block", Lower, Max,
			"Shared memory of a block as launched, static and dynamic, without what the driver keeps for itself."},
			everywhere(sum("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"))},
		limit("blocks", "blocks", "the limit of resident blocks"),
		limit("registers", "registers", "the register file"),
		limit("shared_memory", "shared_mem", "shared memory"),
		limit("warps", "warps", "the limit of resident warps"),
		{Metric{"ncu.block_limit.barriers", "block", Higher, Min,
			"Thread blocks per SM that named barriers would allow."},
			on([]chip{gh100, gb100, gb20x}, sum("launch__occupancy_limit_barriers"))},
	}
}

func sharedMetrics() []definition {
	const wavefronts, ideal = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
	return []definition{
		{Metric{"ncu.shared_bank_conflicts", "", Lower, Sum,
			"Bank conflicts of shared-memory accesses, loads and stores, atomics and asynchronous copies together."},
			everywhere(sum("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"))},
		{Metric{"ncu.shared_wavefronts", "", Lower, Sum,
			"Wavefronts that shared-memory instructions needed."},
			everywhere(sum(wavefronts))},
		{Metric{"ncu.shared_wavefronts_ideal", "", Neither, Sum,
			"Wavefronts that the same instructions would need without conflicts."},
			everywhere(sum(ideal))},
		{Metric{"ncu.shared_wavefronts_excessive", "", Lower, Sum,
			"Wavefronts of shared-memory instructions beyond the ideal, which conflicting addresses cause."},
			everywhere(sum("derived__memory_l1_wavefronts_shared_excessive"), less(1, wavefronts, ideal))},
	}
}

// sectorBytes is the size of a sector of L1 and L2 on every chip.
const sectorBytes = 32

// renamed gives Blackwell RTX its own formula: it counts device memory by
// operation, as dram__bytes_op_read.
func renamed(old, gb20 []formula) map[chip][]formula {
	m := everywhere(old...)
	m[gb20x] = gb20
	return m
}

func trafficMetrics() []definition {
	const (
		read, write     = "dram__bytes_read.sum", "dram__bytes_write.sum"
		opRead, opWrite = "dram__bytes_op_read.sum", "dram__bytes_op_write.sum"
		localBytes      = "l1tex__t_bytes_pipe_lsu_mem_local_op_"
		localSectors    = "l1tex__t_sectors_pipe_lsu_mem_local_op_"
	)
	both := sum("dram__bytes.sum")
	return []definition{
		{Metric{"ncu.dram_bytes", "byte", Lower, Sum,
			"Bytes read from and written to device memory."},
			renamed([]formula{sum(read, write), both}, []formula{sum(opRead, opWrite), both})},
		{Metric{"ncu.dram_read_bytes", "byte", Lower, Sum,
			"Bytes read from device memory."},
			renamed([]formula{sum(read)}, []formula{sum(opRead)})},
		{Metric{"ncu.dram_write_bytes", "byte", Lower, Sum,
			"Bytes written to device memory."},
			renamed([]formula{sum(write)}, []formula{sum(opWrite)})},
		{Metric{"ncu.l2_bytes", "byte", Lower, Sum,
			"Bytes of all requests to L2, hits and misses."},
			everywhere(sum("lts__t_bytes.sum"), times(sectorBytes, sum("lts__t_sectors.sum")))},
		{Metric{"ncu.local_bytes", "byte", Lower, Sum,
			"Bytes of local-memory loads and stores at L1: spilled registers and arrays that are indexed at run time."},
			everywhere(sum(localBytes+"ld.sum", localBytes+"st.sum"),
				times(sectorBytes, sum(localSectors+"ld.sum", localSectors+"st.sum")))},
	}
}

func tensorMetrics() []definition {
	const (
		pipe  = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
		tc    = "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed"
		types = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_elapsed"
		dmma  = "sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed"
		op    = "sm__inst_executed_pipe_tensor_op_"
		sub   = "sm__inst_executed_pipe_tensor_subpipe_"
		hfma2 = op + "hmma_type_hfma2.sum"
	)
	hmma, imma, fp64, gmma := op+"hmma.sum", op+"imma.sum", op+"dmma.sum", op+"gmma.sum"
	return []definition{
		// On Hopper sm__pipe_tensor_cycles_active also counts HFMA2.MMA, a packed
		// half-precision fma that the compiler uses to set registers, and so is
		// above zero for kernels without a matrix instruction. The counter by
		// type names what it counts: mma (hmma, imma, bmma) and wgmma (hgmma,
		// qgmma, igmma, bgmma) alike. It leaves out fp64, which has its own.
		{Metric{"ncu.tensor_pipe_utilization", "%", Higher, Mean,
			"Share of the elapsed SM cycles in which a tensor pipe was busy, whatever instruction kept it so: mma, wgmma or tcgen05."},
			map[chip][]formula{
				tu102: {sum(pipe)}, ga100: {sum(pipe)}, ga10x: {sum(pipe)}, ad10x: {sum(pipe)},
				gh100: {greatest(types, dmma)}, gb100: {greatest(pipe, tc)}, gb20x: {sum(pipe)},
			}},
		// On Hopper the counters by kind of number hold wgmma too, once for each
		// of its four warps, and op_gmma counts those again (testdata/gpu).
		{Metric{"ncu.tensor_instructions", "inst", Neither, Sum,
			"Warp-level matrix instructions of all kinds; instructions of different kinds do different amounts of work."},
			map[chip][]formula{
				tu102: {sum(hmma, imma)}, ga100: {less(1, hmma, imma, fp64, hfma2)},
				ga10x: {sum(hmma, imma)}, ad10x: {sum(hmma, imma)},
				gh100: {less(1, hmma, imma, fp64, hfma2)},
				gb100: {sum(sub+"hmma.sum", sub+"imma.sum", sub+"dmma.sum", "sm__inst_executed_pipe_tc.sum")},
				gb20x: {sum(sub+"hmma.sum", sub+"imma.sum")},
			}},
		{Metric{"ncu.tensor_mma_instructions", "inst", Neither, Sum,
			"Matrix instructions issued by one warp (mma, wmma)."},
			map[chip][]formula{
				tu102: {sum(hmma, imma)}, ga100: {less(1, hmma, imma, fp64, hfma2)},
				ga10x: {sum(hmma, imma)}, ad10x: {sum(hmma, imma)},
				gh100: {less(2, hmma, imma, fp64, hfma2, gmma)},
				gb100: {sum(sub+"hmma.sum", sub+"imma.sum", sub+"dmma.sum")},
				gb20x: {sum(sub+"hmma.sum", sub+"imma.sum")},
			}},
		{Metric{"ncu.tensor_wgmma_instructions", "inst", Neither, Sum,
			"Matrix instructions issued by a warp group (wgmma), once for each of its four warps."},
			on([]chip{gh100}, sum(gmma))},
		{Metric{"ncu.tensor_tcgen05_instructions", "inst", Neither, Sum,
			"Instructions of the fifth-generation tensor core (tcgen05)."},
			on([]chip{gb100}, sum("sm__inst_executed_pipe_tc.sum"))},
	}
}

func instructionMetrics() []definition {
	return []definition{
		{Metric{"ncu.instructions", "inst", Lower, Sum,
			"Warp-level instructions executed."},
			everywhere(sum("smsp__inst_executed.sum"), sum("sm__inst_executed.sum"))},
		{Metric{"ncu.local_instructions", "inst", Lower, Sum,
			"Warp-level loads from and stores to local memory."},
			everywhere(sum("smsp__sass_inst_executed_op_local_ld.sum", "smsp__sass_inst_executed_op_local_st.sum"),
				sum("sass__inst_executed_local_loads", "sass__inst_executed_local_stores"))},
		{Metric{"ncu.spill_instructions", "inst", Lower, Sum,
			"Warp-level instructions that spill or refill registers, as the compiler marked them; needs ncu 2025 or later."},
			on([]chip{gh100, gb100, gb20x}, sum("sass__inst_executed_register_spilling"))},
		{Metric{"ncu.ipc", "inst/cycle", Higher, Mean,
			"Warp-level instructions executed per active SM cycle."},
			everywhere(sum("sm__inst_executed.avg.per_cycle_active"))},
		{Metric{"ncu.issue_active", "%", Higher, Mean,
			"Share of the active cycles in which a scheduler issued an instruction."},
			everywhere(sum("smsp__issue_active.avg.pct_of_peak_sustained_active"))},
	}
}

func throughputMetrics() []definition {
	share := func(name, counter string, better Direction, doc string) definition {
		return definition{Metric{name, "%", better, Mean, doc}, everywhere(sum(counter))}
	}
	return []definition{
		share("ncu.sm_throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed", Higher,
			"Utilisation of the busiest unit of the SMs."),
		share("ncu.memory_throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", Neither,
			"Utilisation of the busiest unit of the memory system."),
		share("ncu.dram_throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", Neither,
			"Utilisation of device memory; less of it at the same speed is an improvement."),
		share("ncu.l2_throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed", Neither,
			"Utilisation of L2."),
		share("ncu.l1_throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active", Neither,
			"Utilisation of L1, texture and shared memory."),
		share("ncu.l1_hit_rate", "l1tex__t_sector_hit_rate.pct", Higher,
			"Sectors found in L1, of those looked up there."),
		share("ncu.l2_hit_rate", "lts__t_sector_hit_rate.pct", Higher,
			"Sectors found in L2, of those looked up there."),
	}
}

// stallReasons are the reasons for which a warp did not issue, with what it
// waited for.
var stallReasons = []struct {
	name, doc string
	better    Direction
	chips     []chip
}{
	{"barrier", "a barrier of the thread block", Lower, chips},
	{"branch_resolving", "the target of a branch", Lower, chips},
	{"dispatch_stall", "the dispatcher, which held the instruction back", Lower, chips},
	{"drain", "its memory stores after the last instruction", Lower, chips},
	{"gmma", "a matrix instruction of the warp group", Lower, []chip{gh100}},
	{"imc_miss", "the constant cache for immediate operands", Lower, []chip{tu102, ga100, ga10x, ad10x, gh100}},
	{"lg_throttle", "room in the queue for local and global memory", Lower, chips},
	{"long_scoreboard", "global, local, surface or texture memory", Lower, chips},
	{"math_pipe_throttle", "an arithmetic pipe in use", Lower, chips},
	{"membar", "a memory barrier", Lower, chips},
	{"mio_throttle", "room in the queue for shared memory and special instructions", Lower, chips},
	{"misc", "a reason without a name", Lower, chips},
	{"no_instruction", "the instruction cache or a branch", Lower, chips},
	{"not_selected", "nothing, when another warp was taken", Neither, chips},
	{"selected", "nothing, when it was the one that issued", Neither, chips},
	{"short_scoreboard", "shared memory or the special function unit", Lower, chips},
	{"sleeping", "the end of a sleep", Lower, chips},
	{"tex_throttle", "room in the queue for texture memory", Lower, chips},
	{"wait", "a fixed number of cycles between dependent instructions", Lower, chips},
}

func stallMetrics() []definition {
	var out []definition
	for _, s := range stallReasons {
		out = append(out, definition{
			Metric{"ncu.stall." + s.name, "", s.better, Mean,
				"Warps per issued instruction, on average, that waited for " + s.doc + "."},
			on(s.chips, sum("smsp__average_warps_issue_stalled_"+s.name+"_per_issue_active.ratio"))})
	}
	return out
}
