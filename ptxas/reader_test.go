package ptxas

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

// stream reads a text record by record and keeps copies of what the Reader
// overwrites.
func stream(text string) (Log, error) {
	rd, log := NewReader(strings.NewReader(text), "f"), Log{}
	for {
		rec, err := rd.Next()
		switch {
		case err != nil:
			log.Units = rd.Units()
			return log, dropEOF(err)
		case rec.Entry != nil:
			log.Entries = append(log.Entries, *rec.Entry)
		case rec.Function != nil:
			log.Functions = append(log.Functions, *rec.Function)
		default:
			log.Notes = append(log.Notes, *rec.Diagnostic)
		}
	}
}

// checkStream: the records of a Reader are those of Parse, but for what needs a
// memory of earlier ones. It holds beside an error, too.
func checkStream(t *testing.T, text string, log *Log, err error) {
	t.Helper()
	got, err2 := stream(text)
	if (err == nil) != (err2 == nil) || (err != nil && err.Error() != err2.Error()) {
		t.Fatalf("the stream ends with %v, want %v", err2, err)
	}
	messages := 0
	for _, list := range [][]Diagnostic{log.Advisories, log.Warnings, log.Errors, log.Notes} {
		for _, d := range list {
			messages += d.Repeats
		}
	}
	if len(got.Entries) != len(log.Entries) || len(got.Functions) != len(log.Functions) || len(got.Notes) != messages || got.Units != log.Units {
		t.Fatalf("%d entries, %d functions, %d messages in %d units; want %d, %d, %d, %d", len(got.Entries), len(got.Functions), len(got.Notes), got.Units,
			len(log.Entries), len(log.Functions), messages, log.Units)
	}
	want := *log
	want.Entries = append([]Entry(nil), log.Entries...)
	for i := range want.Entries {
		want.Entries[i].Occurrence = 0
	}
	want.Advisories, want.Warnings, want.Errors, want.Notes, got.Notes = nil, nil, nil, nil, nil
	if a, b := render(&got), render(&want); a != b {
		t.Fatalf("streamed\n%s\nwant\n%s", a, b)
	}
}

// checkUsageStream: the functions of a ResourceReader are those of
// ParseResourceUsage, but for their number.
func checkUsageStream(t *testing.T, text string, usage *ResourceUsage, err error) {
	t.Helper()
	rd, got := NewResourceReader(strings.NewReader(text), "f"), &ResourceUsage{}
	for {
		f, err2 := rd.Next()
		if err2 != nil {
			if err2 = dropEOF(err2); (err == nil) != (err2 == nil) || (err != nil && err.Error() != err2.Error()) {
				t.Fatalf("the stream ends with %v, want %v", err2, err)
			}
			break
		}
		got.Functions = append(got.Functions, *f)
	}
	want := &ResourceUsage{Functions: append([]ResourceFunction(nil), usage.Functions...)}
	for i := range want.Functions {
		want.Functions[i].Occurrence = 0
	}
	if a, b := renderUsage(got), renderUsage(want); a != b {
		t.Fatalf("streamed\n%s\nwant\n%s", a, b)
	}
}

// TestReaderMemory: what a Reader keeps does not grow with the text.
func TestReaderMemory(t *testing.T) {
	unit := block + strings.Replace(block, "'k'", "'other'", 1)
	const link = "nvlink info    : 0 bytes gmem\n"
	const linked = "nvlink info    : Function properties for 'k':\nnvlink info    : used 8 registers, 0 stack\n"
	for name, text := range map[string]string{
		"units": strings.Repeat(strings.ReplaceAll(unit, propsLine+frameLine, ""), 20000), "a link": link + strings.Repeat(linked, 20000),
	} {
		rd, n := NewReader(strings.NewReader(text), "f"), 0
		for {
			rec, err := rd.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.Entry != nil {
				n++
			}
		}
		if n < 20000 || cap(rd.p.unit) > 64 || cap(rd.p.unitFuncs) > 64 || len(rd.p.archs) > 2 {
			t.Errorf("%s: %d entries, room for %d", name, n, cap(rd.p.unit))
		}
	}
}

// TestReadBeforeError: what was read before an error stands beside it.
func TestReadBeforeError(t *testing.T) {
	const advisory = "ptxas info    : (C7510) Potential Performance Loss: x in the function 'f'\n"
	callee := strings.Replace(propsLine, "for k", "for f", 1) + frameLine
	for _, c := range []struct {
		name, text string
		entries    string
		functions  string
		advisories int
	}{
		{"a build without -v", "nvcc -c x.cu\n" + advisory + advisory, "", "", 1},
		{"a failed build", advisory + "ptxas fatal   : Ptx assembly aborted due to errors\n", "", "", 1},
		{"mixed output", block + block + advisory + usedLine, "k k", "", 1},
		{"cut off in an entry", block + gmemLine + entryLine + propsLine + advisory, "k", "", 1},
		{"cut off after an entry of the unit", gmemLine + entryLine + usedLine + entryLine, "k", "", 0},
		{"a unit of functions", gmemLine + callee + propsLine, "", "f", 0},
		{"a library", gmemLine + callee, "", "f", 0},
		{"torn usage", block + gmemLine + entryLine + "ptxas info    : Used 4 regi\n", "k", "", 0},
		{"torn usage of a linker", block + "nvlink info    : Function properties for 'l':\nnvlink info    : used 8 regi\n", "k", "", 0},
	} {
		log, err := Parse(strings.NewReader(c.text), "f")
		var entries []string
		for _, e := range log.Entries {
			entries = append(entries, e.Name)
		}
		if err == nil || strings.Join(entries, " ") != c.entries || names(log.Functions) != c.functions || len(log.Advisories) != c.advisories {
			t.Errorf("%s: %+v, %v", c.name, log, err)
		}
		checkStream(t, c.text, log, err)
	}
	usage, err := ParseResourceUsage(strings.NewReader(usageBlock+" Function other:\n"), "f")
	if err == nil || len(usage.Functions) != 1 || usage.Functions[0].Occurrence != 1 {
		t.Errorf("%+v, %v", usage, err)
	}
}

func zipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, s); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestGzip: a compressed text is read as the text that it holds, whole or not
// at all.
func TestGzip(t *testing.T) {
	for name, text := range texts(t) {
		log, err := Parse(bytes.NewReader(zipped(text)), "f")
		if err != nil || render(log) != render(parseString(t, text)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	half := len(block) / 2
	two := append(zipped(block[:half]), zipped(block[half:])...)
	if log, err := Parse(bytes.NewReader(two), "f"); err != nil || len(log.Entries) != 1 {
		t.Errorf("two parts: %v", err)
	}
	if usage, err := ParseResourceUsage(bytes.NewReader(zipped(usageBlock)), "f"); err != nil || len(usage.Functions) != 1 {
		t.Errorf("resource usage: %v", err)
	}
	whole := zipped(strings.Repeat(block, 500))
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-7] ^= 1 // in the checksum
	for name, in := range map[string][]byte{"a damaged one": damaged, "a mark alone": []byte("\x1f\x8b"), "a wrong head": []byte("\x1f\x8bxxxxxxxxxxxx")} {
		checkDamaged(t, name, in)
	}
	for cut := 2; cut < len(whole); cut += 7 {
		checkDamaged(t, "cut off", whole[:cut])
	}
}

func checkDamaged(t *testing.T, name string, in []byte) {
	t.Helper()
	_, err := Parse(bytes.NewReader(in), "f")
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Msg != errGzip.msg || syntax.Line < 1 {
		t.Errorf("%s, %d bytes: %v", name, len(in), err)
	}
}
