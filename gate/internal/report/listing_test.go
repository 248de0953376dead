package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/cache"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// TestListingsArePrintable: whatever a file or a name holds, a table has one
// line for each row and no character that moves the cursor.
func TestListingsArePrintable(t *testing.T) {
	record := &evidence.Record{Tier: evidence.Tier(hostile), Provenance: evidence.Provenance{Kernel: hostile, Recorded: hostile},
		Address: evidence.Address{Case: hostile, Machine: hostile, Identity: evidence.Identity{Code: hostile, Host: "h"}}}
	id := plan.ID{Rule: hostile, Kind: plan.Kind(hostile), Kernel: hostile, Arch: hostile, Case: hostile, Machine: hostile}
	for name, c := range map[string]struct {
		lines int
		write func(b *bytes.Buffer, format string) error
	}{
		"records": {2, func(b *bytes.Buffer, f string) error { return WriteRecords(b, []*evidence.Record{record}, f) }},
		"metrics": {2, func(b *bytes.Buffer, f string) error {
			return WriteMetrics(b, []metric.Metric{{Name: hostile, Unit: hostile, Doc: hostile}}, f)
		}},
		"toolchains": {2, func(b *bytes.Buffer, f string) error {
			return WriteToolchains(b, []*toolchain.Toolchain{{Version: hostile, NVCC: hostile}}, f)
		}},
		"cache": {4, func(b *bytes.Buffer, f string) error {
			return WriteCache(b, cache.Listing{Folder: hostile, Kinds: []cache.Size{{Kind: hostile}}}, f)
		}},
		"preview": {4, func(b *bytes.Buffer, f string) error {
			return WritePreview(b, plan.Preview{Questions: []plan.Asked{{ID: id, Answer: plan.IsMissing}}}, f)
		}},
	} {
		var table, json bytes.Buffer
		if err := c.write(&table, "text"); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(table.String(), "\n"); n != c.lines || strings.ContainsAny(table.String(), "\x1b\r\t\x00\u202e\u2066\u2028") {
			t.Errorf("%s: %d lines, want %d: %q", name, n, c.lines, table.String())
		}
		if err := c.write(&json, "json"); err != nil || !strings.HasPrefix(json.String(), "{") {
			t.Errorf("%s: %v %s", name, err, json.String())
		}
	}
}

func TestEmptyListingsAreLists(t *testing.T) {
	var b bytes.Buffer
	if err := WriteRecords(&b, nil, "json"); err != nil || !strings.Contains(b.String(), `"records": []`) {
		t.Errorf("%v %s", err, b.String())
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1_550_000: "1.6 MB", 2e9: "2.0 GB", 5e15: "5000.0 TB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
}
