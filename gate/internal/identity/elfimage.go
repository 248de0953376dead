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
	symbols    []symbol
	nameBudget int
}

type section struct {
	name       string
	typ        elf.SectionType
	flags      elf.SectionFlag
	size       uint64
	link, info uint32
	align      uint64
	data       []byte // nil where the file holds none
}

type symbol struct {
	name        string
	typ         byte
	other       byte
	section     int // -1: undefined, absolute or common
	value, size uint64
}

const (
	elfHeaderSize     = 64
	sectionHeaderSize = 64
	symbolSize        = 24
	relaSize          = 24
	relSize           = 16
)

var le = binary.LittleEndian

func readImage(data []byte, name string) (*image, error) {
	m := &image{name: name, nameBudget: 4*len(data) + 64<<10}
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
	total := uint64(0)
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
		// Sections of a real file do not overlap; many that do would make a small file expensive to hash.
		if total += s.size; start > length || s.size > length-start || total > length {
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
		m.sections[i].name = name
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
	for i := range m.sections {
		s := &m.sections[i]
		if s.typ != elf.SHT_SYMTAB {
			continue
		}
		if m.symbols != nil {
			return m.errorf("two symbol tables")
		}
		if int64(s.link) >= int64(len(m.sections)) {
			return m.errorf("symbol names are in section %d of %d", s.link, len(m.sections))
		}
		if err := m.readSymbolTable(s.data, m.sections[s.link].data); err != nil {
			return err
		}
	}
	if m.symbols == nil {
		return m.errorf("no symbol table")
	}
	return nil
}

func (m *image) readSymbolTable(data, names []byte) error {
	if len(data)%symbolSize != 0 {
		return m.errorf("symbol table of %d bytes, not a multiple of %d", len(data), symbolSize)
	}
	m.symbols = make([]symbol, len(data)/symbolSize)
	for i := range m.symbols {
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
		m.symbols[i] = symbol{
			name: name, typ: d[4] & 0xf, other: d[5], section: where,
			value: le.Uint64(d[8:]), size: le.Uint64(d[16:]),
		}
	}
	return nil
}
