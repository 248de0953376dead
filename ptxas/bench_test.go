package ptxas

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// benchmarkSize is what the benchmarks read: 100 MB, generated, never held in
// memory.
const benchmarkSize = 100 << 20

// A repeatReader yields copies of a text, each with its own number in place of
// "@@@@@@", until size bytes are out.
type repeatReader struct {
	text    []byte
	at      []int // offsets of the placeholders
	size, n int
	rest    []byte
}

func newRepeatReader(text string, size int) *repeatReader {
	r := &repeatReader{text: []byte(text), size: size}
	for i := 0; ; {
		j := strings.Index(text[i:], "@@@@@@")
		if j < 0 {
			return r
		}
		r.at = append(r.at, i+j)
		i += j + 6
	}
}

func (r *repeatReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.size <= 0 {
			return 0, io.EOF
		}
		number := fmt.Sprintf("%06d", r.n)
		for _, at := range r.at {
			copy(r.text[at:], number)
		}
		r.n++
		r.size -= len(r.text)
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// denseText is 13 kernels without a line of anything else; kernels differ in
// name from copy to copy.
func denseText(b testing.TB) string {
	text := texts(b)["kernels.sm_90.log"]
	if text == "" {
		b.Fatal("no recording")
	}
	return strings.NewReplacer("_Z9transpose", "_Z15transpose@@@@@@",
		"_Z6spills", "_Z12spills@@@@@@", "_Z11calls", "_Z17calls@@@@@@").Replace(text)
}

// templateText is the same with names as long as those of template libraries.
func templateText(b testing.TB) string {
	return strings.ReplaceAll(denseText(b), "@@@@@@", "@@@@@@"+strings.Repeat("NS0_5tupleIJNS0_1CILi128EEENS3_ILi64EEEEEE", 15))
}

// buildText is a build log in which one line in twenty is the compiler's.
func buildText(b testing.TB) string {
	var s strings.Builder
	for line := range strings.Lines(denseText(b)) {
		s.WriteString(line)
		for i := range 19 {
			fmt.Fprintf(&s, "[ %2d%%] Building CXX object src/module/CMakeFiles/module.dir/file%d.cpp.o -O3 -std=c++17 -fPIC -Iinclude\n", i, i)
		}
	}
	return s.String()
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{{"dense", denseText(b)}, {"templates", templateText(b)}, {"build", buildText(b)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(benchmarkSize)
			peak := watchHeap()
			entries := 0
			for b.Loop() {
				log, err := Parse(newRepeatReader(c.text, benchmarkSize), "log")
				if err != nil {
					b.Fatal(err)
				}
				entries = len(log.Entries)
			}
			b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
			b.ReportMetric(float64(entries), "entries")
		})
	}
}

// BenchmarkLines is the floor: the same text, only cut into lines.
func BenchmarkLines(b *testing.B) {
	text := denseText(b)
	b.SetBytes(benchmarkSize)
	for b.Loop() {
		lines := newLineReader(newRepeatReader(text, benchmarkSize))
		for {
			if _, err := lines.next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkParseResourceUsage(b *testing.B) {
	for _, path := range recordings(b, "testdata/cuda13.0") {
		if !strings.HasSuffix(path, "kernels.sm_90.resusage.txt") {
			continue
		}
		text := []byte(strings.ReplaceAll(readText(b, path), "transpose", "transpose@@@@@@"))
		b.SetBytes(benchmarkSize)
		for b.Loop() {
			if _, err := ParseResourceUsage(newRepeatReader(string(text), benchmarkSize), "usage"); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.Fatal("no recording")
}

// watchHeap samples the live heap until the returned function is called, which
// returns its peak.
func watchHeap() (peak func() uint64) {
	runtime.GC()
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-done:
				result <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(done); return <-result }
}

func BenchmarkKey(b *testing.B) {
	name := "_ZN41_INTERNAL_04cf063f_10_kernels_cu_5fca777a43_GLOBAL__N__04cf063f_10_kernels_cu_5fca777a12table_lookupEfi"
	b.SetBytes(int64(len(name)))
	for b.Loop() {
		if Key(name) == name {
			b.Fatal("not normalised")
		}
	}
}

func readText(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
