package collect

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/roof"
)

// peaksLine is what a card says of itself that copies faster than it reads, and that
// knows f16 and nothing else.
const peaksLine = `{"peaks":{"cold_bytes_per_ns":{"read":4000,"write":3000,"copy":4100},"warm_bytes_per_ns":{"read":6500.5,"write":3000,"copy":5000},` +
	`"flops_per_ns":{"f16":989000},"absent":{"f64":"no","f32":"no","tf32":"no","bf16":"no","f8":"no","i8":"no"},"sm_mhz":{"f16":1980}}}`

const fast = `,"l2_bytes":62914560`

// saying is the stream of one process whose device says this.
func saying(device string, lines ...string) []byte {
	all := append([]string{`{"config":{"protocol":"p","mode":"time","seed":1,"device":{"name":"NVIDIA H200"` + device + `}}}`}, lines...)
	return []byte(strings.Join(append(all, timeLine), "\n") + "\n")
}

func said() *evidence.Capacity {
	c := &evidence.Capacity{L2Bytes: 62914560, ColdBytesPerNS: 4100, WarmBytesPerNS: 6500.5, FlopsPerNS: map[string]float64{"f16": 989000}, Absent: map[string]string{}}
	for _, unit := range roof.Units {
		if unit != "f16" {
			c.Absent[unit] = "no"
		}
	}
	return c
}

