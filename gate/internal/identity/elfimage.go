package identity

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// maxCubinBytes bounds a cubin. CUTLASS libraries with thousands of kernels stay below it.
const maxCubinBytes = 256 << 20

// An image is an ELF file read with every size checked against the file before anything is allocated. debug/elf
// supplies the constants; its reader copies section names without a bound, so a hostile file can make it take memory
// that grows with the square of the file.
type image struct {
	name       string
	flags      uint32
	abiVersion byte
	sections   []section
	tables     map[int][]symbol // by section
	modules    Modules
	nameBudget int
}

type section struct {
	name       string // without what Modules takes out
	raw        string // as it stands in the file
	typ        elf.SectionType
	flags      elf.SectionFlag
	size       uint64
	link, info uint32
	align      uint64
	data       []byte // nil where the file holds none
}

type symbol struct {
	name        string
	raw         string
	info        byte // type and binding
	other       byte
	section     int // -1: undefined, absolute or common
	index       uint16
	value, size uint64
}

// Types of sections that NVIDIA's tools make. Sections of Mercury code, which
// sm_100 and later have beside their own, have tables of their own.
const (
	shtInfo          elf.SectionType = 0x70000000
	shtCallGraph     elf.SectionType = 0x70000001
	shtMercuryRela   elf.SectionType = 0x70000082
	shtMercuryInfo   elf.SectionType = 0x70000083
	shtMercurySymtab elf.SectionType = 0x70000085
)

const (
	elfHeaderSize     = 64
	sectionHeaderSize = 64
	symbolSize        = 24
	relaSize          = 24
	relSize           = 16
)

var le = binary.LittleEndian

func readImage(data []byte, name string, modules Modules) (*image, error) {
	m := &image{name: name, modules: modules, tables: map[int][]symbol{}, nameBudget: 4*len(data) + 64<<10}
	if err := m.readHeader(data); err != nil {
		return nil, err
	}
	if err := m.readSections(data); err != nil {
		return nil, err
	}
	return m, m.readSymbols()
}

func (m *image) errorf(format string, args ...any) error {
	return &formatError{File: m.name, Msg: fmt.Sprintf(format, args...)}
}

