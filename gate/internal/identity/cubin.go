package identity

import (
	"debug/elf"
	"maps"
	"slices"
	"strings"
)

// A Cubin is machine code for one architecture, as ptxas or nvlink left it.
type Cubin struct {
	Functions   []Function // by name
	Relocatable bool       // it is yet to be linked with others

	image       *image
	relocations map[int][]relocation
	attributes  map[int][]attribute // by section
	symbols     map[int][]*symbol   // by section; -1 for those in none
}

// A Function is a kernel or a device function with code of its own. Sizes are bytes.
type Function struct {
	Name      string `json:"name"` // as in the file
	Entry     bool   `json:"entry,omitempty"`
	Registers int64  `json:"registers"`
	Frame     int64  `json:"frame"` // of the function itself
	Stack     int64  `json:"stack"` // of the calls that it makes too; 0 before the device link
	Shared    int64  `json:"shared"`
	Local     int64  `json:"local"`
}

const (
	textPrefix   = ".text."
	sharedPrefix = ".nv.shared."
	localPrefix  = ".nv.local."
	cudaEntry    = 0x10 // STO_CUDA_ENTRY in a symbol's st_other
)

// ReadCubin reads a cubin. The name is for messages only.
func ReadCubin(data []byte, name string, modules Modules) (*Cubin, error) {
	m, err := readImage(data, name, modules)
	if err != nil {
		return nil, err
	}
	c := &Cubin{Relocatable: elf.Type(le.Uint16(data[16:])) == elf.ET_REL, image: m, attributes: map[int][]attribute{}, symbols: map[int][]*symbol{}}
	if c.relocations, err = m.relocations(); err != nil {
		return nil, err
	}
	for i := range m.sections {
		if s := &m.sections[i]; s.typ == shtInfo || s.typ == shtMercuryInfo {
			if c.attributes[i], err = m.attributes(s); err != nil {
				return nil, err
			}
		}
	}
	for _, table := range m.tables {
		for i := range table {
			if s := &table[i]; elf.ST_TYPE(s.info) != elf.STT_SECTION {
				c.symbols[s.section] = append(c.symbols[s.section], s)
			}
		}
	}
	if err := c.findFunctions(); err != nil {
		return nil, err
	}
	return c, nil
}

// findFunctions reads what each function takes. A kernel of which nothing says
// how many registers it takes is an error.
func (c *Cubin) findFunctions() error {
	m, byName := c.image, map[string]*Function{}
	for i := range m.sections {
		s := &m.sections[i]
		name, ok := strings.CutPrefix(s.raw, textPrefix)
		if !ok || s.typ != elf.SHT_PROGBITS {
			continue
		}
		if byName[name] != nil {
			return m.errorf("two sections %q", s.raw)
		}
		f, found := &Function{Name: name}, false
		for _, sym := range c.symbols[i] {
			if sym.raw == name && elf.ST_TYPE(sym.info) == elf.STT_FUNC {
				found, f.Entry = true, f.Entry || sym.other&cudaEntry != 0
			}
		}
		if !found {
			return m.errorf("section %q has no function symbol", s.raw)
		}
		byName[name] = f
	}
	if err := c.takeSizes(byName); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		c.Functions = append(c.Functions, *byName[name])
	}
	return nil
}

func (c *Cubin) takeSizes(byName map[string]*Function) error {
	counted := map[*Function]int{}
	for i := range c.image.sections {
		s := &c.image.sections[i]
		if f := byName[strings.TrimPrefix(s.raw, sharedPrefix)]; f != nil && strings.HasPrefix(s.raw, sharedPrefix) {
			f.Shared = int64(s.size)
		}
		if f := byName[strings.TrimPrefix(s.raw, localPrefix)]; f != nil && strings.HasPrefix(s.raw, localPrefix) {
			f.Local = int64(s.size)
		}
		for _, a := range c.attributes[i] {
			if s.typ != shtInfo || len(a.symbols) != 1 || len(a.value) != 4 || byName[a.symbols[0].raw] == nil {
				continue
			}
			f, n := byName[a.symbols[0].raw], int64(le.Uint32(a.value))
			switch a.id {
			case attrRegisterCount:
				f.Registers = n
				counted[f]++
			case attrFrameSize:
				f.Frame = n
				counted[f]++
			case attrMinStackSize:
				f.Stack = n
			}
		}
	}
	for name, f := range byName {
		if f.Entry && counted[f] != 2 {
			return c.image.errorf("%s has no count of registers or no size of its frame, or more than one", name)
		}
	}
	return nil
}

