//go:build linux

package ncu_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/gate/ncu"
)

const benchSize = 200 << 20

// benchFile writes a raw page of benchSize bytes: the recording of an H200 with
// its 18 launches repeated under new ids.
func benchFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("ncu-bench-%d.csv", benchSize))
	if st, err := os.Stat(path); err == nil && st.Size() >= benchSize {
		return path
	}
	head, rows := rawPage(tb)
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	n, _ := w.Write(head)
	for id := 0; n < benchSize; id++ {
		row := rows[id%len(rows)]
		k, _ := fmt.Fprintf(w, "%q%s\n", strconv.Itoa(id), row[bytes.IndexByte(row, ','):])
		n += k
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// rawPage returns the recording up to its units row, and its launches.
func rawPage(tb testing.TB) (head []byte, rows [][]byte) {
	f, err := os.Open("testdata/h200-2025.3.1/raw-full.csv.gz")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	i := bytes.Index(all, []byte("\n\"0\","))
	return all[:i+1], bytes.Split(bytes.TrimSpace(all[i+1:]), []byte("\n"))
}

func benchOver(b *testing.B, read func(r io.Reader) (int, error)) {
	path := benchFile(b)
	b.SetBytes(benchSize)
	start, runs := cpuTime(b), 0
	for b.Loop() {
		runs++
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		n, err := read(f)
		if err != nil || n < 9000 {
			b.Fatalf("%d launches, %v", n, err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(benchSize/1e6*float64(runs)/(cpuTime(b)-start).Seconds(), "MB/cpu-s")
	b.ReportMetric(peakRSS(b), "peak-MiB")
}

// cpuTime returns the processor time of the process. Other work on the machine
// does not count in it.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS returns the largest resident size of the process so far, in MiB, or 0
// where the system does not say.
func peakRSS(tb testing.TB) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		tb.Fatal(err)
	}
	return kib / 1024
}

func stream(r io.Reader, each func(l *ncu.Launch) error) (int, error) {
	rd := ncu.NewReader(r, "bench.csv")
	for n := 0; ; n++ {
		l, err := rd.Next()
		if err == io.EOF {
			return n, nil
		}
		if err == nil {
			err = each(l)
		}
		if err != nil {
			return n, err
		}
	}
}

// BenchmarkReadReport reads a report of one launch with 519 metrics.
func BenchmarkReadReport(b *testing.B) {
	dir := os.Getenv("GATE_CORPUS")
	if dir == "" {
		b.Skip("GATE_CORPUS is not set")
	}
	in, err := os.ReadFile(filepath.Join(dir, "ncu", "darrenlu-rtx3050-2025.1.ncu-rep"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		rep, err := ncu.ReadReport(bytes.NewReader(in), int64(len(in)), "bench")
		if err != nil || len(rep.Launches) != 1 {
			b.Fatal(err)
		}
	}
}

// BenchmarkMetricsPage reads the long form, one row for each metric.
func BenchmarkMetricsPage(b *testing.B) {
	all, err := os.ReadFile("testdata/h200-2025.3.1/metrics.csv")
	if err != nil {
		b.Fatal(err)
	}
	report := all[bytes.Index(all, []byte(`"ID",`)):]
	in := bytes.Repeat(report, (20<<20)/len(report))
	b.SetBytes(int64(len(in)))
	start, runs := cpuTime(b), 0
	for b.Loop() {
		runs++
		n, err := stream(bytes.NewReader(in), func(l *ncu.Launch) error {
			_, err := ncu.Derive("", l, "ncu.shared_bank_conflicts")
			return err
		})
		if err != nil || n < 10000 {
			b.Fatalf("%d launches, %v", n, err)
		}
	}
	b.ReportMetric(float64(len(in))/1e6*float64(runs)/(cpuTime(b)-start).Seconds(), "MB/cpu-s")
}

func BenchmarkRawPage(b *testing.B) {
	b.Run("launches", func(b *testing.B) {
		benchOver(b, func(r io.Reader) (int, error) {
			return stream(r, func(*ncu.Launch) error { return nil })
		})
	})
	b.Run("catalogue", func(b *testing.B) {
		names := ncu.Metrics()
		benchOver(b, func(r io.Reader) (int, error) {
			return stream(r, func(l *ncu.Launch) error {
				for _, m := range names {
					if _, err := ncu.Derive("", l, m.Name); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	b.Run("every-cell", func(b *testing.B) {
		benchOver(b, func(r io.Reader) (int, error) {
			var names []string
			return stream(r, func(l *ncu.Launch) error {
				if names == nil {
					names = l.Names()
				}
				for _, name := range names {
					if _, err := l.Metric(name); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	b.Run("encoding-csv", func(b *testing.B) {
		benchOver(b, func(r io.Reader) (int, error) {
			br := bufio.NewReaderSize(r, 1<<20)
			for { // encoding/csv cannot pass over the lines before the table
				if p, err := br.Peek(5); err != nil || string(p) == `"ID",` {
					break
				}
				if _, err := br.ReadString('\n'); err != nil {
					return 0, err
				}
			}
			c := csv.NewReader(br)
			c.ReuseRecord = true
			for n := 0; ; n++ {
				if _, err := c.Read(); err == io.EOF {
					return n, nil
				} else if err != nil {
					return n, err
				}
			}
		})
	})
}