func (m *image) readHeader(data []byte) error {
	if len(data) > maxCubinBytes {
		return m.errorf("cubin of %d bytes, more than the limit of %d", len(data), maxCubinBytes)
	}
	if len(data) < elfHeaderSize || !bytes.HasPrefix(data, []byte(elf.ELFMAG)) {
		return m.errorf("not an elf file")
	}
	if elf.Class(data[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(data[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return m.errorf("not a 64-bit little-endian elf file")
	}
	if machine := elf.Machine(le.Uint16(data[18:])); machine != elf.EM_CUDA {
		return m.errorf("not a cubin: elf machine %d, want %d", machine, elf.EM_CUDA)
	}
	m.abiVersion = data[elf.EI_ABIVERSION]
	m.flags = le.Uint32(data[48:])
	return nil
}

func (m *image) readSections(data []byte) error {
	offset, count := le.Uint64(data[40:]), uint64(le.Uint16(data[60:]))
	if size := le.Uint16(data[58:]); size != sectionHeaderSize {
		return m.errorf("section header of %d bytes, want %d", size, sectionHeaderSize)
	}
	length := uint64(len(data))
	if count == 0 || offset > length || count > (length-offset)/sectionHeaderSize {
		return m.errorf("section table (%d headers at offset %d) lies outside the file", count, offset)
	}
	m.sections = make([]section, count)
	total, seen := uint64(0), map[[2]uint64]bool{}
	for i := range m.sections {
		h := data[offset+uint64(i)*sectionHeaderSize:]
		s := &m.sections[i]
		s.typ, s.flags = elf.SectionType(le.Uint32(h[4:])), elf.SectionFlag(le.Uint64(h[8:]))
		s.size, s.link, s.info = le.Uint64(h[32:]), le.Uint32(h[40:]), le.Uint32(h[44:])
		s.align = le.Uint64(h[48:])
		if !hasData(s.typ) {
			continue
		}
		start := le.Uint64(h[24:])
		// Two sections of a real file share their bytes or have none in common; many that overlap would make a
		// small file expensive to hash.
		if at := [2]uint64{start, s.size}; !seen[at] {
			seen[at] = true
			total += s.size
		}
		if start > length || s.size > length-start || total > length {
			return m.errorf("section %d (%d bytes at offset %d) lies outside the file", i, s.size, start)
		}
		s.data = data[start : start+s.size : start+s.size]
	}
	return m.nameSections(data, offset)
}

// hasData says whether a section takes space in the file. The types above SHT_LOPROC are those of relocatable device
// code: global, local, shared and reserved shared memory.
func hasData(typ elf.SectionType) bool {
	switch typ {
	case elf.SHT_NULL, elf.SHT_NOBITS, 0x70000007, 0x70000009, 0x7000000a, 0x70000015:
		return false
	}
	return true
}

func (m *image) nameSections(data []byte, offset uint64) error {
	index := int(le.Uint16(data[62:]))
	if index >= len(m.sections) {
		return m.errorf("section names are in section %d of %d", index, len(m.sections))
	}
	table := m.sections[index].data
	for i := range m.sections {
		at := le.Uint32(data[offset+uint64(i)*sectionHeaderSize:])
		name, err := m.cstring(table, at)
		if err != nil {
			return err
		}
		m.sections[i].raw, m.sections[i].name = name, m.modules.normalise(name)
	}
	return nil
}

// cstring reads one name. The budget keeps names that share bytes from adding up to more than the file could hold.
func (m *image) cstring(table []byte, at uint32) (string, error) {
	if at == 0 && len(table) == 0 {
		return "", nil
	}
	if uint64(at) >= uint64(len(table)) {
		return "", m.errorf("name at offset %d of a string table of %d bytes", at, len(table))
	}
	end := bytes.IndexByte(table[at:min(len(table), int(at)+max(m.nameBudget, 0)+1)], 0)
	if end < 0 {
		return "", m.errorf("name without an end, or names longer than the file allows")
	}
	m.nameBudget -= end
	return string(table[at : int(at)+end]), nil
}

func (m *image) readSymbols() error {
	found := false
	for i := range m.sections {
		s := &m.sections[i]
		if s.typ != elf.SHT_SYMTAB && s.typ != shtMercurySymtab {
			continue
		}
		if found && s.typ == elf.SHT_SYMTAB {
			return m.errorf("two symbol tables")
		}
		found = found || s.typ == elf.SHT_SYMTAB
		if int64(s.link) >= int64(len(m.sections)) {
			return m.errorf("symbol names are in section %d of %d", s.link, len(m.sections))
		}
		if err := m.readSymbolTable(i, m.sections[s.link].data); err != nil {
			return err
		}
	}
	if !found {
		return m.errorf("no symbol table")
	}
	return nil
}

func (m *image) readSymbolTable(table int, names []byte) error {
	data := m.sections[table].data
	if len(data)%symbolSize != 0 {
		return m.errorf("symbol table of %d bytes, not a multiple of %d", len(data), symbolSize)
	}
	list := make([]symbol, len(data)/symbolSize)
	for i := range list {
		d := data[i*symbolSize:]
		name, err := m.cstring(names, le.Uint32(d))
		if err != nil {
			return err
		}
		index := le.Uint16(d[6:])
		if elf.SectionIndex(index) == elf.SHN_XINDEX {
			return m.errorf("symbol %d uses an extended section index, which is not supported", i)
		}
		where := int(index)
		if index == 0 || elf.SectionIndex(index) >= elf.SHN_LORESERVE {
			where = -1
		} else if where >= len(m.sections) {
			return m.errorf("symbol %d is in section %d of %d", i, where, len(m.sections))
		}
		list[i] = symbol{
			name: m.modules.normalise(name), raw: name, info: d[4], other: d[5], section: where, index: index,
			value: le.Uint64(d[8:]), size: le.Uint64(d[16:]),
		}
	}
	m.tables[table] = list
	return nil
}

// symbol is one of the table that a section refers to.
func (m *image) symbol(of *section, index uint32) (*symbol, error) {
	table := m.tables[int(of.link)]
	if uint64(index) >= uint64(len(table)) {
		return nil, m.errorf("section %q names symbol %d of %d", of.name, index, len(table))
	}
	return &table[index], nil
}

// A relocation is one entry of a section of them.
type relocation struct {
	offset uint64
	typ    uint32
	symbol *symbol
	addend int64
	rela   bool
}

// relocations returns the relocations by the section that they change.
func (m *image) relocations() (map[int][]relocation, error) {
	byTarget := map[int][]relocation{}
	for i := range m.sections {
		s := &m.sections[i]
		if s.typ != elf.SHT_RELA && s.typ != elf.SHT_REL && s.typ != shtMercuryRela {
			continue
		}
		if int64(s.info) >= int64(len(m.sections)) {
			return nil, m.errorf("section %q relocates section %d of %d", s.name, s.info, len(m.sections))
		}
		list, err := m.readRelocations(s)
		if err != nil {
			return nil, err
		}
		byTarget[int(s.info)] = append(byTarget[int(s.info)], list...)
	}
	return byTarget, nil
}

func (m *image) readRelocations(s *section) ([]relocation, error) {
	size, rela := relaSize, s.typ != elf.SHT_REL
	if !rela {
		size = relSize
	}
	if len(s.data)%size != 0 {
		return nil, m.errorf("section %q of %d bytes, not a multiple of %d", s.name, len(s.data), size)
	}
	list := make([]relocation, len(s.data)/size)
	for i := range list {
		d := s.data[i*size:]
		info := le.Uint64(d[8:])
		sym, err := m.symbol(s, elf.R_SYM64(info))
		if err != nil {
			return nil, err
		}
		list[i] = relocation{offset: le.Uint64(d), typ: elf.R_TYPE64(info), symbol: sym, rela: rela}
		if rela {
			list[i].addend = int64(le.Uint64(d[16:]))
		}
	}
	return list, nil
}
