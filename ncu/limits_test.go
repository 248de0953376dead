package ncu

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The reader's buffer grows with the longest line, not with the file.
func TestConstantMemory(t *testing.T) {
	f, err := os.Open("testdata/h200-2025.3.1/metrics.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	noise := io.LimitReader(&endless{text: "program output without any table in it\n"}, 64<<20)
	rd := NewReader(io.MultiReader(noise, f), "t.csv")
	n := 0
	for {
		_, err := rd.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 18 || len(rd.lines.buf) != bufSize {
		t.Errorf("%d launches, buffer of %d bytes", n, len(rd.lines.buf))
	}
}

// endless repeats a text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

func TestLineLimit(t *testing.T) {
	_, err := Read(io.LimitReader(&endless{text: "x"}, maxLine+10), "t.csv")
	var s *SyntaxError
	if !errors.As(err, &s) || !strings.Contains(s.Msg, "longer than 16 MiB") || s.Line != 1 {
		t.Errorf("%v", err)
	}
}

// Lines of one field are joined up to the limit of a line.
func TestJoinedLimit(t *testing.T) {
	half := strings.Repeat("x", maxLine/2)
	for n, refused := range map[int]bool{1: false, 2: true} {
		in := text(ruleHead, launch0+metric+`,`, launch0+`,"S","","","","R","OPT","`+strings.Repeat(half+"\n", n)+`","",""`)
		if _, err := Read(strings.NewReader(in), "t.csv"); (err != nil) != refused {
			t.Errorf("%d halves: %v", n, err)
		}
	}
}

// The text of one launch and the names of all metrics are bounded.
func TestLongLimits(t *testing.T) {
	wide := strings.Repeat("x", 1<<20)
	for name, row := range map[string]func(i int) string{
		"launch": func(i int) string { return launch0 + `,"S","` + strconv.Itoa(i) + `","","` + wide + `"` },
		"names": func(i int) string {
			return strings.Replace(launch0, `"0"`, `"`+strconv.Itoa(i)+`"`, 1) + `,"S","` + strconv.Itoa(i) + wide + `","","1"`
		},
	} {
		for n, refused := range map[int]bool{60: false, 65: true} {
			in := []string{longHead}
			for i := range n {
				in = append(in, row(i))
			}
			if _, err := Read(strings.NewReader(text(in...)), "t.csv"); (err != nil) != refused {
				t.Errorf("%s: %d MiB: %v", name, n, err)
			}
		}
	}
}

// A launch with few of the metrics that the table has finds all of them.
func TestSparseLaunch(t *testing.T) {
	in := []string{longHead}
	row := func(launch, metric int) string {
		return strings.Replace(launch0, `"0"`, `"`+strconv.Itoa(launch)+`"`, 1) + `,"` + commandLineName + `","m` + strconv.Itoa(metric) + `","","` + strconv.Itoa(metric) + `"`
	}
	for i := range 1000 {
		in = append(in, row(0, i))
	}
	sparse := []int{999, 0, 500, 1, 998}
	for _, i := range sparse {
		in = append(in, row(1, i))
	}
	rep, err := Read(strings.NewReader(text(append(in, row(1, 500))...)), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	l := rep.Launches[1]
	if n := len(l.Names()); n != len(sparse) || l.values.(*longValues).places != nil {
		t.Errorf("%d names", n)
	}
	for i := range 1000 {
		v, err := l.Metric("m" + strconv.Itoa(i))
		if err != nil || (v.Kind == Number) != slices.Contains(sparse, i) || v.Number != 0 && v.Number != float64(i) {
			t.Errorf("m%d = %+v, %v", i, v, err)
		}
	}
	if _, err := Read(strings.NewReader(text(append(in, strings.Replace(row(1, 500), `"500"`, `"501"`, 1))...)), "t.csv"); err == nil {
		t.Error("two values of a sparse launch are accepted")
	}
}
