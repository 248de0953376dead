package identity

import (
	"debug/elf"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func readCubin(t testing.TB, data []byte) *Cubin {
	t.Helper()
	c, err := ReadCubin(data, "x.cubin")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func codeID(t testing.TB, data []byte, entries ...string) string {
	t.Helper()
	id, err := readCubin(t, data).CodeID(entries)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestReadCubin(t *testing.T) {
	c := readCubin(t, readRecorded(t, "same").cubin)
	want := []string{"_Z7reverseILi64EEvPf", "_Z8internalPf", "_ZN38_GLOBAL__N__", "scale"} // the third ends in a hash of the folder
	if c.Arch != "sm_90" || !slices.EqualFunc(c.Entries, want, strings.HasPrefix) || len(c.functions) != len(want) {
		t.Errorf("arch %q, entries %q of %d functions", c.Arch, c.Entries, len(c.functions))
	}
	for name, arch := range map[string]string{"specific-target": "sm_90a", "lineinfo": "sm_90"} {
		if got := readCubin(t, readRecorded(t, name).cubin).Arch; got != arch {
			t.Errorf("%s: arch %q, want %q", name, got, arch)
		}
	}
	relocatable := readCubin(t, readRecorded(t, "relocatable").cubin)
	if _, ok := relocatable.byName["_Z5twicef"]; !ok || slices.Contains(relocatable.Entries, "_Z5twicef") {
		t.Errorf("_Z5twicef is no device function beside the entries %q", relocatable.Entries)
	}
}

func TestCodeIDSelection(t *testing.T) {
	c := readCubin(t, readRecorded(t, "same").cubin)
	var names []string
	seen := map[string]bool{}
	for _, e := range c.Entries {
		names = append(names, e)
		id, err := c.CodeID([]string{e})
		if err != nil || len(id) != 64 || seen[id] {
			t.Errorf("%s: id %q, seen %v, %v", e, id, seen[id], err)
		}
		seen[id] = true
	}
	all, _ := c.CodeID(nil)
	slices.Reverse(names)
	if listed, err := c.CodeID(names); err != nil || listed != all {
		t.Errorf("all entries by name %q, %v, want %q", listed, err, all)
	}
	for _, bad := range [][]string{{}, {"nothing"}, {"scale", "scale"}, {""}} {
		id, err := c.CodeID(bad)
		var e *formatError
		if id != "" || !errors.As(err, &e) {
			t.Errorf("entries %q: id %q, %v", bad, id, err)
		}
	}
	relocatable := readCubin(t, readRecorded(t, "relocatable").cubin)
	if id, err := relocatable.CodeID([]string{"_Z5twicef"}); err == nil {
		t.Errorf("a device function has the id %s of an entry", id)
	}
}

// TestEveryByteCounts flips bytes, in steps that meet every place of an instruction: what the GPU runs changes the id, what only tools read does not.
func TestEveryByteCounts(t *testing.T) {
	for _, name := range []string{"same", "lineinfo", "relocatable"} {
		data := readRecorded(t, name).cubin
		want := codeID(t, data)
		c := readCubin(t, data)
		counted := map[bool]int{}
		for i := range c.image.sections {
			s := &c.image.sections[i]
			alive := strings.HasPrefix(s.name, ".text.") || strings.HasPrefix(s.name, ".nv.constant") ||
				s.name == ".nv.global.init"
			dead := strings.HasPrefix(s.name, ".debug") || strings.HasPrefix(s.name, ".nv_debug_")
			if !alive && !dead {
				continue
			}
			for j := 0; j < len(s.data); j += 5 {
				s.data[j] ^= 0x40
				if got := codeID(t, data); (got != want) != alive {
					t.Fatalf("%s: byte %d of %s changes the id: %v", name, j, s.name, got != want)
				}
				s.data[j] ^= 0x40
				counted[alive]++
			}
		}
		if counted[true] < 500 || counted[false] < 100 {
			t.Errorf("%s: %d live and %d dead bytes tried", name, counted[true], counted[false])
		}
	}
}

// TestEveryAttributeCounts flips the value of each attribute of .nv.info, symbol indices left out.
func TestEveryAttributeCounts(t *testing.T) {
	data := readRecorded(t, "same").cubin
	want := codeID(t, data)
	c := readCubin(t, data)
	tried := 0
	for i := range c.image.sections {
		s := &c.image.sections[i]
		if !strings.HasPrefix(s.name, ".nv.info") {
			continue
		}
		list, err := c.image.attributes(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if len(a.value) == 0 {
				continue
			}
			a.value[len(a.value)-1] ^= 1
			if codeID(t, data) == want {
				t.Errorf("%s: attribute 0x%02x has no part in the id", s.name, a.id)
			}
			a.value[len(a.value)-1] ^= 1
			tried++
		}
	}
	if tried < 40 {
		t.Errorf("%d attributes tried", tried)
	}
}

// TestOrderDoesNotCount shuffles the section headers and the symbols, as another linker could order them.
func TestOrderDoesNotCount(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range []string{"same", "lineinfo", "relocatable"} {
		data := readRecorded(t, name).cubin
		want := codeID(t, data, "scale")
		for range 20 {
			shuffled := slices.Clone(data)
			shuffleSections(shuffled, r)
			shuffleSymbols(t, shuffled, r)
			if slices.Equal(shuffled, data) {
				t.Fatal("nothing was shuffled")
			}
			if got := codeID(t, shuffled, "scale"); got != want {
				t.Fatalf("%s: id depends on the order of sections or symbols", name)
			}
		}
	}
}

func headerOf(data []byte, i int) []byte {
	return data[le.Uint64(data[40:])+uint64(i)*sectionHeaderSize:][:sectionHeaderSize]
}

func shuffleSections(data []byte, r *rand.Rand) {
	count := int(le.Uint16(data[60:]))
	headers := make([][]byte, count)
	for i := range headers {
		headers[i] = slices.Clone(headerOf(data, i))
	}
	place := append([]int{0}, r.Perm(count-1)...)
	for i := 1; i < count; i++ {
		place[i]++
	}
	for i, h := range headers {
		le.PutUint32(h[40:], uint32(place[le.Uint32(h[40:])]))
		if typ := elf.SectionType(le.Uint32(h[4:])); typ == elf.SHT_RELA || typ == elf.SHT_REL {
			le.PutUint32(h[44:], uint32(place[le.Uint32(h[44:])]))
		}
		copy(headerOf(data, place[i]), h)
	}
	le.PutUint16(data[62:], uint16(place[le.Uint16(data[62:])]))
	forEachSection(data, elf.SHT_SYMTAB, func(_ uint32, body []byte) {
		for i := 0; i < len(body); i += symbolSize {
			if at := le.Uint16(body[i+6:]); int(at) < count {
				le.PutUint16(body[i+6:], uint16(place[at]))
			}
		}
	})
}

func forEachSection(data []byte, typ elf.SectionType, do func(info uint32, body []byte)) {
	for i := range int(le.Uint16(data[60:])) {
		h := headerOf(data, i)
		if elf.SectionType(le.Uint32(h[4:])) == typ {
			start := le.Uint64(h[24:])
			do(le.Uint32(h[44:]), data[start:start+le.Uint64(h[32:])])
		}
	}
}

func shuffleSymbols(t *testing.T, data []byte, r *rand.Rand) {
	const nvInfo = 0x70000000 // SHT_CUDA_INFO
	var place []int
	forEachSection(data, elf.SHT_SYMTAB, func(_ uint32, body []byte) {
		old := slices.Clone(body)
		place = append([]int{0}, r.Perm(len(body)/symbolSize-1)...)
		for i := 1; i < len(place); i++ {
			place[i]++
			copy(body[place[i]*symbolSize:], old[i*symbolSize:][:symbolSize])
		}
	})
	for typ, size := range map[elf.SectionType]int{elf.SHT_RELA: relaSize, elf.SHT_REL: relSize} {
		forEachSection(data, typ, func(_ uint32, body []byte) {
			for i := 0; i < len(body); i += size {
				le.PutUint32(body[i+12:], uint32(place[le.Uint32(body[i+12:])]))
			}
		})
	}
	moved := 0
	forEachSection(data, nvInfo, func(_ uint32, body []byte) {
		for i := 0; i < len(body); i += 4 {
			size := 0
			if body[i] == formatSized {
				size = int(le.Uint16(body[i+2:]))
			}
			value := body[i+4 : i+4+size]
			if body[i+1] == attrExterns {
				for j := 0; j < size; j += 4 {
					le.PutUint32(value[j:], uint32(place[le.Uint32(value[j:])]))
				}
			} else if leadingSymbol(body[i+1]) {
				le.PutUint32(value, uint32(place[le.Uint32(value)]))
				moved++
			}
			i += size
		}
	})
	if moved == 0 {
		t.Fatal("no attribute names a symbol")
	}
}

func TestReadCubinHostile(t *testing.T) {
	good := readRecorded(t, "same").cubin
	table := le.Uint64(good[40:])
	text := func(data []byte) []byte { return headerOf(data, len(readCubin(t, good).image.sections)-1) }
	for _, c := range []struct {
		name string
		edit func(data []byte) []byte
	}{
		{"empty", func(data []byte) []byte { return nil }},
		{"torn header", func(data []byte) []byte { return data[:40] }},
		{"torn", func(data []byte) []byte { return data[:table] }},
		{"not elf", func(data []byte) []byte { data[0] = 0; return data }},
		{"32-bit", func(data []byte) []byte { data[4] = 1; return data }},
		{"big-endian", func(data []byte) []byte { data[5] = 2; return data }},
		{"host code", func(data []byte) []byte { data[18] = 62; return data }},
		{"no sections", func(data []byte) []byte { le.PutUint16(data[60:], 0); return data }},
		{"many sections", func(data []byte) []byte { le.PutUint16(data[60:], 0xff00); return data }},
		{"section table far away", func(data []byte) []byte { le.PutUint64(data[40:], 1<<63); return data }},
		{"names far away", func(data []byte) []byte { le.PutUint16(data[62:], 0xffff); return data }},
		{"section far away", func(data []byte) []byte { le.PutUint64(text(data)[24:], 1<<63); return data }},
		{"endless section", func(data []byte) []byte { le.PutUint64(text(data)[32:], 1<<63); return data }},
		{"name far away", func(data []byte) []byte { le.PutUint32(text(data), 1<<31); return data }},
		{"no symbols", func(data []byte) []byte { le.PutUint32(headerOf(data, 3)[4:], 1); return data }},
		{"odd symbols", func(data []byte) []byte { headerOf(data, 3)[32]--; return data }},
		{"overlapping sections", func(data []byte) []byte {
			for i := 4; i < len(readCubin(t, good).image.sections); i++ {
				le.PutUint64(headerOf(data, i)[24:], 0)
				le.PutUint64(headerOf(data, i)[32:], uint64(len(data)))
			}
			return data
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadCubin(c.edit(slices.Clone(good)), "x.cubin")
			var e *formatError
			if got != nil || !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "x.cubin: ") {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestOddAttributes gives each attribute of .nv.info each format: refused, or read as something else.
func TestOddAttributes(t *testing.T) {
	data := readRecorded(t, "same").cubin
	want := codeID(t, data)
	refused, read := 0, 0
	for i, s := range readCubin(t, data).image.sections {
		if !strings.HasPrefix(s.name, ".nv.info") {
			continue
		}
		for j := 0; j < len(s.data); j += 4 {
			format := s.data[j]
			for odd := range byte(formatSized + 2) {
				if odd == format {
					continue
				}
				s.data[j] = odd
				c, err := ReadCubin(data, "x.cubin")
				if err != nil {
					requireFormatError(t, err)
					refused++
				} else if id, err := c.CodeID(nil); err != nil || id == want {
					t.Errorf("section %d, byte %d as %d: id %s, %v", i, j, odd, id, err)
				} else {
					read++
				}
			}
			s.data[j] = format
			if format == formatSized {
				j += int(le.Uint16(s.data[j+2:]))
			}
		}
	}
	if refused < 50 || read < 10 {
		t.Errorf("%d refused, %d read", refused, read)
	}
}
