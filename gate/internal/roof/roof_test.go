package roof

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestEvaluate(t *testing.T) {
	sizes := map[string]int64{"B": 2, "S": 512, "long_name": 3, "7": 1, "huge": math.MaxInt64}
	dims := []string{"B", "S", "long_name", "7", "huge"}
	for _, c := range []struct {
		text string
		want int64
		err  string
	}{
		{"12", 12, ""},
		{"B", 2, ""},
		{"8*B*S", 8192, ""},
		{" 4 * B + 2*S*S+long_name ", 8 + 2*512*512 + 3, ""},
		{"0*B + 1", 1, ""},
		{"huge", math.MaxInt64, ""},
		{"9223372036854775807", math.MaxInt64, ""},
		{"huge+1", 0, `"huge+1" is above 2^63`},
		{"huge*2", 0, "is above 2^63"},
		{"huge*huge*0", 0, "is above 2^63"},
		{"huge*2 + huge*2 + 2*2", 0, "is above 2^63"},
		{"9223372036854775808", 0, "is above 2^63"},
		{"99999999999999999999", 0, "is above 2^63"},
		{"0", 0, "leave out what is not known"},
		{"0*B", 0, "leave out what is not known"},
		{"", 0, `"" is neither a number nor one of B, S`},
		{"B+", 0, `"" is neither`},
		{"*B", 0, `"" is neither`},
		{"B**2", 0, `"" is neither`},
		{"-1", 0, `"-1" is neither`},
		{"+1", 0, `"" is neither`},
		{"1.5*B", 0, `"1.5" is neither`},
		{"1e3", 0, `"1e3" is neither`},
		{"0x10", 0, `"0x10" is neither`},
		{"1_000", 0, `"1_000" is neither`},
		{"(B)", 0, `"(B)" is neither`},
		{"B/2", 0, `"B/2" is neither`},
		{"b", 0, `"b" is neither`},
		{"B S", 0, `"B S" is neither`},
		{"7*B", 0, "7 is a number and a dimension"},
	} {
		got, err := Evaluate(c.text, dims, func(d string) int64 { return sizes[d] })
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %d, %v; want %d, %q", c.text, got, err, c.want, c.err)
		}
	}
}

// TestPublishedPeaks holds the table to what NVIDIA publishes of products, in
// tera-operations a second at the clock that it names, dense.
func TestPublishedPeaks(t *testing.T) {
	products := []struct {
		name, cc string
		sms, mhz int
		peaks    map[string]float64
	}{
		{"A100", "8.0", 108, 1410, map[string]float64{"f64": 19.5, "f32": 19.5, "tf32": 156, "f16": 312, "bf16": 312, "i8": 624}},
		{"RTX A6000", "8.6", 84, 1800, map[string]float64{"f32": 38.7, "tf32": 77.4, "f16": 154.8, "bf16": 154.8, "i8": 309.7}},
		{"L40S", "8.9", 142, 2520, map[string]float64{"f32": 91.6, "tf32": 183, "f16": 362, "bf16": 362, "f8": 733, "i8": 733}},
		{"H100 SXM, tensor cores", "9.0", 132, 1830, map[string]float64{"tf32": 494.7, "f16": 989.4, "bf16": 989.4, "f8": 1978.9, "i8": 1978.9}},
		{"H100 SXM, others", "9.0", 132, 1980, map[string]float64{"f64": 66.9, "f32": 66.9}},
		{"B200", "10.0", 148, 1860, map[string]float64{"f32": 70.5, "tf32": 1125, "f16": 2250, "bf16": 2250, "f8": 4500, "i8": 4500}},
		{"RTX PRO 6000", "12.0", 188, 2617, map[string]float64{"f32": 126, "tf32": 251.9, "f16": 503.8, "bf16": 503.8, "f8": 1007.6, "i8": 1007.6}},
	}
	shown := map[string]bool{}
	for _, p := range products {
		shown[p.cc] = true
		for unit, want := range p.peaks {
			got := perNanosecond(&evidence.Capacity{SMs: p.sms, SMClockMHz: p.mhz}, peaks[p.cc][unit]) / 1e3
			if math.Abs(got/want-1) > 0.02 {
				t.Errorf("%s: %s gives %.1f, published are %.1f", p.name, unit, got, want)
			}
		}
	}
	for cc, of := range peaks {
		if !shown[cc] {
			t.Errorf("no product shows what is said of %s", cc)
		}
		for unit := range of {
			if !slices.Contains(Units, unit) {
				t.Errorf("%s: %q is not a unit that an op can state", cc, unit)
			}
		}
	}
	for name, c := range map[string]struct {
		mhz, bits int
		want      float64
	}{"H200": {3201, 6144, 4.9e12}, "A100 80GB": {1593, 5120, 2.039e12}, "RTX 4090": {10501, 384, 1.008e12}} {
		if got := 1e9 * bandwidth(&evidence.Capacity{MemoryClockMHz: c.mhz, BusBits: c.bits}); math.Abs(got/c.want-1) > 0.02 {
			t.Errorf("%s: %.4g bytes a second, published are %.4g", name, got, c.want)
		}
	}
}

