package ncu

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// Errors are one sentence with the place in front; hints stand apart.
func TestErrorText(t *testing.T) {
	for want, err := range map[string]error{
		"no idea":                               &SyntaxError{Msg: "no idea", Hint: "ask"},
		"f.csv: no idea":                        &SyntaxError{File: "f.csv", Msg: "no idea"},
		"f.csv:7: no idea":                      &SyntaxError{File: "f.csv", Line: 7, Msg: "no idea"},
		"ncu reported: A":                       &ToolError{Lines: []string{"A"}},
		"pipe":                                  &readError{errors.New("pipe")},
		"no profiled kernel":                    ErrNoTable,
		"f.csv:2: ncu reported: A (and 1 more)": &ToolError{File: "f.csv", Line: 2, Lines: []string{"A", "B"}},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
}

func TestWords(t *testing.T) {
	var got []string
	for _, k := range []Kind{Missing, Unavailable, Number, Text, 99} {
		got = append(got, k.String())
	}
	for _, d := range []Direction{Neither, Lower, Higher} {
		got = append(got, d.String())
	}
	for _, a := range []Aggregation{Mean, Sum, Max, Min} {
		got = append(got, a.String())
	}
	want := "missing unavailable number text invalid neither lower higher mean sum max min"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
}

func TestReaderMessages(t *testing.T) {
	rd := NewReader(strings.NewReader(text("==WARNING== slow", longHead, launch0+metric)), "t.csv")
	if _, err := rd.Next(); err != io.EOF && err != nil {
		t.Fatal(err)
	}
	if m := rd.Messages(); len(m) != 1 || m[0].Text != "slow" {
		t.Errorf("%+v", m)
	}
}

// What ncu says is kept up to a limit, and the names of files are not.
func TestMessageLimits(t *testing.T) {
	in := strings.Repeat("==WARNING== "+strings.Repeat("w", 2*maxMessage)+"\n", maxMessages+5) +
		text("==PROF== Report: /home/somebody/x.ncu-rep", longHead, launch0+metric)
	rep, err := Read(strings.NewReader(in), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Messages) != maxMessages || len(rep.Messages[0].Text) > maxMessage+len("…") {
		t.Errorf("%d messages, the first of %d bytes", len(rep.Messages), len(rep.Messages[0].Text))
	}
	rep, err = Read(strings.NewReader(text("==PROF== Report: /home/somebody/x.ncu-rep", longHead, launch0+metric)), "t.csv")
	if err != nil || rep.Messages[0].Text != "Report:" {
		t.Errorf("%+v, %v", rep, err)
	}
	_, err = Read(strings.NewReader(strings.Repeat("==ERROR== x\n", 100)), "t.csv")
	var e *ToolError
	if !errors.As(err, &e) || len(e.Lines) != maxToolLines {
		t.Errorf("%v", err)
	}
}

// Launches whose values have different units are not added up.
func TestUnitsOfLaunches(t *testing.T) {
	ls := recorded(t, [5]string{"1.00", "1.00", "1", "1", "1"}, [5]string{"1.00", "1.00", "1", "1", "1"})
	other := recorded(t, [5]string{"1.00", "1.00", "1", "1", "1"})
	other[0].values.(*rawRow).table.units[14] = baseUnit("Kbyte")
	v, err := Aggregate("", append(ls, other...), "ncu.raw.launch__registers_per_thread")
	if err != nil || v.Kind != Missing || !strings.Contains(v.Reason, `its unit is "byte", another launch has "register/thread"`) {
		t.Errorf("%+v, %v", v, err)
	}
}

// The compute capability of a launch without its own comes from the session.
func TestReportSessionCC(t *testing.T) {
	attribute := func(name string, v uint64) []byte { return message{}.text(1, name).bytes(2, message{}.num(5, v)) }
	device := message{}.num(1, 0).bytes(3, attribute("device__attribute_compute_capability_major", 12)).
		bytes(3, attribute("device__attribute_compute_capability_minor", 1))
	b := container(reportVersion, blockOf(nil, nil, [][]byte{message{}.text(6, "k")}), blockOf(message{}.bytes(3, message{}.bytes(6, device)), nil, nil))
	rep, err := readBytes(b)
	if err != nil || rep.Launches[0].CC != "12.1" || rep.Launches[0].Kernel != "k" {
		t.Errorf("%+v, %v", rep, err)
	}
	rep, err = readBytes(container(reportVersion, blockOf(nil, nil, [][]byte{message{}.text(7, "k")})))
	if err != nil || rep.Launches[0].CC != "" {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestReportFloats(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want Value
	}{
		{1.5, Value{Kind: Number, Number: 1.5}}, {math.NaN(), missing(ReasonNaN)}, {math.Inf(-1), missing(ReasonInfinite)},
	} {
		if got := reportFloat(c.in); got != c.want {
			t.Errorf("%v = %+v", c.in, got)
		}
	}
}

// A reader with little room gets the same text.
func TestUTF16Rooms(t *testing.T) {
	const want = "aä😀€z"
	for room := 1; room < 8; room++ {
		u := &utf16Reader{r: bufio.NewReader(strings.NewReader(string(utf16Bytes(want, binary.LittleEndian, true)))), low: 0, high: 1}
		var got []byte
		for {
			p := make([]byte, room)
			n, err := u.Read(p)
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != want {
			t.Errorf("room %d: %q", room, got)
		}
	}
}

// Powers of ten beyond what one rounding allows go the slow way.
func TestExactPower(t *testing.T) {
	for _, exp := range []int{-23, 23} {
		if n, ok := exactPower(1, exp); ok {
			t.Errorf("1e%d is %v", exp, n)
		}
	}
	if n, ok := fastNumber("1.5", -30); ok {
		t.Errorf("%v", n)
	}
	n, err := scaled("1.5", -30)
	if err != nil || n != 1.5e-30 {
		t.Errorf("%v, %v", n, err)
	}
}

// What was read before an error stands beside it.
func TestReadBeforeError(t *testing.T) {
	rep, err := Read(strings.NewReader(text("==WARNING== slow", longHead, launch0+metric, launch1+metric)+launch1[:20]), "t.csv")
	if err == nil || len(rep.Launches) != 1 || duration(t, rep.Launches[0]) != 1500 || len(rep.Messages) != 1 {
		t.Errorf("%+v, %v", rep, err)
	}
	rep, err = Read(strings.NewReader(text(longHead, launch0+metric, launch1+strings.Replace(metric, "1,500", "117.344", 1))), "t.csv")
	if err == nil || len(rep.Launches) != 1 {
		t.Errorf("a cell that cannot be read: %+v, %v", rep, err)
	}
	good := madeUpReport()
	rep, err = readBytes(good[:len(good)-1])
	if err == nil || len(rep.Launches) != 1 || rep.Launches[0].Kernel != "k(int)" || duration(t, rep.Launches[0]) != 1500 || rep.Launches[0].CC != "9.0" {
		t.Errorf("%+v, %v", rep, err)
	}
	names := message{}.bytes(4, message{}.text(1, "a"))
	launch := func(number uint64) []byte { return message{}.text(7, "k").bytes(13, message{}.num(1, number)) }
	rep, err = readBytes(container(reportVersion, blockOf(names, nil, [][]byte{launch(0), launch(1), launch(0)})))
	if err == nil || len(rep.Launches) != 1 {
		t.Errorf("a metric without a name: %+v, %v", rep, err)
	}
}
