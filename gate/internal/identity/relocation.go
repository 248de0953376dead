package identity

import "debug/elf"

// A relocation is one entry of a .rela or .rel section.
type relocation struct {
	offset uint64
	typ    uint32
	symbol int
	addend int64
	rela   bool
}

// relocations returns the relocations by the section that they change.
func (m *image) relocations() (map[int][]relocation, error) {
	byTarget := map[int][]relocation{}
	for i := range m.sections {
		s := &m.sections[i]
		if s.typ != elf.SHT_RELA && s.typ != elf.SHT_REL {
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
	size, rela := relSize, s.typ == elf.SHT_RELA
	if rela {
		size = relaSize
	}
	if len(s.data)%size != 0 {
		return nil, m.errorf("section %q of %d bytes, not a multiple of %d", s.name, len(s.data), size)
	}
	list := make([]relocation, len(s.data)/size)
	for i := range list {
		d := s.data[i*size:]
		info := le.Uint64(d[8:])
		r := relocation{offset: le.Uint64(d), typ: elf.R_TYPE64(info), symbol: int(elf.R_SYM64(info)), rela: rela}
		if rela {
			r.addend = int64(le.Uint64(d[16:]))
		}
		if r.symbol >= len(m.symbols) {
			return nil, m.errorf("section %q names symbol %d of %d", s.name, r.symbol, len(m.symbols))
		}
		list[i] = r
	}
	return list, nil
}
