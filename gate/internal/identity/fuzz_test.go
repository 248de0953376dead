package identity

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requireFormatError: the only way to refuse a file.
func requireFormatError(t *testing.T, err error) {
	t.Helper()
	var e *formatError
	if !errors.As(err, &e) || e.Msg == "" {
		t.Fatalf("error type is %T: %v", err, err)
	}
}

func seedNames(f *testing.F) []string {
	files, err := filepath.Glob("testdata/cases/*.cubin.gz")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".cubin.gz"))
	}
	return names
}

// FuzzReadCubin: what is read has an id, the same each time, and bytes after the file have no part in it.
func FuzzReadCubin(f *testing.F) {
	for _, name := range seedNames(f) {
		f.Add(readRecorded(f, name).cubin)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ReadCubin(data, "x.cubin", nil)
		if err != nil {
			requireFormatError(t, err)
			if c != nil {
				t.Fatal("a cubin with an error")
			}
			return
		}
		if again, id := codeID(t, append(slices.Clone(data), "tail"...)), c.ID(); again != id {
			t.Fatalf("id %s, with a tail %s", id, again)
		}
	})
}

// A place is where a token of the project ends, outside directives.
type place struct{ offset, line int }

// places cuts an intermediate as HostID does and returns where its project tokens end; not after a stray backslash,
// which would join what is put there.
func places(data []byte) []place {
	h := newHostHasher(data, nil, recordedSystem)
	var list []place
	for !h.closed && h.err == nil {
		if h.skip && h.lineStart {
			h.skipSystem()
		}
		switch k, text := h.next(); {
		case k == kindEnd:
			return nil
		case k == kindHash:
			h.readDirective()
		case !h.skip && string(text) != `\`:
			list = append(list, place{h.pos, h.line})
		}
	}
	return list
}

func insert(data []byte, at int, text string) []byte {
	return slices.Concat(data[:at], []byte(text), data[at:])
}

// FuzzHostID: a comment, white space or a moved line between two tokens leaves the id, one more token changes it.
func FuzzHostID(f *testing.F) {
	for _, name := range seedNames(f) {
		f.Add(readRecorded(f, name).host, uint16(len(name)))
	}
	for _, text := range []string{
		"f(\"k.cu\", 2);", "f(2, \"k.cu\");", "#if 0\n{ a }\n#endif\n;", "R\"x(\n)\" )x\" \"a\\\"\" 'b'", "#if 0\n#else\nx\n#endif\n",
		"a ++ + b # c", "# 1 \"/system/a.h\"\nint a;\n# 3 \"k.cu\"\nb", "typedef decltype(a) __T0;", "#define A \\\n b\nc", "1'000.5e+3f",
	} {
		f.Add([]byte(intermediate("k.cu", text)), uint16(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		id, err := hostOf(data)
		if err != nil {
			if id != "" {
				t.Fatal("an id with an error")
			}
			return
		}
		list := places(data)
		if len(list) == 0 || placed(data) {
			return
		}
		at := list[int(n)%len(list)]
		check := func(text string, equal bool) {
			t.Helper()
			got, err := hostOf(insert(data, at.offset, text))
			var refused *SourceError
			if errors.As(err, &refused) {
				return
			}
			if err != nil {
				t.Fatalf("with %q at %d: %v", text, at.offset, err)
			}
			if (got == id) != equal {
				t.Fatalf("with %q at %d: equal %v, want %v", text, at.offset, got == id, equal)
			}
		}
		check(" /* ' \" # */\t", true)
		check(" zz_extra ", false)
		line, _, _ := bytes.Cut(data[at.offset:], []byte{'\n'})
		if !bytes.Contains(line, []byte{'#'}) && at.line > 0 {
			check(fmt.Sprintf("\n\n# %d\n", at.line), true)
		}
	})
}

// placed reports whether the code asks for its place, so that lines count.
func placed(data []byte) bool {
	h := newHostHasher(data, nil, recordedSystem)
	return h.run() == nil && h.placed
}

// FuzzSourceHash holds the same for any text at all.
func FuzzSourceHash(f *testing.F) {
	for _, name := range []string{"testdata/kernel.cu", "testdata/launch.h"} {
		f.Add(readFile(f, name), uint16(40))
	}
	f.Add([]byte("don't \"\nR\"x( a \\\n b"), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		hash := func(data []byte) (string, error) { return SourceHash(bytes.NewReader(data), "a.cc") }
		id, err := hash(data)
		if err != nil {
			requireFormatError(t, err)
			return
		}
		x := newLexer(data)
		x.lenient = true
		var ends []int
		for k, text := x.next(); k != kindEnd; k, text = x.next() {
			open := k == kindPunctuator && strings.ContainsAny(string(text), "'\"") // it holds what follows it
			if k != kindDirectiveEnd && string(text) != `\` && !open {
				ends = append(ends, x.pos)
			}
		}
		if len(ends) == 0 {
			return
		}
		at := ends[int(n)%len(ends)]
		if got, err := hash(insert(data, at, " /* ; */\t")); err != nil || got != id {
			t.Fatalf("a comment at %d changes the hash: %v", at, err)
		}
		if got, err := hash(insert(data, at, " zz_extra ")); err != nil || got == id {
			t.Fatalf("a token at %d does not change the hash: %v", at, err)
		}
	})
}
