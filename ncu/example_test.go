package ncu_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/kernelgate/gate/ncu"
)

// Reads a recording and prints two figures of each kernel once.
func ExampleRead() {
	f, err := os.Open("testdata/h200-2025.3.1/metrics.csv")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	rep, err := ncu.Read(f, "metrics.csv")
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range rep.Launches[:4] {
		conflicts, err := ncu.Derive("", l, "ncu.shared_bank_conflicts")
		if err != nil {
			log.Fatal(err)
		}
		duration, err := l.Metric("gpu__time_duration.sum")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-22.22s %8.0f conflicts %6.0f %s\n", l.Key, conflicts.Number, duration.Number, duration.Unit)
	}
	// Output:
	// void saxpy_t<float, 3,        0 conflicts  15232 ns
	// void saxpy_t<double, 5        0 conflicts  12672 ns
	// void transpose_k<0>(co  4095836 conflicts  22944 ns
	// void transpose_k<1>(co     8969 conflicts   9280 ns
}

// Streams a file of any size. Only io.EOF says that it was whole.
func ExampleReader() {
	f, err := os.Open("testdata/h200-2025.3.1/raw-full.csv.gz")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r := ncu.NewReader(f, "raw-full.csv.gz")
	busiest, most := "", 0.0
	for {
		l, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		v, err := ncu.Derive("", l, "ncu.tensor_pipe_utilization")
		if err != nil {
			log.Fatal(err)
		}
		if n, ok := v.Float(); ok && n > most {
			busiest, most = l.Key, n
		}
	}
	fmt.Printf("%.9s uses %.2f %% of the tensor pipe\n", busiest, most)
	// Output:
	// wmma_gemm uses 4.40 % of the tensor pipe
}

// What to ask ncu for on an H200, and what it cannot say there.
func ExampleCounters() {
	counters, unavailable := ncu.Counters("9.0", "ncu.dram_bytes", "ncu.achieved_occupancy", "ncu.tensor_tcgen05_instructions")
	fmt.Println("--metrics", strings.Join(counters, ","))
	for name, reason := range unavailable {
		fmt.Println(name+":", reason)
	}
	// Output:
	// --metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum,sm__warps_active.avg.pct_of_peak_sustained_active
	// ncu.tensor_tcgen05_instructions: gh100 (compute capability 9.0) has no counter for it
}

// A missing value is never a number.
func ExampleValue() {
	f, err := os.Open("testdata/llm-perf-opt/rtx50-k0001.metrics.csv")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	rep, err := ncu.Read(f, "k0001.csv")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"dram__bytes_read.sum", "flop_count_sp.sum", "sm__cycles_active.avg"} {
		v, err := rep.Launches[0].Metric(name)
		if err != nil {
			log.Fatal(err)
		}
		switch v.Kind {
		case ncu.Number:
			fmt.Println(name, v.Number, v.Unit)
		default:
			fmt.Println(name, v.Kind, "because:", v.Reason)
		}
	}
	// Output:
	// dram__bytes_read.sum 2.33e+06 byte
	// flop_count_sp.sum missing because: ncu printed n/a
	// sm__cycles_active.avg missing because: not collected
}

// A run without permission is an error of its own kind.
func ExampleToolError() {
	log := "==PROF== Connected to process 7 (/tmp/app)\n" +
		"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
	_, err := ncu.Read(strings.NewReader(log), "ncu.log")
	fmt.Println(errors.Is(err, ncu.ErrPermission))
	// Output:
	// true
}

// A number that could mean two things is refused, with a hint apart.
func ExampleSyntaxError() {
	page := `"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"` + "\n" +
		`"0","7","k(int)","Command line profiler metrics","smsp__inst_executed.sum","inst","117.344"` + "\n"
	_, err := ncu.Read(strings.NewReader(page), "de.csv")
	var s *ncu.SyntaxError
	if errors.As(err, &s) {
		fmt.Println(s)
		fmt.Println("hint:", s.Hint)
	}
	// Output:
	// de.csv:2: smsp__inst_executed.sum: "117.344" could be a decimal fraction or a number with thousands separators
	// hint: run ncu with LC_ALL=C, which prints numbers without thousands separators
}

// Two runs of one program, matched by kernel, size and occurrence.
func ExampleMatch() {
	read := func() []*ncu.Launch {
		f, err := os.Open("testdata/h200-2025.3.1/metrics.csv")
		if err != nil {
			log.Fatal(err)
		}
		defer f.Close()
		rep, err := ncu.Read(f, "metrics.csv")
		if err != nil {
			log.Fatal(err)
		}
		return rep.Launches
	}
	base, head := read(), read()[1:] // head has lost its first launch
	m := ncu.Match(base, head)
	for _, g := range m.Groups[:2] {
		b, err := ncu.Median("", g.Base, "ncu.duration")
		if err != nil {
			log.Fatal(err)
		}
		h, err := ncu.Median("", g.Head, "ncu.duration")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%.20s %d → %d launches, %.0f → %.0f ns\n", g.Identity.Key, len(g.Base), len(g.Head), b.Number, h.Number)
	}
	fmt.Println(len(m.Added), "added,", len(m.Removed), "removed")
	// Output:
	// void saxpy_t<float,  2 → 1 launches, 14976 → 14720 ns
	// void saxpy_t<double, 2 → 2 launches, 12704 → 12704 ns
	// 0 added, 1 removed
}

// Lists what a details page shows of a launch.
func ExampleLaunch_Rows() {
	f, err := os.Open("testdata/h200-2025.3.1/details-numa.csv")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	rep, err := ncu.Read(f, "details-numa.csv")
	if err != nil {
		log.Fatal(err)
	}
	rows, err := rep.Launches[0].Rows()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rows[6:8] {
		fmt.Println(r.Section, "|", r.Label, "|", r.Value.Number, r.Value.Unit)
	}
	// Output:
	// Instruction Statistics | Instructions Executed | 576 inst
	// Instruction Statistics | Avg. Executed Instructions Per Scheduler | 1.09 inst
}
