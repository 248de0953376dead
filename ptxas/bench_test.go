//go:build linux

package ptxas

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
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

// distinctText is the same with no name twice.
func distinctText(b testing.TB) string {
	return strings.ReplaceAll(strings.ReplaceAll(denseText(b), "@@@@@@", ""), "_Z", "_Z@@@@@@")
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

// benchTexts are what the benchmarks of logs read.
func benchTexts(b *testing.B) map[string]string {
	return map[string]string{"dense": denseText(b), "distinct": distinctText(b), "templates": templateText(b), "build": buildText(b)}
}

// measure runs a reader over generated texts and reports what it takes of the
// processor, which other work on the machine does not change much, and of
// memory. Read returns the number of records.
func measure(b *testing.B, text string, read func(r io.Reader) (int, error)) {
	b.SetBytes(benchmarkSize)
	peak := watchHeap()
	start, runs, records := cpuTime(b), 0, 0
	for b.Loop() {
		n, err := read(newRepeatReader(text, benchmarkSize))
		if err != nil {
			b.Fatal(err)
		}
		runs, records = runs+1, n
	}
	b.ReportMetric(benchmarkSize/1e6*float64(runs)/(cpuTime(b)-start).Seconds(), "MB/cpu-s")
	b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
	b.ReportMetric(float64(records), "records")
}

// cpuTime returns the processor time of the process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkReader(b *testing.B) {
	for name, text := range benchTexts(b) {
		b.Run(name, func(b *testing.B) {
			measure(b, text, func(r io.Reader) (int, error) {
				rd := NewReader(r, "log")
				for n := 0; ; n++ {
					if _, err := rd.Next(); err != nil {
						return n, dropEOF(err)
					}
				}
			})
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range benchTexts(b) {
		b.Run(name, func(b *testing.B) {
			measure(b, text, func(r io.Reader) (int, error) {
				log, err := Parse(r, "log")
				return len(log.Entries), err
			})
		})
	}
}

// BenchmarkLines is the floor: the same text, only cut into lines.
func BenchmarkLines(b *testing.B) {
	measure(b, denseText(b), func(r io.Reader) (int, error) {
		lines := newLineReader(r)
		for n := 0; ; n++ {
			if _, err := lines.next(); err != nil {
				return n, dropEOF(err)
			}
		}
	})
}

// usageText is cuobjdump's report on 13 functions.
func usageText(b *testing.B) string {
	text := readText(b, "testdata/cuda13.0/kernels.sm_90.resusage.txt")
	return strings.ReplaceAll(text, "transpose", "transpose@@@@@@")
}

func BenchmarkResourceReader(b *testing.B) {
	measure(b, usageText(b), func(r io.Reader) (int, error) {
		rd := NewResourceReader(r, "usage")
		for n := 0; ; n++ {
			if _, err := rd.Next(); err != nil {
				return n, dropEOF(err)
			}
		}
	})
}

func BenchmarkParseResourceUsage(b *testing.B) {
	measure(b, usageText(b), func(r io.Reader) (int, error) {
		usage, err := ParseResourceUsage(r, "usage")
		return len(usage.Functions), err
	})
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
