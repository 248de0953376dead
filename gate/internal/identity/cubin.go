package identity

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
	"strconv"
	"strings"
)

// A Cubin is the machine code of one translation unit for one architecture.
type Cubin struct {
	// Arch is the architecture as nvcc spells it: "sm_90", "sm_90a".
	Arch string
	// Entries are the mangled names of the __global__ functions, sorted; none in a cubin that holds device functions only.
	Entries []string

	image       *image
	functions   []function // in the order of the file
	byName      map[string]int
	relocations map[int][]relocation
	owners      []owner // by section
	objects     [][]int // by section: its symbols, by place
	module      []int   // sections that belong to no function
	moduleInfo  []attribute
	names       entryNames
}

// A function is a .text section and what belongs to it.
type function struct {
	name     string
	entry    bool
	text     int
	sections []int
	info     []attribute // of .nv.info, which names it by symbol, and of .nv.info.<name>
}

// An owner says which function a section belongs to, by the name behind the prefix; function is -1 and the prefix
// the whole name for a section of the module.
type owner struct {
	prefix   string
	function int
}

const (
	textPrefix = ".text."
	cudaEntry  = 0x10 // STO_CUDA_ENTRY in a symbol's st_other
)

// ReadCubin reads a cubin. The name is for messages only.
func ReadCubin(data []byte, name string) (*Cubin, error) {
	m, err := readImage(data, name)
	if err != nil {
		return nil, err
	}
	c := &Cubin{image: m, byName: map[string]int{}}
	if c.relocations, err = m.relocations(); err != nil {
		return nil, err
	}
	c.Arch = m.arch()
	if err := c.findFunctions(); err != nil {
		return nil, err
	}
	if err := c.assignSections(); err != nil {
		return nil, err
	}
	if err := c.assignObjects(); err != nil {
		return nil, err
	}
	for _, f := range c.functions {
		if f.entry {
			c.Entries = append(c.Entries, f.name)
		}
	}
	slices.Sort(c.Entries)
	c.names = newEntryNames(c.Entries)
	return c, nil
}

func (c *Cubin) findFunctions() error {
	m := c.image
	for i := range m.sections {
		name, ok := strings.CutPrefix(m.sections[i].name, textPrefix)
		if !ok || m.sections[i].typ != elf.SHT_PROGBITS {
			continue
		}
		if _, twice := c.byName[name]; twice {
			return m.errorf("two sections %q", m.sections[i].name)
		}
		c.byName[name] = len(c.functions)
		c.functions = append(c.functions, function{name: name, text: i})
	}
	found := make([]bool, len(c.functions))
	for i := range m.symbols {
		s := &m.symbols[i]
		f, ok := c.byName[s.name]
		if !ok || s.section != c.functions[f].text || elf.SymType(s.typ) != elf.STT_FUNC {
			continue
		}
		found[f] = true
		c.functions[f].entry = c.functions[f].entry || s.other&cudaEntry != 0
	}
	for f, ok := range found {
		if !ok {
			return m.errorf("section %q has no function symbol", textPrefix+c.functions[f].name)
		}
	}
	return nil
}

func (c *Cubin) assignSections() error {
	m := c.image
	c.owners = make([]owner, len(m.sections))
	for i := range m.sections {
		c.owners[i] = c.ownerOf(m.sections[i].name)
	}
	for i := range m.sections {
		s, f := &m.sections[i], c.owners[i].function
		if isIgnored(s) {
			continue
		}
		if !strings.HasPrefix(s.name, ".nv.info") {
			if f >= 0 {
				c.functions[f].sections = append(c.functions[f].sections, i)
			} else {
				c.module = append(c.module, i)
			}
			continue
		}
		list, err := m.attributes(s)
		if err != nil {
			return err
		}
		for _, a := range list {
			c.assignAttribute(f, a)
		}
	}
	return nil
}

// assignAttribute gives an attribute to the function whose section it is in, else to the one its symbol lies in.
func (c *Cubin) assignAttribute(f int, a attribute) {
	if f < 0 && len(a.symbols) > 0 {
		f = c.functionOf(c.image.symbols[a.symbols[0]].section)
	}
	if f >= 0 {
		c.functions[f].info = append(c.functions[f].info, a)
	} else {
		c.moduleInfo = append(c.moduleInfo, a)
	}
}

// isIgnored says which sections say nothing about what the GPU runs. The Mercury sections of sm_100 and later are
// input for the driver on other chips; the instructions for this one are in .text.
func isIgnored(s *section) bool {
	switch s.typ {
	case elf.SHT_NULL, elf.SHT_STRTAB, elf.SHT_SYMTAB, elf.SHT_RELA, elf.SHT_REL, elf.SHT_NOTE:
		return true
	}
	for _, p := range []string{".debug_", ".nv_debug_", ".nv.merc.", ".nv.capmerc.", ".nv.callgraph", ".nv.prototype", ".symtab"} {
		if strings.HasPrefix(s.name, p) {
			return true
		}
	}
	return false
}

func (c *Cubin) ownerOf(name string) owner {
	for _, p := range []string{textPrefix, ".nv.info.", ".nv.shared.", ".nv.local."} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			if f, ok := c.byName[rest]; ok {
				return owner{p, f}
			}
			return owner{name, -1}
		}
	}
	if rest, ok := strings.CutPrefix(name, ".nv.constant"); ok {
		if bank, fn, ok := strings.Cut(rest, "."); ok {
			if f, ok := c.byName[fn]; ok {
				return owner{".nv.constant" + bank + ".", f}
			}
		}
	}
	return owner{name, -1}
}

// functionOf returns the function that a section belongs to, -1 for none.
func (c *Cubin) functionOf(section int) int {
	if section < 0 {
		return -1
	}
	return c.owners[section].function
}

// assignObjects sorts symbols into their sections. Objects of a real file hardly overlap; many that do would make a
// small file expensive to hash.
func (c *Cubin) assignObjects() error {
	m := c.image
	c.objects = make([][]int, len(m.sections))
	sizes := make([]uint64, len(m.sections))
	for i := range m.symbols {
		s := &m.symbols[i]
		if s.section < 0 || elf.SymType(s.typ) == elf.STT_SECTION || c.functionOf(s.section) >= 0 {
			continue
		}
		c.objects[s.section] = append(c.objects[s.section], i)
		length := uint64(len(m.sections[s.section].data))
		if sizes[s.section] += min(s.size, length); sizes[s.section] > 4*length {
			return m.errorf("symbols of section %q overlap", m.sections[s.section].name)
		}
	}
	for _, list := range c.objects {
		slices.SortFunc(list, func(i, j int) int {
			a, b := &m.symbols[i], &m.symbols[j]
			return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.size, b.size), cmp.Compare(a.name, b.name))
		})
	}
	return nil
}

// arch reads the number from e_flags, whose place moved with ABI version 8 (CUDA 13), and the letter of a
// specific or family target from the toolkit's note, which keeps the -arch option of ptxas.
func (m *image) arch() string {
	number := m.flags & 0xff
	if m.abiVersion >= 8 {
		number = m.flags >> 8 & 0xffff
	}
	arch := "sm_" + strconv.Itoa(int(number))
	for i := range m.sections {
		s := &m.sections[i]
		if s.name != ".note.nv.tkinfo" {
			continue
		}
		_, option, _ := bytes.Cut(s.data, []byte("-arch "+arch))
		if len(option) > 0 && (option[0] == 'a' || option[0] == 'f') {
			return arch + string(option[:1])
		}
	}
	return arch
}