func TestCapacityOf(t *testing.T) {
	if got := capacityOf(saying(fast, peaksLine)); !reflect.DeepEqual(got, said()) {
		t.Errorf("%+v", got)
	}
	change := func(from, to string) []byte {
		changed := strings.Replace(peaksLine, from, to, 1)
		if changed == peaksLine {
			t.Fatalf("no %s", from)
		}
		return saying(fast, changed)
	}
	// As fast as the cards of today, and faster.
	if got := capacityOf(change(`"f16":989000`, `"f16":5e6`)); got == nil || got.FlopsPerNS["f16"] != 5e6 {
		t.Errorf("5 PFLOPS: %+v", got)
	}
	if got := capacityOf(change("6500.5", "21000")); got == nil || got.WarmBytesPerNS != 21000 {
		t.Errorf("21 TB/s: %+v", got)
	}
	for name, raw := range map[string][]byte{
		"nothing":                    nil,
		"no config":                  []byte(peaksLine + "\n"),
		"a config that comes second": append([]byte(timeLine+"\n"+peaksLine+"\n"), saying(fast)...),
		"no word of the L2":          saying("", peaksLine),
		"an L2 of 0":                 saying(`,"l2_bytes":0`, peaksLine),
		"an L2 that is a text":       saying(`,"l2_bytes":"6144"`, peaksLine),
		"no peaks":                   saying(fast),
		"peaks twice":                saying(fast, peaksLine, peaksLine),
		"a process without peaks":    slices.Concat(saying(fast, peaksLine), saying(fast)),
		"a rate of 0":                change("4000", "0"),
		"a rate below 0":             change("3000", "-1"),
		"a rate that is missing":     change(`"read":6500.5,`, ""),
		"a rate that is null":        change("6500.5", "null"),
		"too large":                  change("989000", "1e300"),
		"memory as fast as a tensor": change("4000", "989000"),
		"an L2 as fast as a tensor":  change("6500.5", "989000"),
		"200 PFLOPS":                 change("989000", "2e8"),
		"an arithmetic of nobody":    change(`"f16":989000`, `"f16":989000,"i4":1`),
		"neither known nor absent":   change(`"f64":"no",`, ""),
		"known and absent":           change(`"f64":"no"`, `"f64":"no","f16":"no"`),
	} {
		if got := capacityOf(raw); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTheHighestPeakCounts: what a card did in one process is what it can do, and what
// is known in one is not absent.
func TestTheHighestPeakCounts(t *testing.T) {
	faster := strings.NewReplacer(`"f16":989000`, `"f8":2,"f16":990000`, "6500.5", "6000", "4100", "4200", `"f8":"no",`, "").Replace(peaksLine)
	for _, raw := range [][]byte{slices.Concat(saying(fast, peaksLine), saying(fast, faster)), slices.Concat(saying(fast, faster), saying(fast, peaksLine))} {
		want := said()
		want.ColdBytesPerNS, want.FlopsPerNS = 4200, map[string]float64{"f16": 990000, "f8": 2}
		delete(want.Absent, "f8")
		if got := capacityOf(raw); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	}
}

// TestTheHarnessMeasuresEveryUnit: what an op can state is what the harness measures.
func TestTheHarnessMeasuresEveryUnit(t *testing.T) {
	source, err := os.ReadFile(filepath.FromSlash("../../../kernels/harness/peak_code.cu"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^      \{"([a-z0-9]+)", \{Way::`).FindAllSubmatch(source, -1) {
		names = append(names, string(m[1]))
	}
	if !slices.Equal(names, roof.Units) {
		t.Errorf("the harness measures %q, and an op can state %q", names, roof.Units)
	}
}

// TestPeaksComeFirst: a process that times says its card's peaks once, before a kernel
// is loaded.
func TestPeaksComeFirst(t *testing.T) {
	timed := strings.Replace(configLine, `"mode":"check"`, `"mode":"time"`, 1)
	end := func(peaks int) string {
		return strings.Replace(endLine(timedLine, timeLine), `{"end":{`, fmt.Sprintf(`{"end":{"peaks":%d,`, peaks), 1)
	}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"as it is":         {[]string{timed, peaksLine, timedLine, timeLine, end(1)}, ""},
		"none":             {[]string{timed, timedLine, timeLine, end(0)}, "times came, and no peaks of the card"},
		"not counted":      {[]string{timed, peaksLine, timedLine, timeLine, end(0)}, "the end record counts"},
		"counted only":     {[]string{timed, timedLine, timeLine, end(1)}, "the end record counts"},
		"after a kernel":   {[]string{timed, timedLine, peaksLine, timeLine, end(1)}, "come once, and before any kernel"},
		"twice":            {[]string{timed, peaksLine, peaksLine, timedLine, timeLine, end(2)}, "come once, and before any kernel"},
		"a rate of 0":      {[]string{timed, strings.Replace(peaksLine, "4100", "0", 1), timedLine, timeLine, end(1)}, "a peak of 0 bytes a nanosecond was never measured"},
		"a check has none": {[]string{configLine, beginLine, checkLine, endLine(beginLine, checkLine)}, ""},
	} {
		s := parseStream([]byte(strings.Join(c.lines, "\n") + "\n"))
		if s.ended != (c.want == "") || (s.garbled == nil) != (c.want == "") || s.garbled != nil && !strings.Contains(s.garbled.Error(), c.want) {
			t.Errorf("%s: ended %v, %v", name, s.ended, s.garbled)
		}
	}
}

// TestEveryProcessOfARecordSaysItsPeaksOnce: of a process that says none, another one
// cannot say them twice, and a check says none.
func TestEveryProcessOfARecordSaysItsPeaksOnce(t *testing.T) {
	const once, none = "every process says the peaks of the card once", "it is not part of what was measured"
	check := bytes.ReplaceAll(saying(fast), []byte(`"mode":"time"`), []byte(`"mode":"check"`))
	for name, c := range map[string]struct {
		raw        []byte
		mode, want string
	}{
		"once each":            {slices.Concat(saying(fast, peaksLine), saying(fast, peaksLine)), "time", ""},
		"twice, and then none": {slices.Concat(saying(fast, peaksLine, peaksLine), saying(fast)), "time", once},
		"none, and then twice": {slices.Concat(saying(fast), saying(fast, peaksLine, peaksLine)), "time", once},
		"a check":              {check, "check", ""},
		"a check that does":    {append(slices.Clone(check), peaksLine+"\n"...), "check", none},
	} {
		_, err := readRecording(&evidence.Record{Address: evidence.Address{Case: "small"}}, c.raw, c.mode, true)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestAuditOfTheCapacity: what a record says of its card's speed is in its raw input,
// or it is not said.
func TestAuditOfTheCapacity(t *testing.T) {
	slower := *said()
	slower.FlopsPerNS = maps.Clone(slower.FlopsPerNS)
	slower.FlopsPerNS["f16"] = 1
	stream := saying(fast, peaksLine)
	alone, pair := map[string][]byte{"harness.jsonl": stream}, map[string][]byte{"head.jsonl": stream, "base.jsonl": saying("")}
	for _, c := range []struct {
		name   string
		record evidence.Record
		raw    map[string][]byte
		fine   bool
	}{
		{"said", evidence.Record{Tier: evidence.Latency, Capacity: said()}, alone, true},
		{"of two arms", evidence.Record{Tier: evidence.Latency, Base: &evidence.Address{}, Capacity: said()}, pair, true},
		{"never said", evidence.Record{Tier: evidence.Latency}, map[string][]byte{"harness.jsonl": saying("")}, true},
		{"another tier", evidence.Record{Tier: evidence.Correctness}, alone, true},
		{"slower than it is", evidence.Record{Tier: evidence.Latency, Capacity: &slower}, alone, false},
		{"taken away", evidence.Record{Tier: evidence.Latency}, alone, false},
		{"made up", evidence.Record{Tier: evidence.Latency, Capacity: said()}, map[string][]byte{"harness.jsonl": saying("")}, false},
		{"of a check", evidence.Record{Tier: evidence.Correctness, Capacity: said()}, alone, false},
	} {
		if err := auditCapacity(&c.record, c.raw); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
