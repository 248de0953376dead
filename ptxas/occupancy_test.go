package ptxas

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestOccupancy(t *testing.T) {
	for _, c := range []struct {
		name     string
		arch     string
		launch   Launch
		blocks   int
		warps    int
		percent  float64
		limiters string
	}{
		{"64 registers fit twice", "sm_90", Launch{RegistersPerThread: 64, BlockSize: 512}, 2, 32, 50, "registers"},
		{"65 are allocated as 72", "sm_90", Launch{RegistersPerThread: 65, BlockSize: 512}, 1, 16, 25, "registers"},
		{"whole warps per partition", "sm_90", Launch{RegistersPerThread: 96, BlockSize: 640}, 1, 20, 31.25, "registers"},
		{"the reserved kilobyte", "sm_90", Launch{RegistersPerThread: 32, BlockSize: 128, DynamicSharedBytes: 113 << 10}, 2, 8, 12.5, "shared memory"},
		{"one byte more", "sm_90", Launch{RegistersPerThread: 32, BlockSize: 128, DynamicSharedBytes: 113<<10 + 1}, 1, 4, 6.25, "shared memory"},
		{"no reserve on Turing", "sm_75", Launch{RegistersPerThread: 32, BlockSize: 128, StaticSharedBytes: 32 << 10}, 2, 8, 25, "shared memory"},
		{"warps", "sm_80", Launch{RegistersPerThread: 16, BlockSize: 1024}, 2, 64, 100, "warps"},
		{"blocks", "sm_86", Launch{RegistersPerThread: 16, BlockSize: 32}, 16, 16, 100. / 3, "blocks,barriers"},
		{"barriers", "sm_90", Launch{RegistersPerThread: 16, BlockSize: 32, Barriers: 16}, 4, 4, 6.25, "barriers"},
		{"too many registers for a block", "sm_90", Launch{RegistersPerThread: 128, BlockSize: 1024}, 0, 0, 0, "registers"},
		{"too much shared memory", "sm_120a", Launch{RegistersPerThread: 32, BlockSize: 128, DynamicSharedBytes: 100 << 10}, 0, 0, 0, "shared memory"},
		{"small carve-out", "sm_86", Launch{RegistersPerThread: 16, BlockSize: 32, CarveOutBytes: 8 << 10}, 8, 8, 100. / 6, "shared memory"},
		{"carve-out below one block", "sm_86", Launch{RegistersPerThread: 16, BlockSize: 32, StaticSharedBytes: 20 << 10, CarveOutBytes: 8 << 10}, 1, 1, 100. / 48, "shared memory"},
	} {
		r, err := Occupancy(c.arch, c.launch)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var limiters []string
		for _, l := range r.Limiters {
			limiters = append(limiters, string(l))
		}
		if r.BlocksPerSM != c.blocks || r.WarpsPerSM != c.warps || !near(r.Percent, c.percent) || strings.Join(limiters, ",") != c.limiters {
			t.Errorf("%s: got %+v", c.name, r)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestOccupancyRefused(t *testing.T) {
	good := Launch{RegistersPerThread: 32, BlockSize: 128}
	for _, c := range []struct {
		arch   string
		change func(*Launch)
		want   string
	}{
		{"sm_52", nil, `limits of architecture "sm_52" are not known`},
		{"sm_999", nil, `limits of architecture "sm_999" are not known`},
		{"", nil, `"" is not an architecture`},
		{"gfx90a", nil, `"gfx90a" is not an architecture`},
		{"9.0.1", nil, "is not an architecture"},
		{"sm_compute_90", nil, `"sm_compute_90" is not an architecture`},
		{"9.0a", nil, `"9.0a" is not an architecture`},
		{strings.Repeat("x", 1000), nil, `x…" is not an architecture`},
		{"sm_90", func(l *Launch) { l.RegistersPerThread = 0 }, "registers per thread must be 1 to 255, not 0"},
		{"sm_90", func(l *Launch) { l.RegistersPerThread = 256 }, "registers per thread must be 1 to 255, not 256"},
		{"sm_90", func(l *Launch) { l.BlockSize = 0 }, "block size must be 1 to 1024 threads, not 0"},
		{"sm_90", func(l *Launch) { l.BlockSize = 1025 }, "block size must be"},
		{"sm_90", func(l *Launch) { l.DynamicSharedBytes = -1 }, "shared memory of 0 + -1 bytes is out of range"},
		{"sm_90", func(l *Launch) { l.StaticSharedBytes = math.MaxInt }, "out of range"},
		{"sm_90", func(l *Launch) { l.StaticSharedBytes, l.DynamicSharedBytes = 1<<30, 1<<30 }, "shared memory of 1073741824 + 1073741824 bytes is out of range"},
		{"sm_90", func(l *Launch) { l.Barriers = 17 }, "barriers must be 0 to 16, not 17"},
		{"sm_90", func(l *Launch) { l.ClusterSize = 17 }, "cluster of 17 blocks: sm_90 has at most 16"},
		{"sm_80", func(l *Launch) { l.ClusterSize = 2 }, "cluster of 2 blocks: sm_80 has at most 1"},
		{"sm_90", func(l *Launch) { l.CarveOutBytes = 229 << 10 }, "carve-out must be 0 to 233472 bytes"},
	} {
		l := good
		if c.change != nil {
			c.change(&l)
		}
		r, err := Occupancy(c.arch, l)
		if err == nil || !strings.Contains(err.Error(), c.want) || r.BlocksPerSM != 0 {
			t.Errorf("%s %+v: got %+v, %v; want %q", c.arch, l, r, err, c.want)
		}
	}
}

func TestAllocatedRegisters(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 8, 8: 8, 9: 16, 64: 64, 65: 72, 255: 256} {
		if got, err := AllocatedRegisters("sm_90", n); got != want || err != nil {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
	if _, err := AllocatedRegisters("sm_90", 256); err == nil {
		t.Error("256 registers were accepted")
	}
}

func TestArchSpellings(t *testing.T) {
	for _, s := range []string{"sm_90", "sm_90a", "compute_90", "90", "9.0", "sm_90f"} {
		if d, err := Device(s); err != nil || d.Arch != "sm_90" {
			t.Errorf("%s: %+v, %v", s, d, err)
		}
	}
}

// TestLimitsAgainstCompiler: the recordings of limits.ptx say which numbers of
// resident blocks and warps ptxas takes for possible.
func TestLimitsAgainstCompiler(t *testing.T) {
	seen := 0
	for _, path := range recordings(t, "testdata") {
		arch, ok := strings.CutPrefix(filepath.Base(path), "limits.")
		if !ok {
			continue
		}
		seen++
		d, err := Device(strings.TrimSuffix(arch, ".log"))
		if err != nil {
			t.Error(err)
			continue
		}
		refused := map[string]bool{}
		log := parseFile(t, path, Parse)
		for _, w := range log.Warnings {
			refused[w.Function] = true
		}
		for name, impossible := range map[string]bool{
			"blocks_32_of_32": d.BlocksPerSM < 32, "blocks_24_of_32": d.BlocksPerSM < 24, "blocks_16_of_32": d.BlocksPerSM < 16,
			"warps_64": d.WarpsPerSM < 64, "warps_48": d.WarpsPerSM < 48, "warps_32": d.WarpsPerSM < 32,
		} {
			if refused[name] != impossible {
				t.Errorf("%s: ptxas refuses %s: %v, the table says %v", d.Arch, name, refused[name], impossible)
			}
		}
		if len(log.Entries) != 6 {
			t.Errorf("%s: %d entries", path, len(log.Entries))
		}
	}
	if seen < 12 {
		t.Errorf("%d recordings of limits.ptx", seen)
	}
}

// A table is a CSV file with a header.
type table struct {
	t      *testing.T
	path   string
	column map[string]int
	rows   [][]string
}

func readTable(t *testing.T, path string) table {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(rows) < 2 {
		t.Fatalf("%s has no rows", path)
	}
	tab := table{t: t, path: path, column: map[string]int{}, rows: rows[1:]}
	for i, name := range rows[0] {
		tab.column[name] = i
	}
	return tab
}

func (tab *table) text(row int, name string) string {
	tab.t.Helper()
	i, ok := tab.column[name]
	if !ok {
		tab.t.Fatalf("%s has no column %s", tab.path, name)
	}
	return tab.rows[row][i]
}

func (tab *table) int(row int, name string) int {
	tab.t.Helper()
	n, err := strconv.Atoi(tab.text(row, name))
	if err != nil {
		tab.t.Fatalf("%s row %d: %v", tab.path, row+1, err)
	}
	return n
}

// launch reads the columns that the tables share.
func (tab *table) launch(row int) Launch {
	return Launch{
		RegistersPerThread: tab.int(row, "registers"), StaticSharedBytes: tab.int(row, "static"),
		DynamicSharedBytes: tab.int(row, "dynamic"), BlockSize: tab.int(row, "block"), Barriers: tab.int(row, "barriers"),
	}
}

// carveOut turns a percentage into bytes as the runtime does.
func carveOut(t *testing.T, arch string, percent int) int {
	d, err := Device(arch)
	if err != nil {
		t.Fatal(err)
	}
	if percent < 0 {
		return 0
	}
	return d.SharedBytesPerSM * percent / 100
}

// TestOccupancyReference compares with what the toolkit's cuda_occupancy.h
// computes. A limit that it calls unlimited is the number of blocks here, which
// is how Nsight Compute prints it.
func TestOccupancyReference(t *testing.T) {
	tab := readTable(t, filepath.Join("testdata", "occupancy_reference.csv"))
	for i := range tab.rows {
		arch, l := tab.text(i, "arch"), tab.launch(i)
		l.CarveOutBytes = carveOut(t, arch, tab.int(i, "carveout_percent"))
		r, err := Occupancy(arch, l)
		if err != nil {
			t.Fatalf("row %d: %v", i+1, err)
		}
		limited := func(name string) int { return min(tab.int(i, name), tab.int(i, "limit_blocks")) }
		if r.BlocksPerSM != tab.int(i, "blocks") || r.LimitRegisters != tab.int(i, "limit_registers") || r.LimitWarps != tab.int(i, "limit_warps") ||
			r.LimitBlocks != tab.int(i, "limit_blocks") || min(r.LimitShared, r.LimitBlocks) != limited("limit_shared") || r.LimitBarriers != limited("limit_barriers") {
			t.Errorf("row %d: %v: got %+v", i+1, tab.rows[i], r)
		}
	}
	t.Logf("%d launches", len(tab.rows))
}

// TestOccupancyNsight compares with launches that Nsight Compute measured on an
// H200.
func TestOccupancyNsight(t *testing.T) {
	tab := readTable(t, filepath.Join("testdata", "occupancy.csv"))
	for i := range tab.rows {
		l := tab.launch(i)
		l.ClusterSize, l.CarveOutBytes = tab.int(i, "cluster"), tab.int(i, "carveout")
		r, err := Occupancy(tab.text(i, "arch"), l)
		if err != nil {
			t.Fatalf("row %d: %v", i+1, err)
		}
		if r.LimitRegisters != tab.int(i, "limit_registers") || r.LimitShared != tab.int(i, "limit_shared") || r.LimitWarps != tab.int(i, "limit_warps") ||
			r.LimitBlocks != tab.int(i, "limit_blocks") || r.LimitBarriers != tab.int(i, "limit_barriers") ||
			r.AllocatedRegisters != tab.int(i, "registers_allocated") || r.AllocatedSharedBytes != tab.int(i, "shared_allocated") ||
			r.WarpsPerSM != tab.int(i, "warps") || !near(r.Percent, float64(tab.int(i, "percent"))) {
			t.Errorf("row %d: %v: got %+v", i+1, tab.rows[i], r)
		}
	}
	t.Logf("%d launches", len(tab.rows))
}

// TestOccupancySweep compares with cudaOccupancyMaxActiveBlocksPerMultiprocessor
// for every configuration of occupancy_sweep.cu, where it was recorded.
func TestOccupancySweep(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "occupancy_sweep.*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skip("no recording of occupancy_sweep.cu")
	}
	for _, path := range paths {
		tab := readTable(t, path)
		if len(tab.rows) < 200 {
			t.Errorf("%s: %d configurations, want at least 200", path, len(tab.rows))
		}
		for i := range tab.rows {
			arch, l := tab.text(i, "arch"), tab.launch(i)
			l.CarveOutBytes = carveOut(t, arch, tab.int(i, "carveout_percent"))
			r, err := Occupancy(arch, l)
			if err != nil {
				t.Fatalf("%s row %d: %v", path, i+1, err)
			}
			if r.BlocksPerSM != tab.int(i, "blocks") {
				t.Errorf("%s row %d: %v: got %+v", path, i+1, tab.rows[i], r)
			}
		}
		t.Logf("%s: %d configurations", path, len(tab.rows))
	}
}

// TestSweepKernels: the kernels of occupancy_sweep.cu have the barriers and the
// shared memory that their names say, which the runtime does not report.
func TestSweepKernels(t *testing.T) {
	log := parseFile(t, filepath.Join("testdata", "cuda13.0", "occupancy_sweep.log"), Parse)
	registers := map[int64]bool{}
	for i := range log.Entries {
		e := &log.Entries[i]
		var values, shared, barriers int64
		if _, err := fmt.Sscanf(e.Name, "_Z6kernelILi%dELi%dELi%dEEvPfi", &values, &shared, &barriers); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		if e.Barriers != known(barriers) || e.SharedBytes != known(shared) {
			t.Errorf("%s: barriers %v, shared memory %v", e.Name, e.Barriers, e.SharedBytes)
		}
		registers[e.Registers.N] = true
	}
	if len(log.Entries) < 14 || len(registers) < 10 {
		t.Errorf("%d kernels with %d different numbers of registers", len(log.Entries), len(registers))
	}
}

// TestOccupancyMonotonic: asking for more of a resource never makes room for
// more blocks.
func TestOccupancyMonotonic(t *testing.T) {
	rng := seeded(t)
	archs := []string{"sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100", "sm_103", "sm_110", "sm_120a", "sm_121"}
	for range 20000 {
		arch := archs[rng.Intn(len(archs))]
		l := Launch{
			RegistersPerThread: 1 + rng.Intn(255), StaticSharedBytes: rng.Intn(48 << 10),
			DynamicSharedBytes: rng.Intn(200 << 10), BlockSize: 1 + rng.Intn(1024), Barriers: rng.Intn(17),
		}
		before, err := Occupancy(arch, l)
		if err != nil {
			t.Fatal(err)
		}
		more := l
		more.RegistersPerThread = min(255, l.RegistersPerThread+rng.Intn(9))
		more.StaticSharedBytes += rng.Intn(256)
		more.Barriers = min(16, l.Barriers+rng.Intn(2))
		more.BlockSize = min(1024, l.BlockSize+rng.Intn(33))
		after, err := Occupancy(arch, more)
		if err != nil {
			t.Fatal(err)
		}
		if after.BlocksPerSM > before.BlocksPerSM || before.Percent < 0 || before.Percent > 100 || len(before.Limiters) == 0 {
			t.Fatalf("%s %+v: %+v; with more, %+v: %+v", arch, l, before, more, after)
		}
	}
}

// TestEntryOccupancy: the figures of the log and of the launch are what
// Occupancy gets.
func TestEntryOccupancy(t *testing.T) {
	e := parseString(t, strings.ReplaceAll(block, "1 barriers", "8 barriers")).Entries[0]
	got, err := e.Occupancy(Launch{BlockSize: 128, DynamicSharedBytes: 1000, RegistersPerThread: 1, StaticSharedBytes: 1, Barriers: 1})
	want, err2 := Occupancy("sm_90", Launch{RegistersPerThread: 40, StaticSharedBytes: 128, DynamicSharedBytes: 1000, BlockSize: 128, Barriers: 8})
	if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v, %v", got, err, want, err2)
	}
	for what, change := range map[string]func(*Entry){
		"the registers of k":     func(e *Entry) { e.Registers = Count{} },
		"the shared memory of k": func(e *Entry) { e.SharedBytes = Count{} },
		"the barriers of k":      func(e *Entry) { e.Barriers = Count{} },
		"is not an architecture": func(e *Entry) { e.Arch = "" },
		"are not known":          func(e *Entry) { e.Arch = "sm_20" },
		"1 to 255":               func(e *Entry) { e.Registers = known(1 << 38) },
		"is out of range":        func(e *Entry) { e.SharedBytes = known(1 << 38) },
		"0 to 16":                func(e *Entry) { e.Barriers = known(1 << 38) },
	} {
		c := e
		change(&c)
		if r, err := c.Occupancy(Launch{BlockSize: 128}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	e.Arch, e.Barriers = "sm_86", Count{}
	if _, err := e.Occupancy(Launch{BlockSize: 128}); err != nil {
		t.Errorf("barriers that do not limit: %v", err)
	}
}