// ID is the identity of what the GPU runs: of everything in the cubin, under
// its names, that is not known to be harmless. The order of sections, symbols
// and attributes does not count.
func (c *Cubin) ID() string {
	r := newRecipe(codeRecipe)
	r.number(uint64(c.image.abiVersion))
	r.number(uint64(c.image.flags))
	var list [][]byte
	for i := range c.image.sections {
		if s := &c.image.sections[i]; !isTable(s) && !isHarmless(s.name) {
			list = append(list, c.section(i))
		}
	}
	r.list(list)
	r.list(c.symbolsIn(-1))
	return r.hex()
}

// isTable holds for sections whose content is hashed where others refer to it.
func isTable(s *section) bool {
	switch s.typ {
	case elf.SHT_NULL, elf.SHT_STRTAB, elf.SHT_SYMTAB, elf.SHT_RELA, elf.SHT_REL, shtMercurySymtab, shtMercuryRela:
		return true
	}
	return false
}

// isHarmless holds for what only debuggers read, and for the note that names
// the tools with their command lines.
func isHarmless(name string) bool {
	name = "." + strings.TrimPrefix(strings.TrimPrefix(name, ".nv.merc."), ".")
	return strings.HasPrefix(name, ".debug_") || strings.HasPrefix(name, ".nv_debug_") || strings.HasPrefix(name, ".nv_debug.") ||
		name == ".note.nv.tkinfo"
}

func (c *Cubin) section(index int) []byte {
	s := &c.image.sections[index]
	r := newRecipe("section")
	r.text(s.name)
	r.number(uint64(s.typ))
	r.number(uint64(s.flags))
	r.number(s.align)
	r.number(s.size)
	if strings.HasPrefix(s.name, textPrefix) {
		// ptxas keeps registers in the upper bits for some architectures; below is the index of a symbol.
		r.number(uint64(s.info >> 24))
	}
	switch {
	case c.attributes[index] != nil:
		r.list(attributeSums(c.attributes[index]))
	case s.typ == shtCallGraph:
		r.list(c.calls(s))
	default:
		r.bytes(s.data)
	}
	r.list(c.symbolsIn(index))
	r.list(c.relocationsOf(index))
	return r.sum()
}

func (c *Cubin) symbolsIn(section int) [][]byte {
	var list [][]byte
	for _, s := range c.symbols[section] {
		r := newRecipe("symbol")
		r.text(s.name)
		r.number(uint64(s.info))
		r.number(uint64(s.other))
		r.number(s.value)
		r.number(s.size)
		if section < 0 {
			r.number(uint64(s.index))
		}
		list = append(list, r.sum())
	}
	return list
}

func (c *Cubin) relocationsOf(section int) [][]byte {
	var list [][]byte
	for _, rel := range c.relocations[section] {
		r := newRecipe("relocation")
		r.number(rel.offset)
		r.number(uint64(rel.typ))
		r.number(uint64(rel.addend))
		if rel.rela {
			r.text("addend")
		}
		c.reference(r, rel.symbol)
		list = append(list, r.sum())
	}
	return list
}

// reference hashes what a symbol stands for: a name, and a place in a section.
func (c *Cubin) reference(r *recipe, s *symbol) {
	r.text(s.name)
	r.number(uint64(elf.ST_TYPE(s.info)))
	r.number(s.value)
	if s.section >= 0 {
		r.text(c.image.sections[s.section].name)
	}
}

// calls hashes the pairs of the call graph, each of a symbol or of a number
// that stands for none.
func (c *Cubin) calls(s *section) [][]byte {
	var list [][]byte
	for d := s.data; len(d) >= 8; d = d[8:] {
		r := newRecipe("call")
		for _, index := range []uint32{le.Uint32(d), le.Uint32(d[4:])} {
			if sym, err := c.image.symbol(s, index); err == nil {
				c.reference(r, sym)
			} else {
				r.number(uint64(index))
			}
		}
		list = append(list, r.sum())
	}
	r := newRecipe("rest of the calls")
	r.bytes(s.data[len(s.data)&^7:])
	return append(list, r.sum())
}

func attributeSums(attributes []attribute) [][]byte {
	list := make([][]byte, 0, len(attributes))
	for _, a := range attributes {
		r := newRecipe("attribute")
		r.number(uint64(a.format))
		r.number(uint64(a.id))
		r.bytes(a.value)
		for _, s := range a.symbols {
			r.text(s.name)
			r.number(uint64(elf.ST_TYPE(s.info)))
		}
		list = append(list, r.sum())
	}
	return list
}
