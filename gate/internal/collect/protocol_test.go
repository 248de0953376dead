package collect

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/strictjson"
	"github.com/kernelgate/gate/kernels/harness"
)

const (
	configLine  = `{"config":{"protocol":"` + harness.Protocol + `","mode":"check","seed":18446744073709551615,"device":{"name":"NVIDIA H200"}}}`
	beginLine   = `{"begin":{"kernel":"op/k","case":"small","class":"normal"}}`
	timedLine   = `{"begin":{"kernel":"op/k","case":"small","regime":"warm"}}`
	checkLine   = `{"check":{"kernel":"op/k","case":"small","class":"normal","elements":8,"relative_error":0.0001,"max_abs_error":0.001,"max_abs_index":3,"nonfinite":0,"unwritten":0,"guard":"ok","inputs_changed":false,"repeatable":true,"status":"pass"}}`
	stateJSON   = `{"sm_mhz":1980,"mem_mhz":3201,"temperature_c":31,"power_w":121.5,"throttle":[],"throttle_bits":0}`
	timeLine    = `{"time":{"kernel":"op/k","case":"small","regime":"warm","calls":8,"kernel_nodes":16,"sets":3,"batches_ns":[101.5,99],"before":` + stateJSON + `,"after":` + stateJSON + `}}`
	profileLine = `{"profile":{"kernel":"op/k","case":"small","calls":1,"kernel_nodes":1,"launches":[null]}}`
	errorLine   = `{"error":{"kernel":"op/k","case":"small","class":"normal","kind":"cuda","code":700,"name":"cudaErrorIllegalAddress","message":"an illegal memory access was encountered"}}`
)

