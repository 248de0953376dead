package ptxas

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const usageBlock = `
Fatbin elf code:
================
arch = sm_90

Resource usage:
 Common:
  GLOBAL:0
 Function k:
  REG:48 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:12
`

// utf16Text encodes a text as PowerShell's redirection does, with or without
// the mark at the beginning.
func utf16Text(s string, mark, bigEndian bool) string {
	units := utf16.Encode([]rune(s))
	if mark {
		units = append([]uint16{0xFEFF}, units...)
	}
	var b strings.Builder
	for _, u := range units {
		low, high := byte(u), byte(u>>8)
		if bigEndian {
			low, high = high, low
		}
		b.WriteByte(low)
		b.WriteByte(high)
	}
	return b.String()
}

// parsers are the two functions that read text, without their results.
var parsers = map[string]func(text string) error{
	block: func(text string) error {
		_, err := Parse(strings.NewReader(text), "f")
		return err
	},
	usageBlock: func(text string) error {
		_, err := ParseResourceUsage(strings.NewReader(text), "f")
		return err
	},
}

func TestUTF16(t *testing.T) {
	for text, parse := range parsers {
		for _, mark := range []bool{true, false} {
			for _, bigEndian := range []bool{true, false} {
				err := parse(utf16Text(strings.TrimLeft(text, "\n"), mark, bigEndian))
				var syntax *SyntaxError
				if !errors.As(err, &syntax) || syntax.Msg != "text is UTF-16" || syntax.Hint == "" || syntax.Line != 1 {
					t.Errorf("mark %v, big-endian %v: %v", mark, bigEndian, err)
				}
			}
		}
	}
}

// TestByteOrderMark: the mark that some Windows programs put before UTF-8 hides
// no first line.
func TestByteOrderMark(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	usage, err := ParseResourceUsage(strings.NewReader(mark+usageBlock[strings.Index(usageBlock, "arch"):]), "f")
	if err != nil || usage.Functions[0].Arch != "sm_90" {
		t.Errorf("got %+v, %v", usage, err)
	}
	log := parseString(t, mark+"info    : Function properties for 'k':\ninfo    : used 8 registers, 0 stack\n"+block)
	if len(log.Entries) != 2 {
		t.Errorf("got %+v", log.Entries)
	}
}

// TestOddText: what no tool prints is an error of one readable sentence, or is
// read as the name that it is.
func TestOddText(t *testing.T) {
	odd := map[string]func(s string) string{
		"empty":             func(string) string { return "" },
		"blank":             func(string) string { return " \r\n\t\n\n" },
		"NUL bytes only":    func(string) string { return strings.Repeat("\x00", 1<<16) },
		"NUL in each line":  func(s string) string { return strings.ReplaceAll(s, "\n", "\x00\n") },
		"carriage returns":  func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"one line of 10 MB": func(s string) string { return strings.Repeat(strings.ReplaceAll(s, "\n", " "), 10<<20/len(s)) },
		"overflow":          func(s string) string { return strings.ReplaceAll(s, "4", strings.Repeat("9", 30)) },
		"errors only": func(string) string {
			return "ptxas error   : \x1b[31mno\nptxas fatal   : Ptx assembly aborted due to errors\n"
		},
	}
	for name, prefix := range map[string]string{"negative": "-", "fraction": "1.", "thousands": "1,", "hexadecimal": "0x", "signed": "+"} {
		odd["frame "+name] = func(s string) string {
			return strings.NewReplacer("16 b", prefix+"16 b", "STACK:", "STACK:"+prefix).Replace(s)
		}
		odd["registers "+name] = func(s string) string {
			return strings.NewReplacer("40 r", prefix+"40 r", "REG:", "REG:"+prefix).Replace(s)
		}
	}
	for _, name := range []string{"\x1b[2J\x1b]0;k\a", strings.Repeat("é", 60) + "\xff", strings.Repeat("k", maxName+1)} {
		odd[fmt.Sprintf("name %.20q", name)] = func(s string) string { // its figures are missing
			return strings.ReplaceAll(strings.ReplaceAll(s, "k", name), "figures", "") + "arch = x\n" + entryLine + entryLine
		}
	}
	for name, change := range odd {
		for text, parse := range parsers {
			err := parse(change(text))
			if err == nil {
				t.Errorf("%s: no error for %.300q", name, change(text))
			} else if s := err.Error(); !strings.HasPrefix(s, "f:") || len(s) > 500 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("%s: error %q", name, s)
			}
		}
	}
}

// TestResourceUsageTruncated: a text cut off anywhere gives an error or
// functions that the whole text has, where nothing that is known differs.
func TestResourceUsageTruncated(t *testing.T) {
	for _, path := range recordings(t, "testdata") {
		if !strings.HasSuffix(path, ".resusage.txt") {
			continue
		}
		checkUsageTruncated(t, readText(t, path))
	}
	checkUsageTruncated(t, usageBlock)
}

func checkUsageTruncated(t *testing.T, text string) {
	t.Helper()
	whole, err := ParseResourceUsage(strings.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) {
		usage, err := ParseResourceUsage(strings.NewReader(text[:cut]), "f")
		if err != nil {
			continue
		}
		for i := range usage.Functions {
			got, want := usage.Functions[i], whole.Functions[i]
			if !got.Samplers.Known {
				got.Samplers = want.Samplers
			}
			if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
				t.Errorf("cut at byte %d:\n%s, want\n%s", cut, g, w)
			}
		}
	}
}