var h200 = evidence.Capacity{SMs: 132, SMClockMHz: 1980, MemoryClockMHz: 3201, BusBits: 6144, L2Bytes: 62914560}

func TestOf(t *testing.T) {
	on := func(cc string, change func(*evidence.Capacity)) *evidence.Record {
		c := h200
		change(&c)
		return &evidence.Record{Provenance: evidence.Provenance{Machine: evidence.Machine{CC: cc}}, Capacity: &c}
	}
	known := on("9.0", func(*evidence.Capacity) {})
	const perFlop, perByte = 1 / (132 * 1980 * 4096 / 1e3), 1 / (6144 / 8 * 2 * 3.201)
	flops, both := Work{Flops: 4e9, Unit: "f16"}, Work{Bytes: 1e9, Flops: 4e9, Unit: "f16"}
	for _, c := range []struct {
		name  string
		work  Work
		by    *evidence.Record
		state evidence.CacheState
		calls int
		want  float64
		of    string
		err   string
	}{
		{"operations, warm", flops, known, evidence.Warm, 10, 4e9 * perFlop, "4.0 GFLOP of f16", ""},
		{"operations, cold", flops, known, evidence.Cold, 10, 4e9 * perFlop, "4.0 GFLOP of f16", ""},
		{"memory does not count in the L2", both, known, evidence.Warm, 10, 4e9 * perFlop, "4.0 GFLOP of f16", ""},
		{"memory", both, known, evidence.Cold, 10, (1e9 - 62914560/10.) * perByte, "994 MB of memory", ""},
		{"memory of one call", Work{Bytes: 1e9}, known, evidence.Cold, 1, (1e9 - 62914560) * perByte, "937 MB of memory", ""},
		{"no number of calls", Work{Bytes: 1e9}, known, evidence.Cold, 0, (1e9 - 62914560) * perByte, "937 MB of memory", ""},
		{"operations are more than memory", Work{Bytes: 1e7, Flops: 4e12, Unit: "f16"}, known, evidence.Cold, 1000, 4e12 * perFlop, "4.0 TFLOP of f16", ""},
		{"memory alone, warm", Work{Bytes: 1e9}, known, evidence.Warm, 10, 0, "", "the L2 holds has no known bound"},
		{"a batch that the L2 holds", Work{Bytes: 1e6}, known, evidence.Cold, 10, 0, "", "the L2 holds has no known bound"},
		{"another unit", Work{Flops: 4e9, Unit: "i8"}, known, evidence.Warm, 1, 4e9 * perFlop / 2, "4.0 GFLOP of i8", ""},
		{"an unknown architecture", flops, on("7.5", func(*evidence.Capacity) {}), evidence.Warm, 1, 0, "", "no peak of f16 is known for compute capability 7.5"},
		{"an unknown architecture has memory", both, on("7.5", func(*evidence.Capacity) {}), evidence.Cold, 10, (1e9 - 62914560/10.) * perByte, "994 MB of memory", "no peak of f16"},
		{"a unit that it lacks", Work{Flops: 4e9, Unit: "f8"}, on("8.0", func(*evidence.Capacity) {}), evidence.Warm, 1, 0, "", "no peak of f8 is known for compute capability 8.0"},
		{"no capacity", both, &evidence.Record{Provenance: evidence.Provenance{Machine: evidence.Machine{CC: "9.0"}}}, evidence.Cold, 1, 0, "", "does not say how fast"},
		{"no bus", both, on("9.0", func(c *evidence.Capacity) { c.BusBits = 0 }), evidence.Cold, 1, 0, "", "does not say how fast"},
		{"a clock below 0", both, on("9.0", func(c *evidence.Capacity) { c.SMClockMHz = -1 }), evidence.Cold, 1, 0, "", "does not say how fast"},
	} {
		got, err := Of(c.work, c.by, c.state, c.calls)
		if math.Abs(got.NS-c.want) > 1e-6*c.want || got.For != c.of || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v; want %g for %q, %q", c.name, got, err, c.want, c.of, c.err)
		}
	}
}

func TestImpossible(t *testing.T) {
	b := Bound{NS: 1000}
	for ns, want := range map[float64]bool{799.9: true, 800: false, 1000: false, 5000: false} {
		if b.Impossible(ns) != want {
			t.Errorf("%g ns of %g: %v", ns, b.NS, !want)
		}
	}
	if (Bound{}).Impossible(0) {
		t.Error("what has no bound was called impossible")
	}
	if v := b.Percent(4000); v.Number != 25 || v.Unit() != "%" {
		t.Errorf("%+v", v)
	}
	if v := b.Percent(0); v.Known() {
		t.Errorf("a time of 0 has the share %+v", v)
	}
}

func TestAmount(t *testing.T) {
	for x, want := range map[float64]string{1: "1.0 FLOP", 12: "12 FLOP", 999.4: "999 FLOP", 999.6: "1.0 kFLOP", 4294967296: "4.3 GFLOP", 123456789: "123 MFLOP", 9.2e18: "9.2 EFLOP"} {
		if got := amount(x, "FLOP"); got != want {
			t.Errorf("%g: %q, want %q", x, got, want)
		}
	}
}