// endLine counts the records before it.
func endLine(lines ...string) string {
	count := func(kind string) int {
		n := 0
		for _, l := range lines {
			if strings.HasPrefix(l, `{"`+kind+`":`) {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf(`{"end":{"begin":%d,"check":%d,"time":%d,"profile":%d,"absent":%d,"error":%d}}`, count("begin"), count("check"), count("time"), count("profile"), count("absent"), count("error"))
}

// whole is a stream of these records between config and end.
func whole(lines ...string) string {
	all := append([]string{configLine}, lines...)
	return strings.Join(append(all, endLine(lines...)), "\n") + "\n"
}

func TestParseStream(t *testing.T) {
	s := parseStream([]byte(whole(beginLine, checkLine, beginLine, timeLine, profileLine, errorLine)))
	if s.garbled != nil || !s.ended {
		t.Fatalf("%v, ended: %v", s.garbled, s.ended)
	}
	if s.config.Protocol != harness.Protocol || s.config.Seed != "18446744073709551615" || s.last == nil || s.last.Class != "normal" {
		t.Errorf("config %+v, last %+v", s.config, s.last)
	}
	if len(s.checks) != 1 || len(s.times) != 1 || len(s.profile) != 1 || len(s.errors) != 1 {
		t.Fatalf("%d checks, %d times, %d profiles, %d errors", len(s.checks), len(s.times), len(s.profile), len(s.errors))
	}
	if c := s.checks[0]; *c.RelativeError != 1e-4 || c.Elements != 8 || c.Guard != "ok" {
		t.Errorf("check %+v", c)
	}
	sample := s.times[0].sample()
	if sample.CacheState != "warm" || sample.Calls != 8 || len(sample.BatchesNS) != 2 || *sample.Before.SMMHz != 1980 || sample.After.Throttle == nil {
		t.Errorf("sample %+v", sample)
	}
	if raw := string(s.raw("op/k", "small")); strings.Count(raw, "\n") != 8 {
		t.Errorf("the unit's lines:\n%s", raw)
	}
	if raw := string(s.raw("op/other", "small")); raw != configLine+"\n"+endLine(beginLine, checkLine, beginLine, timeLine, profileLine, errorLine)+"\n" {
		t.Errorf("another unit's lines:\n%s", raw)
	}
}

func TestParseStreamRefuses(t *testing.T) {
	swapped := strings.Replace(checkLine, `"elements"`, `"elemnts"`, 1)
	for _, c := range []struct{ name, text, want string }{
		{"no config", beginLine + "\n" + endLine(beginLine) + "\n", "line 1: the config record comes first and once"},
		{"config twice", configLine + "\n" + configLine + "\n", "line 2: the config record comes first and once"},
		{"another protocol", strings.Replace(whole(), harness.Protocol, "gate-harness/0", 1), `line 1: the protocol is "gate-harness/0", this gate speaks "` + harness.Protocol + `"`},
		{"counts too few", configLine + "\n" + checkLine + "\n" + endLine() + "\n", "line 3: the end record counts {Peaks:0 Begin:0 Check:0 Time:0 Profile:0 Absent:0 Error:0}, {Peaks:0 Begin:0 Check:1 Time:0 Profile:0 Absent:0 Error:0} arrived"},
		{"a record is lost", configLine + "\n" + beginLine + "\n" + endLine(beginLine, checkLine) + "\n", "line 3: the end record counts {Peaks:0 Begin:1 Check:1 Time:0 Profile:0 Absent:0 Error:0}, {Peaks:0 Begin:1 Check:0 Time:0 Profile:0 Absent:0 Error:0} arrived"},
		{"data after the end", whole() + beginLine + "\n", "line 3: data follows the end record"},
		{"an empty line after the end", whole() + "\n", "line 3: data follows the end record"},
		{"end twice", whole() + endLine() + "\n", "line 3: data follows the end record"},
		{"a class without its check", whole(beginLine, checkLine, strings.Replace(beginLine, "normal", "large", 1)), `line 5: no result came of op/k on small, inputs "large"`},
		{"a class twice", whole(checkLine, checkLine), `line 3: a second result of op/k on small, inputs "normal"`},
		{"a time twice", whole(timeLine, timeLine), "line 3: a second result of op/k on small, warm"},
		{"a time that was begun", whole(timedLine), "line 3: no result came of op/k on small, warm"},
		{"a class that another case has", whole(checkLine, strings.Replace(checkLine, "normal", "large", 1), strings.Replace(checkLine, "small", "long", 1)), `line 5: op/k on long, inputs "large" was left out`},
		{"a state that another kernel has", whole(timeLine, strings.Replace(timeLine, "warm", "cold", 1), strings.Replace(timeLine, "op/k", "op/x", 1)), "line 5: op/x on small, cold was left out"},
		{"noise", configLine + "\nhello\n" + endLine() + "\n", "line 2: invalid character 'h' looking for beginning of value"},
		{"noise at the end", configLine + "\nhello\n", "line 2: invalid character 'h' looking for beginning of value"},
		{"an empty line", configLine + "\n\n" + endLine() + "\n", "line 2: the JSON is cut short"},
		{"unknown record", configLine + "\n{\"more\":{}}\n", `line 2: json: unknown field "more"`},
		{"unknown field", whole(swapped), `line 2: json: unknown field "elemnts"`},
		{"two messages in one", configLine + "\n" + `{"begin":{},"profile":{}}` + "\n", "line 2: a record holds 2 messages, not one"},
		{"end with another", configLine + "\n" + `{"profile":{},"end":{"begin":0,"check":0,"time":0,"profile":1,"error":0}}` + "\n", "line 2: a record holds 2 messages, not one"},
		{"no message", configLine + "\n{}\n", "line 2: a record holds 0 messages, not one"},
		{"null message", configLine + "\n{\"begin\":null}\n", "line 2: a record holds 0 messages, not one"},
		{"two on one line", configLine + "\n" + beginLine + beginLine + "\n", "line 2: data follows the JSON"},
		{"key twice", configLine + "\n" + `{"begin":{"kernel":"a","kernel":"b"}}` + "\n", `line 2: the key "kernel" appears twice in one object`},
		{"NaN", strings.Replace(whole(timeLine), "101.5", "NaN", 1), "line 2: invalid character 'N' looking for beginning of value"},
		{"a number too large", strings.Replace(whole(timeLine), "101.5", "1e999", 1), "line 2: json: cannot unmarshal number 1e999 into Go struct field timeMsg.time.batches_ns of type float64"},
		{"not JSON at all", "Segmentation fault\n", "line 1: invalid character 'S' looking for beginning of value"},
		{"a long line", configLine + "\n" + strings.Repeat("x", maxLine+1) + "\n", "bufio.Scanner: token too long"},
		{"a long line after the end", whole() + strings.Repeat("x", maxLine+1) + "\n", "bufio.Scanner: token too long"},
	} {
		s := parseStream([]byte(c.text))
		err := s.garbled
		if err == nil || !strings.HasPrefix(err.Error(), "harness output") || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if s.ended {
			t.Errorf("%s: an error comes with an ended stream", c.name)
		}
	}
}

// TestCutStreamHasNotEnded cuts a stream at every byte.
func TestCutStreamHasNotEnded(t *testing.T) {
	text := whole(beginLine, checkLine, beginLine, timeLine)
	full := len(text) - 1 // without the last line break it is whole
	for n := range full {
		s := parseStream([]byte(text[:n]))
		if s.ended {
			t.Fatalf("cut at byte %d of %d, it has ended", n, len(text))
		}
		if len(s.checks) > strings.Count(text[:n], `{"check":`) || len(s.times) > strings.Count(text[:n], `{"time":`) {
			t.Fatalf("cut at byte %d, it holds more than was sent", n)
		}
	}
	if s := parseStream([]byte(text[:full])); s.garbled != nil || !s.ended {
		t.Errorf("whole: %v, ended: %v", s.garbled, s.ended)
	}
	s := parseStream([]byte(strings.Join([]string{configLine, beginLine, checkLine[:40]}, "\n")))
	if s.garbled != nil || s.ended || s.last == nil || len(s.checks) != 0 {
		t.Errorf("cut within a record: %+v", s)
	}
}

func TestValidTimes(t *testing.T) {
	fine := timeMsg{Calls: 8, KernelNodes: 16, BatchesNS: []float64{1, 2}}
	if err := fine.valid(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*timeMsg)
		want   string
	}{
		{func(m *timeMsg) { m.KernelNodes = 0 }, "0 kernel nodes for 8 calls: not every call was captured"},
		{func(m *timeMsg) { m.KernelNodes = 7 }, "7 kernel nodes for 8 calls: not every call was captured"},
		{func(m *timeMsg) { m.KernelNodes = 12 }, "12 kernel nodes for 8 calls: not every call was captured"},
		{func(m *timeMsg) { m.Calls = 0 }, "16 kernel nodes for 0 calls: not every call was captured"},
		{func(m *timeMsg) { m.Calls = -8 }, "16 kernel nodes for -8 calls: not every call was captured"},
		{func(m *timeMsg) { m.BatchesNS = nil }, "0 batches are too few"},
		{func(m *timeMsg) { m.BatchesNS = []float64{1} }, "1 batches are too few"},
		{func(m *timeMsg) { m.BatchesNS = []float64{1, 0} }, "a batch of 0 ns is not a time"},
		{func(m *timeMsg) { m.BatchesNS = []float64{1, -1} }, "a batch of -1 ns is not a time"},
		{func(m *timeMsg) { m.BatchesNS = []float64{1, 2e12} }, "a batch of 2e+12 ns is not a time"},
	} {
		m := fine
		c.change(&m)
		if err := m.valid(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// FuzzParseStream holds: a stream that has ended came without an error, its
// last line is the end record, whose counts are those of what is returned; and
// without that line it has not ended.
func FuzzParseStream(f *testing.F) {
	f.Add([]byte(whole()))
	f.Add([]byte(whole(beginLine, checkLine, beginLine, timeLine, profileLine, errorLine)))
	f.Add([]byte(configLine + "\n" + beginLine + "\n" + checkLine[:50]))
	f.Add([]byte(whole(beginLine) + "x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := parseStream(data)
		if !s.ended {
			return
		}
		if s.garbled != nil {
			t.Fatalf("it has ended, with an error: %v", s.garbled)
		}
		if s.config == nil {
			t.Fatal("it has ended and never begun")
		}
		lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		var m message
		if err := strictjson.Decode(bytes.TrimSuffix(lines[len(lines)-1], []byte("\r")), maxLine, &m); err != nil || m.End == nil {
			t.Fatalf("the last line is %q", lines[len(lines)-1])
		}
		if m.End.Check != len(s.checks) || m.End.Time != len(s.times) || m.End.Profile != len(s.profile) || m.End.Error != len(s.errors) || len(s.lines) != len(lines) {
			t.Fatalf("counts %+v of %d lines", m.End, len(lines))
		}
		if cut := parseStream(bytes.Join(lines[:len(lines)-1], []byte("\n"))); cut.ended {
			t.Fatal("without its end it has ended")
		}
	})
}
