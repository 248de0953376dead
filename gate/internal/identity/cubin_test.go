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
	c, err := ReadCubin(data, "x.cubin", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func codeID(t testing.TB, data []byte) string {
	t.Helper()
	return readCubin(t, data).ID()
}

func TestReadCubin(t *testing.T) {
	c := readCubin(t, readRecorded(t, "same").cubin)
	want := []string{"_Z7reverseILi64EEvPf", "_Z8internalPf", "_ZN38_GLOBAL__N__", "scale"} // the third ends in a hash of the folder
	var names []string
	for _, f := range c.Functions {
		names = append(names, f.Name)
		if !f.Entry || f.Registers < 4 || f.Frame != 0 {
			t.Errorf("%+v", f)
		}
	}
	if !slices.EqualFunc(names, want, strings.HasPrefix) || c.Relocatable {
		t.Errorf("functions %q, relocatable: %v", names, c.Relocatable)
	}
	relocatable := readCubin(t, readRecorded(t, "relocatable").cubin)
	at := slices.IndexFunc(relocatable.Functions, func(f Function) bool { return f.Name == "_Z5twicef" })
	if at < 0 || relocatable.Functions[at].Entry || !relocatable.Relocatable {
		t.Errorf("_Z5twicef is not a device function among %+v", relocatable.Functions)
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
		want := codeID(t, data)
		for range 20 {
			shuffled := slices.Clone(data)
			shuffleSections(shuffled, r)
			shuffleSymbols(t, shuffled, r)
			if slices.Equal(shuffled, data) {
				t.Fatal("nothing was shuffled")
			}
			if got := codeID(t, shuffled); got != want {
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
	forEachSection(data, shtCallGraph, func(_ uint32, body []byte) {
		for i := 0; i+4 <= len(body); i += 4 {
			if at := le.Uint32(body[i:]); int64(at) < int64(len(place)) {
				le.PutUint32(body[i:], uint32(place[at]))
			}
		}
	})
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
			got, err := ReadCubin(c.edit(slices.Clone(good)), "x.cubin", nil)
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
				c, err := ReadCubin(data, "x.cubin", nil)
				if err != nil {
					requireFormatError(t, err)
					refused++
				} else if id := c.ID(); id == want {
					t.Errorf("section %d, byte %d as %d: id %s", i, j, odd, id)
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
