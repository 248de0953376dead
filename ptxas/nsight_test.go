package ptxas

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// TestOccupancyNsightFiles reads every Nsight Compute CSV file of a folder that
// is not distributed and compares each launch that has the block limits.
func TestOccupancyNsightFiles(t *testing.T) {
	root := os.Getenv("GATE_CORPUS")
	if root == "" {
		t.Skip("GATE_CORPUS is not set")
	}
	var files []string
	for _, pattern := range []string{"*.csv", "*/*.csv"} {
		found, err := filepath.Glob(filepath.Join(root, "ncu", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	sort.Strings(files)
	compared := 0
	var without []string
	for _, path := range files {
		for _, l := range nsightLaunches(t, path) {
			if !l.has("launch__occupancy_limit_warps") {
				continue
			}
			if missing := l.missing(); len(missing) > 0 {
				without = append(without, fmt.Sprintf("%s launch %s: %v", filepath.Base(path), l.id, missing))
				continue
			}
			l.compare(t, path)
			compared++
		}
	}
	t.Logf("%d launches compared", compared)
	for _, w := range without {
		t.Logf("not computable, the file does not say: %s", w)
	}
	if compared < 30 {
		t.Errorf("%d launches compared, want at least 30", compared)
	}
}

// A nsightLaunch holds the metrics of one launch by counter name.
type nsightLaunch struct {
	id     string
	values map[string]float64
}

func (l nsightLaunch) has(name string) bool { _, ok := l.values[name]; return ok }

func (l nsightLaunch) missing() []string {
	var names []string
	for _, name := range []string{"launch__registers_per_thread", "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic", "launch__block_size", "launch__shared_mem_config_size", "cc"} {
		if !l.has(name) {
			names = append(names, name)
		}
	}
	return names
}

func (l nsightLaunch) compare(t *testing.T, path string) {
	t.Helper()
	arch := strconv.FormatFloat(l.values["cc"], 'f', 1, 64)
	d, err := Device(arch)
	if err != nil {
		t.Error(err)
		return
	}
	// Auto-scaled units ("8.19 Kbyte") lose bytes, but name one of the sizes.
	config := slices.MinFunc(d.CarveOutBytes, func(a, b int) int {
		return int(distance(a, l.values["launch__shared_mem_config_size"]) - distance(b, l.values["launch__shared_mem_config_size"]))
	})
	r, err := Occupancy(arch, Launch{
		RegistersPerThread: int(l.values["launch__registers_per_thread"]), StaticSharedBytes: int(l.values["launch__shared_mem_per_block_static"]),
		DynamicSharedBytes: int(l.values["launch__shared_mem_per_block_dynamic"]), BlockSize: int(l.values["launch__block_size"]),
		Barriers: int(l.values["launch__barrier_count"]), ClusterSize: int(l.values["launch__cluster_size"]), CarveOutBytes: config,
	})
	if err != nil {
		t.Errorf("%s launch %s: %v", filepath.Base(path), l.id, err)
		return
	}
	for name, got := range map[string]float64{
		"launch__occupancy_limit_registers": float64(r.LimitRegisters), "launch__occupancy_limit_shared_mem": float64(r.LimitShared),
		"launch__occupancy_limit_warps": float64(r.LimitWarps), "launch__occupancy_limit_blocks": float64(r.LimitBlocks),
		"sm__maximum_warps_avg_per_active_cycle": float64(r.WarpsPerSM),
	} {
		if want, ok := l.values[name]; !ok || want != got {
			t.Errorf("%s launch %s: %s = %v, want %v", filepath.Base(path), l.id, name, got, want)
		}
	}
	if want := l.values["sm__maximum_warps_per_active_cycle_pct"]; distance(int(r.Percent*100), want*100) > 1 {
		t.Errorf("%s launch %s: occupancy %v %%, want %v", filepath.Base(path), l.id, r.Percent, want)
	}
	// The details page does not print how many barriers a kernel uses.
	if want, ok := l.values["launch__occupancy_limit_barriers"]; ok && l.has("launch__barrier_count") && want != float64(r.LimitBarriers) {
		t.Errorf("%s launch %s: barrier limit %d, want %v", filepath.Base(path), l.id, r.LimitBarriers, want)
	}
}

func distance(a int, b float64) float64 { return max(float64(a)-b, b-float64(a)) }

// nsightLaunches is a reader for these tests only: it knows two shapes of CSV
// and the few labels that occupancy needs.
func nsightLaunches(t *testing.T, path string) []nsightLaunch {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if i := strings.Index(text, `"ID",`); i >= 0 {
		text = text[i:]
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %d rows, %v", path, len(rows), err)
	}
	if i := slices.Index(rows[0], "Metric Name"); i >= 0 {
		return longLaunches(rows, i)
	}
	return wideLaunches(rows)
}

func wideLaunches(rows [][]string) []nsightLaunch {
	var launches []nsightLaunch
	for _, row := range rows[2:] {
		l := nsightLaunch{id: row[0], values: map[string]float64{}}
		for i, name := range rows[0] {
			l.set(name, rows[1][i], row[i])
		}
		if l.has("device__attribute_compute_capability_major") {
			l.values["cc"] = l.values["device__attribute_compute_capability_major"] + l.values["device__attribute_compute_capability_minor"]/10
		}
		launches = append(launches, l)
	}
	return launches
}

var labels = map[string]string{
	"Block Limit SM": "launch__occupancy_limit_blocks", "Block Limit Registers": "launch__occupancy_limit_registers",
	"Block Limit Shared Mem": "launch__occupancy_limit_shared_mem", "Block Limit Warps": "launch__occupancy_limit_warps",
	"Block Limit Barriers": "launch__occupancy_limit_barriers", "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
	"Theoretical Active Warps per SM": "sm__maximum_warps_avg_per_active_cycle", "Registers Per Thread": "launch__registers_per_thread",
	"Static Shared Memory Per Block": "launch__shared_mem_per_block_static", "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
	"Shared Memory Configuration Size": "launch__shared_mem_config_size", "Block Size": "launch__block_size", "Cluster Size": "launch__cluster_size",
}

func longLaunches(rows [][]string, name int) []nsightLaunch {
	var launches []nsightLaunch
	cc := slices.Index(rows[0], "CC")
	for _, row := range rows[1:] {
		if len(row) <= name+2 || row[name] == "" {
			continue
		}
		if n := len(launches); n == 0 || launches[n-1].id != row[0] {
			launches = append(launches, nsightLaunch{id: row[0], values: map[string]float64{}})
		}
		l := launches[len(launches)-1]
		if cc >= 0 {
			l.set("cc", "", row[cc])
		}
		if counter, ok := labels[row[name]]; ok {
			l.set(counter, row[name+1], row[name+2])
		}
	}
	return launches
}

func (l nsightLaunch) set(name, unit, text string) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return
	}
	if strings.HasPrefix(unit, "K") {
		v *= 1000
	}
	l.values[name] = v
}
