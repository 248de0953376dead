package ncu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// message encodes protobuf fields, for reports made up here.
type message []byte

func (m message) key(num, wire int) message {
	return binary.AppendUvarint(m, uint64(num)<<3|uint64(wire))
}

func (m message) num(num int, v uint64) message {
	return binary.AppendUvarint(m.key(num, wireVarint), v)
}

func (m message) double(num int, v float64) message {
	return binary.LittleEndian.AppendUint64(m.key(num, wire64), math.Float64bits(v))
}

func (m message) float(num int, v float32) message {
	return binary.LittleEndian.AppendUint32(m.key(num, wire32), math.Float32bits(v))
}

func (m message) bytes(num int, b []byte) message {
	m = binary.AppendUvarint(m.key(num, wireBytes), uint64(len(b)))
	return append(m, b...)
}

func (m message) text(num int, s string) message { return m.bytes(num, []byte(s)) }

func lengthFirst(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// blockOf encodes a block of a report.
func blockOf(header message, sources, results [][]byte) []byte {
	var payload []byte
	for _, p := range append(append([][]byte(nil), sources...), results...) {
		payload = append(payload, lengthFirst(p)...)
	}
	header = header.num(1, uint64(len(sources))).num(2, uint64(len(results))).num(5, uint64(len(payload)))
	return append(lengthFirst(header), payload...)
}

func container(version uint64, blocks ...[]byte) []byte {
	out := append([]byte("NVR\x00"), lengthFirst(message{}.num(1, version))...)
	return append(out, bytes.Join(blocks, nil)...)
}

var madeUpNames = []string{"gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__registers_per_thread",
	"launch__func_cache_config", "smsp__pcsamp_sample_buffer_full", "sm__nothing", "odd__nan"}

func madeUpResult(kernel string) message {
	dim := func(x, y, z uint64) []byte { return message{}.num(1, x).num(2, y).num(3, z) }
	value := func(id uint64, v message) []byte { return message{}.num(1, id).bytes(2, v) }
	instance := func(key, v message) []byte { return message{}.bytes(1, key).bytes(2, v) }
	return message{}.num(1, 4242).text(5, "_Z1ki").text(6, "k").text(7, kernel).bytes(10, dim(4, 2, 1)).bytes(11, dim(256, 1, 1)).
		text(12, "__global__ void secret_source()").
		bytes(13, value(0, message{}.double(3, 1500))).
		bytes(13, value(1, message{}.float(2, 0.5))).
		bytes(13, message(value(2, message{}.num(5, 32))).bytes(3, instance(message{}.num(5, 16), message{}.num(5, 30))).bytes(3, instance(message{}.text(1, "pc"), message{}.double(3, 2))).bytes(3, instance(message{}.num(5, 1), message{}.text(1, "word")))).
		bytes(13, value(3, message{}.text(1, "CachePreferNone"))).
		bytes(13, value(4, message{}.num(4, 7))).
		bytes(13, message{}.num(1, 5)).
		bytes(13, value(6, message{}.double(3, math.NaN()))).
		bytes(17, message{}.text(1, "Occupancy").text(2, "Occupancy").bytes(4, message{}.bytes(2, message{}.text(1, madeUpNames[1]).text(2, "Achieved Occupancy")))).
		bytes(19, message{}.text(1, "Limit").text(4, "Occupancy").bytes(3, message{}.bytes(1,
			message{}.bytes(1, message{}.text(1, "Few warps. ").num(2, 4)).bytes(10, message{}.num(1, 1).double(2, 12.5))))).
		bytes(19, message{}.text(1, "Broken").text(4, "Occupancy").bytes(3, message{}.bytes(1,
			message{}.bytes(1, message{}.text(1, "failed in /home/somebody/sections/x.py:78").num(2, 3))))).
		num(22, 1).num(23, 7)
}

func madeUpReport() []byte {
	attribute := func(name string, v message) []byte { return message{}.text(1, name).bytes(2, v) }
	version := func(name, v string) []byte { return message{}.text(1, name).text(2, v) }
	device := message{}.num(1, 0).text(2, "NVIDIA H200").
		bytes(3, attribute("device__attribute_compute_capability_minor", message{}.num(5, 0))).
		bytes(3, attribute("device__attribute_compute_capability_major", message{}.num(5, 9)))
	session := message{}.bytes(3, message{}.text(5, "secret-host")).bytes(6, device).text(9, "/home/somebody/app").text(11, "ncu -o secret").
		bytes(8, version("Nsight Compute Target", "2025.3.1.0 (build 1)")).bytes(8, version("CUDA Version", "13.0")).bytes(8, version("Display Driver Version", "580.65"))
	var strings message
	for _, n := range madeUpNames {
		strings = strings.text(1, n)
	}
	process := message{}.text(6, "secret-process")
	return container(reportVersion,
		blockOf(append(process, message{}.bytes(3, session)...), nil, nil),
		blockOf(nil, [][]byte{[]byte("secret cubin")}, nil),
		blockOf(message{}.bytes(4, strings), nil, [][]byte{madeUpResult("k(int)")}),
		blockOf(message{}.bytes(4, nil), nil, [][]byte{madeUpResult("k(int)"), madeUpResult("f<(int)3>(float *)")}))
}

func readBytes(b []byte) (*Report, error) {
	return ReadReport(bytes.NewReader(b), int64(len(b)), "t.ncu-rep")
}

func TestReport(t *testing.T) {
	rep, err := readBytes(madeUpReport())
	if err != nil {
		t.Fatal(err)
	}
	if s := rep.Session; s.Version != "2025.3.1.0" || s.CUDAVersion != "13.0" || s.DriverVersion != "580.65" || len(s.Devices) != 1 ||
		s.Devices[0].Name != "NVIDIA H200" || s.Devices[0].Attributes[0].Name != "device__attribute_compute_capability_major" {
		t.Errorf("%+v", s)
	}
	if len(rep.Launches) != 3 {
		t.Fatalf("%d launches", len(rep.Launches))
	}
	l := rep.Launches[0]
	if l.ID != 0 || l.Process != 4242 || l.Mangled != "_Z1ki" || l.Kernel != "k(int)" || l.CC != "9.0" || l.Context != 1 || l.Stream != 7 ||
		l.Grid != [3]int{4, 2, 1} || l.Block != [3]int{256, 1, 1} || rep.Launches[2].Kernel != "f<(int)3>(float *)" || rep.Launches[2].ID != 2 {
		t.Errorf("%+v", l)
	}
	for name, want := range map[string]Value{
		"gpu__time_duration.sum":                            {Kind: Number, Number: 1500, Unit: "ns"},
		"sm__warps_active.avg.pct_of_peak_sustained_active": {Kind: Number, Number: 0.5, Unit: "%"},
		"launch__registers_per_thread":                      {Kind: Number, Number: 32},
		"launch__func_cache_config":                         {Kind: Text, Text: "CachePreferNone"},
		"smsp__pcsamp_sample_buffer_full":                   {Kind: Number, Number: 7},
		"sm__nothing":                                       missing(ReasonNotAvailable),
		"odd__nan":                                          missing(ReasonNaN),
		"absent":                                            missing(ReasonNotCollected),
	} {
		if v, err := l.Metric(name); err != nil || v != want {
			t.Errorf("%s = %+v, %v; want %+v", name, v, err, want)
		}
	}
	if v, err := l.Label("Occupancy", "Achieved Occupancy"); err != nil || v.Number != 0.5 {
		t.Errorf("by label %+v, %v", v, err)
	}
	in, err := l.Instances("launch__registers_per_thread")
	if err != nil || len(in) != 3 || in[0] != (Instance{Key: "16", Number: 30}) || in[1] != (Instance{Key: "pc", Number: 2}) || in[2] != (Instance{Key: "1", Text: "word"}) {
		t.Errorf("instances %+v, %v", in, err)
	}
	want := []Rule{
		{"Occupancy", "Limit", "OPT", "Few warps.", "local", Value{Kind: Number, Number: 12.5, Unit: "%"}},
		{"Occupancy", "Broken", "ERR", "failed in (path):78", "", missing(ReasonNotAvailable)},
	}
	if len(l.Rules) != 2 || l.Rules[0] != want[0] || l.Rules[1] != want[1] {
		t.Errorf("%+v", l.Rules)
	}
	if v, err := Derive("", l, "ncu.duration"); err != nil || v.Number != 1500 {
		t.Errorf("derived %+v, %v", v, err)
	}
}

// Nothing of what a report says about machine and user comes out of the API.
func TestReportPrivacy(t *testing.T) {
	rep, err := readBytes(madeUpReport())
	if err != nil {
		t.Fatal(err)
	}
	text, _ := dump(t, rep, Metrics())
	for _, l := range rep.Launches {
		for _, s := range l.Sections {
			text += s.ID + s.Name
		}
		text += l.Mangled
	}
	for _, d := range rep.Session.Devices {
		for _, a := range d.Attributes {
			text += a.Name + show(a.Value)
		}
	}
	for _, secret := range []string{"secret", "somebody", "/home"} {
		if strings.Contains(text, secret) {
			t.Errorf("the report gives away %q", secret)
		}
	}
}

func TestReportRefused(t *testing.T) {
	good := madeUpReport()
	strs := message{}.bytes(4, message{}.text(1, "a"))
	one := func(m message) []byte { return container(reportVersion, blockOf(strs, nil, [][]byte{m})) }
	entry := func(v message) message { return message{}.text(7, "k").bytes(13, message{}.num(1, 0).bytes(2, v)) }
	for name, c := range map[string]struct {
		in  []byte
		msg string
	}{
		"empty":            {nil, "no .ncu-rep report"},
		"text":             {[]byte("hello, this is text"), "no .ncu-rep report"},
		"repz":             {[]byte("\x28\xb5\x2f\xfd and so on"), ".ncu-repz"},
		"LFS":              {[]byte("version https://git-lfs.github.com/spec/v1\n"), "git-lfs pointer"},
		"version 8":        {container(8), "format version 8"},
		"no version":       {container(0), "format version 0"},
		"no launch":        {container(reportVersion), "holds no launch"},
		"cut off":          {good[:len(good)-1], "cut off"},
		"cut in a header":  {good[:20], "cut off"},
		"trailing bytes":   {append(bytes.Clone(good), 1, 2, 3), "cut off"},
		"ranges":           {container(reportVersion, lengthFirst(message{}.num(7, 1).num(5, 4)), make([]byte, 4)), "profiled ranges"},
		"huge counts":      {container(reportVersion, lengthFirst(message{}.num(2, 1<<60).num(5, 0))), "too small"},
		"overflow":         {container(reportVersion, lengthFirst(message{}.num(1, 1<<63).num(2, 1<<63).num(5, 0))), "too small"},
		"huge payload":     {container(reportVersion, lengthFirst(message{}.num(5, 1<<63))), "cut off"},
		"payload too long": {container(reportVersion, append(lengthFirst(message{}.num(5, 4)), 0, 0, 0, 0)), "another size"},
		"no name":          {one(message{}.num(1, 1)), "no kernel name"},
		"name id":          {one(message{}.text(7, "k").bytes(13, message{}.num(1, 1))), "no name in the table"},
		"value type":       {one(entry(message{}.num(9, 1))), "unknown type 9"},
		"value wire":       {one(entry(message{}.num(3, 1))), "unknown type 3"},
		"grid":             {one(message{}.text(7, "k").bytes(10, message{}.num(1, 1<<40))), "a size is"},
		"group":            {one(message{}.text(7, "k").key(30, 3)), "unknown wire type"},
		"open number":      {one(append(message{}.text(7, "k"), 0xff)), "does not end"},
		"long field":       {one(append(message{}.text(7, "k").key(13, wireBytes), 100)), "longer than its message"},
	} {
		rep, err := readBytes(c.in)
		var s *SyntaxError
		if rep == nil || !errors.As(err, &s) || !strings.Contains(s.Msg, c.msg) || s.File != "t.ncu-rep" {
			t.Errorf("%s: %v, %v; want %q", name, rep, err, c.msg)
		}
	}
}

// A compressed report is told by its name when its first bytes do not say so.
func TestReportCompressedName(t *testing.T) {
	b := append([]byte("NVR\x00"), make([]byte, 60)...)
	b[4] = 0xff
	_, err := ReadReport(bytes.NewReader(b), int64(len(b)), "x.ncu-repz")
	var s *SyntaxError
	if !errors.As(err, &s) || !strings.Contains(s.Msg, ".ncu-repz") || s.Hint != hintExport {
		t.Errorf("%v", err)
	}
}

func TestReportRetention(t *testing.T) {
	b := madeUpReport()
	for limit, refused := range map[int64]bool{100: true, 1 << 20: false} {
		p := newReportReader(bytes.NewReader(b), int64(len(b)))
		p.limit = limit
		if err := p.read(); (err != nil) != refused {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

type failingReader struct{ err error }

func (f failingReader) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestReportReadError(t *testing.T) {
	broken := errors.New("broken disk")
	rep, err := ReadReport(failingReader{broken}, 100, "t")
	var s *SyntaxError
	if rep == nil || !errors.Is(err, broken) || errors.As(err, &s) {
		t.Errorf("%v, %v", rep, err)
	}
	b := madeUpReport()
	if rep, err := ReadReport(bytes.NewReader(b), int64(len(b))+50, "t"); rep == nil || err == nil {
		t.Errorf("%v, %v", rep, err)
	}
}

// TestReportAgainstNcu compares every value of a report with what ncu itself
// prints of it. ncu leaves out the eight breakdown entries, and prints two
// decimals.
func TestReportAgainstNcu(t *testing.T) {
	rep, err := readPath(t, corpus(t, "darrenlu-rtx3050-2025.1.ncu-rep"))
	if err != nil {
		t.Fatal(err)
	}
	csv, err := readPath(t, corpus(t, "darrenlu-rtx3050-2025.1.import-2025.3.1.raw.csv"))
	if err != nil {
		t.Fatal(err)
	}
	equal, extra := compareWithNcu(t, rep, csv)
	if equal != 511 || extra != 8 {
		t.Errorf("%d values equal, want 511; %d that ncu does not print, want 8", equal, extra)
	}
	t.Logf("%d of 511 values equal", equal)
}

// compareWithNcu compares a report with ncu's raw page of it in base units, and
// returns how many values are equal and how many the page does not have.
func compareWithNcu(t *testing.T, rep, csv *Report) (equal, extra int) {
	t.Helper()
	if len(rep.Launches) != len(csv.Launches) {
		t.Fatalf("%d launches, ncu prints %d", len(rep.Launches), len(csv.Launches))
	}
	for i, l := range rep.Launches {
		p := csv.Launches[i]
		if l.Kernel != p.Kernel || l.Key != p.Key || l.Grid != p.Grid || l.Block != p.Block || l.CC != p.CC || l.ID != p.ID ||
			l.Process != p.Process || l.Device != p.Device || l.Context != p.Context || l.Stream != p.Stream {
			t.Errorf("%+v\nncu prints %+v", l, p)
		}
		for _, name := range p.Names() {
			have, err := l.Metric(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := p.Metric(name)
			if err != nil {
				t.Fatal(err)
			}
			if have.Unit != "" && have.Unit != want.Unit {
				t.Errorf("%s: unit %q, ncu prints %q", name, have.Unit, want.Unit)
			}
			if have.Kind != want.Kind || have.Text != want.Text || math.Abs(have.Number-want.Number) > 0.005+1e-12*math.Abs(want.Number) {
				t.Errorf("%s = %+v, ncu prints %+v", name, have, want)
				continue
			}
			equal++
		}
		extra += len(l.Names()) - len(p.Names())
	}
	return equal, extra
}

// A report keeps no more of a launch than its metrics.
func TestReportSourcesAreSkipped(t *testing.T) {
	big := blockOf(nil, [][]byte{make([]byte, 32<<20)}, nil)
	b := append(container(reportVersion, big), madeUpReport()[4+4+2:]...)
	r := &countingReader{r: bytes.NewReader(b)}
	if _, err := ReadReport(r, int64(len(b)), "t"); err != nil {
		t.Fatal(err)
	}
	if r.n > 1<<20 {
		t.Errorf("%d bytes read of a report whose launches have 2 KB", r.n)
	}
}

type countingReader struct {
	r io.ReaderAt
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	c.n += int64(len(p))
	return c.r.ReadAt(p, off)
}

func TestReportIsNoCSV(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(madeUpReport()); err != nil {
		t.Fatal(err)
	}
	if _, err := readPath(t, f.Name()); err == nil || !strings.Contains(err.Error(), ".ncu-rep") {
		t.Errorf("%v", err)
	}
}

// ncu writes some metrics of a launch once for each pass. The last value holds,
// and instances go with the value that they were written with.
func TestReportRepeatedMetric(t *testing.T) {
	strs := message{}.bytes(4, message{}.text(1, "a"))
	figure := func(v, instances uint64) message {
		m := message{}.num(1, 0).bytes(2, message{}.num(5, v))
		for i := range instances {
			m = m.bytes(3, message{}.bytes(2, message{}.num(5, i)))
		}
		return m
	}
	for name, c := range map[string]struct {
		entries   []message
		value     float64
		instances int
	}{
		"equal":                  {[]message{figure(7, 0), figure(7, 0)}, 7, 0},
		"equal, one with parts":  {[]message{figure(7, 3), figure(7, 0)}, 7, 3},
		"equal, both with parts": {[]message{figure(7, 3), figure(7, 2)}, 7, 2},
		"two values":             {[]message{figure(7, 0), figure(8, 0)}, 8, 0},
		"parts of another value": {[]message{figure(7, 3), figure(8, 0)}, 8, 0},
		"three values":           {[]message{figure(9, 1), figure(7, 3), figure(8, 2)}, 8, 2},
	} {
		m := message{}.text(7, "k")
		for _, e := range c.entries {
			m = m.bytes(13, e)
		}
		rep, err := readBytes(container(reportVersion, blockOf(strs, nil, [][]byte{m})))
		if err != nil {
			t.Fatal(err)
		}
		v, err := rep.Launches[0].Metric("a")
		in, err2 := rep.Launches[0].Instances("a")
		if err != nil || err2 != nil || v.Number != c.value || len(in) != c.instances {
			t.Errorf("%s: %+v with %d instances, %v %v", name, v, len(in), err, err2)
		}
	}
}

// The names of metrics can come after the launches that use them.
func TestReportGrowingNames(t *testing.T) {
	table := func(names ...string) message {
		var m message
		for _, n := range names {
			m = m.text(1, n)
		}
		return message{}.bytes(4, m)
	}
	launch := func(ids ...uint64) [][]byte {
		m := message{}.text(7, "k")
		for _, id := range ids {
			m = m.bytes(13, message{}.num(1, id).bytes(2, message{}.num(5, 100+id)))
		}
		return [][]byte{m}
	}
	read := func(blocks ...[]byte) string {
		rep, err := readBytes(container(reportVersion, blocks...))
		if err != nil {
			return err.Error()
		}
		s := ""
		for _, l := range rep.Launches {
			for _, n := range l.Names() {
				v, err := l.Metric(n)
				s += fmt.Sprintf("%s=%v%v ", n, v.Number, err)
			}
		}
		return s
	}
	for name, c := range map[string]struct{ got, want string }{
		"one table":            {read(blockOf(table("a", "b"), nil, launch(0, 1)), blockOf(nil, nil, launch(1))), "a=100<nil> b=101<nil> b=101<nil> "},
		"new names only":       {read(blockOf(table("a"), nil, launch(0)), blockOf(table("b"), nil, launch(0, 1))), "a=100<nil> a=100<nil> b=101<nil> "},
		"repeated and grown":   {read(blockOf(table("a"), nil, launch(0)), blockOf(table("a", "b"), nil, launch(0, 1))), "a=100<nil> a=100<nil> b=101<nil> "},
		"after its use":        {read(blockOf(table("a"), nil, launch(0, 1)), blockOf(table("b"), nil, nil)), "a=100<nil> b=101<nil> "},
		"after its use, grown": {read(blockOf(nil, nil, launch(1)), blockOf(table("a", "b"), nil, launch(0))), "b=101<nil> a=100<nil> "},
		"another table":        {read(blockOf(table("a", "b"), nil, launch(0, 1)), blockOf(table("b", "a"), nil, launch(0, 1))), "a=100<nil> b=101<nil> a=101<nil> b=100<nil> "},
		"never":                {read(blockOf(table("a"), nil, launch(0, 1))), "t.ncu-rep: the report is damaged before byte 48: metric 1 has no name in the table of 1"},
		"not in its own table": {read(blockOf(table("a"), nil, launch(1)), blockOf(table("b", "a"), nil, launch(1))), "t.ncu-rep: the report is damaged before byte 73: metric 1 has no name in the table of 1"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

// A kernel of Triton has an empty demangled name.
func TestReportNames(t *testing.T) {
	for want, m := range map[string]message{
		"demangled":    message{}.text(5, "mangled").text(6, "function").text(7, "demangled"),
		"function":     message{}.text(7, "").text(6, "function").text(5, "mangled"),
		"triton_poi_0": message{}.text(5, "triton_poi_0").text(6, "").text(7, ""),
	} {
		rep, err := readBytes(container(reportVersion, blockOf(nil, nil, [][]byte{m})))
		if err != nil || rep.Launches[0].Kernel != want || rep.Launches[0].Key != want {
			t.Errorf("%s: %+v, %v", want, rep, err)
		}
	}
}
