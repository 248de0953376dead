package identity

import (
	"bytes"
	"testing"
)

func BenchmarkCodeID(b *testing.B) {
	data := readRecorded(b, "same").cubin
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		codeID(b, data)
	}
}

// BenchmarkHostID reads an intermediate of the usual make: some 1.3 MB, nearly all of it from system headers.
func BenchmarkHostID(b *testing.B) {
	text := readRecorded(b, "same").host
	header := []byte("# 64 \"/system/x.h\" 3\n")
	for i := range 20000 {
		header = append(header, "# 68\nusing ::vfprintf; typedef unsigned long size_type;\n"...)
		if i%20 == 0 {
			header = append(header, "#if 0\n# 70\n{ return __shfl(x, y); }\n#endif\n"...)
		}
	}
	first, rest, _ := bytes.Cut(text, []byte("# 3 \"launch.h\""))
	benchmarkHostID(b, append(append(append(bytes.Clone(first), header...), "# 3 \"launch.h\""...), rest...))
}

// BenchmarkHostIDProject reads one that is the project's own all through.
func BenchmarkHostIDProject(b *testing.B) {
	text := readRecorded(b, "same").host
	start, end := bytes.Index(text, []byte("# 3 \"launch.h\"")), bytes.LastIndex(text, []byte("\n# 1 "))
	end = bytes.LastIndex(text[:end], []byte("# 1 \"kernel"))
	body := bytes.Repeat(text[start:end], 300)
	benchmarkHostID(b, append(append(bytes.Clone(text[:start]), body...), text[end:]...))
}

func benchmarkHostID(b *testing.B, text []byte) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := hostOf(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSourceHash(b *testing.B) {
	text := bytes.Repeat(readFile(b, "testdata/kernel.cu"), 500)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := SourceHash(bytes.NewReader(text), "kernel.cu"); err != nil {
			b.Fatal(err)
		}
	}
}