// TestLinkerTarget: the architecture stands on both lines of a linker's entry.
func TestLinkerTarget(t *testing.T) {
	const properties = "nvlink info    : Function properties for 'k': (target: sm_80)\n"
	const used = "nvlink info    : used 8 registers, 0 stack, 0 bytes smem, 0 bytes lmem"
	for _, c := range []struct{ name, text, arch string }{
		{"on both", properties + used + " (target: sm_80)\n", "sm_80"},
		{"cut off behind the figures", properties + used, "sm_80"},
		{"cut off in the target", properties + used + " (target: sm_8", "sm_80"},
	} {
		if e := parseString(t, c.text).Entries[0]; e.Arch != c.arch || (e.LocalBytes.Known && e.LocalBytes.N != 0) {
			t.Errorf("%s: got %+v", c.name, e)
		}
	}
	_, err := Parse(strings.NewReader(properties+used+" (target: sm_90)\n"), "log")
	if err == nil || !strings.Contains(err.Error(), "register use for sm_90, but the properties of k (line 1) are for sm_80") {
		t.Errorf("two targets: %v", err)
	}
}

// TestSectionArch: an architecture holds for its own section only.
func TestSectionArch(t *testing.T) {
	bare := usageBlock[strings.Index(usageBlock, "Resource usage:"):]
	for _, text := range []string{usageBlock + bare, usageBlock + "Fatbin elf code:\n" + bare} {
		usage, err := ParseResourceUsage(strings.NewReader(text), "f")
		if err != nil || usage.Functions[0].Arch != "sm_90" || usage.Functions[1].Arch != "" {
			t.Errorf("got %+v, %v", usage, err)
		}
	}
}

// TestStackField: ptxas prints no "stack"; if it did, the figure would be one
// that the package does not know.
func TestStackField(t *testing.T) {
	e := parseString(t, entryLine+"ptxas info    : Used 4 registers, 8 stack\n").Entries[0]
	if e.CumulativeStackBytes.Known || len(e.Unknown) != 1 {
		t.Errorf("got %+v", e)
	}
}

// TestArchitectures: their number is bounded, because each entry looks through
// those of its key.
func TestArchitectures(t *testing.T) {
	var log, usage strings.Builder
	for i := range maxArchs + 1 {
		fmt.Fprintf(&log, "ptxas info    : Compiling entry function 'k' for 'sm_%d'\nptxas info    : Used 4 registers\n", i+100)
		fmt.Fprintf(&usage, "arch = sm_%d\nResource usage:\nFunction k:\nREG:1\n", i+100)
	}
	_, err := Parse(strings.NewReader(log.String()), "f")
	_, err2 := ParseResourceUsage(strings.NewReader(usage.String()), "f")
	for _, err := range []error{err, err2} {
		if err == nil || !strings.Contains(err.Error(), "more than 256 architectures") {
			t.Errorf("got %v", err)
		}
	}
}

// TestKeptText: names, messages and unknown fields count towards what is kept.
func TestKeptText(t *testing.T) {
	const usage = "ptxas info    : Used 4 registers, 4 bytes xmem"
	for _, lines := range [][]string{
		{"ptxas info    : Function properties for kernel"},
		{entryLine[:len(entryLine)-1], usage},
	} {
		p := newParser("f")
		p.text = maxText - 5
		if err := feed(p.parseLine, lines); err == nil || !strings.Contains(err.Error(), tooMuchText) {
			t.Errorf("%q: %v", lines, err)
		}
	}
	p := newParser("f")
	p.text = maxText - 5
	r := &resourceParser{parser: p}
	if err := feed(r.parseLine, []string{"Resource usage:", "Function k:", "REG:1 TENSOR:7"}); err != nil || p.text != len("k")+len("TENSOR:7") {
		t.Errorf("cuobjdump: %d bytes, %v", p.text, err)
	}
	c := newCollector(p)
	c.text = maxText - 5
	for name, err := range map[string]error{
		"message":       c.add(Record{Diagnostic: &Diagnostic{Text: "Overriding"}}),
		"entry":         c.add(Record{Entry: &Entry{Name: "kernel", Key: "kernel"}}),
		"unknown field": c.add(Record{Entry: &Entry{Name: "k", Key: "k", Unknown: []string{"4 bytes xmem"}}}),
		"function":      c.add(Record{Function: &Function{Name: "function", Key: "function"}}),
	} {
		if err == nil || !strings.Contains(err.Error(), tooMuchText) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func feed(parse func(line []byte, torn bool) error, lines []string) error {
	for _, line := range lines {
		if err := parse([]byte(line), false); err != nil {
			return err
		}
	}
	return nil
}

// TestKeyOfNestedNames: a name that is nested deeper than any compiler does has
// a key, too, which is its own key.
func TestKeyOfNestedNames(t *testing.T) {
	file := "f"
	for range 2000 {
		file = fmt.Sprintf("%d_%s_", len(file), file)
		if len(file) > maxName {
			break
		}
		name := fmt.Sprintf("__nv_static_%d_%s_Z1k", len(file)+1, "_"+file)
		key := Key(name)
		if Key(key) != key || len(key) > len(name) {
			t.Fatalf("Key(%.200q) = %.200q", name, key)
		}
	}
}
