package identity

// Attributes of .nv.info that this package knows by number. Names are those that cuobjdump -elf prints.
const (
	attrParamCBank      = 0x0a // EIATTR_PARAM_CBANK: symbol, size and offset
	attrExterns         = 0x0f // EIATTR_EXTERNS: symbols
	attrFrameSize       = 0x11 // EIATTR_FRAME_SIZE: symbol, bytes
	attrMinStackSize    = 0x12 // EIATTR_MIN_STACK_SIZE: symbol, bytes
	attrMaxStackSize    = 0x23 // EIATTR_MAX_STACK_SIZE: symbol, bytes
	attrRegisterCount   = 0x2f // EIATTR_REGCOUNT: symbol, registers
	attrSAMStackSize    = 0x3b // EIATTR_SAM_REGION_STACK_SIZE: symbol, bytes
	formatSized         = 0x04 // EIFMT_SVAL: a 16-bit size and that many bytes; the other formats hold 16 bits in place
	attributeHeaderSize = 4
)

// An attribute is one record of a .nv.info section. Its symbol indices are taken out of its value, because an index
// says nothing outside this one file.
type attribute struct {
	format, id byte
	symbols    []*symbol
	value      []byte
}

// leadingSymbol says which attributes begin with a symbol index.
func leadingSymbol(id byte) bool {
	switch id {
	case attrParamCBank, attrFrameSize, attrMinStackSize, attrMaxStackSize, attrRegisterCount, attrSAMStackSize:
		return true
	}
	return false
}

func (m *image) attributes(s *section) ([]attribute, error) {
	var list []attribute
	for d := s.data; len(d) > 0; {
		if len(d) < attributeHeaderSize {
			return nil, m.errorf("section %q ends inside an attribute", s.name)
		}
		a := attribute{format: d[0], id: d[1], value: d[2:4]}
		d = d[attributeHeaderSize:]
		if a.format == 0 || a.format > formatSized {
			return nil, m.errorf("section %q: attribute 0x%02x in unknown format %d", s.name, a.id, a.format)
		}
		if a.format == formatSized {
			size := int(le.Uint16(a.value))
			if size > len(d) {
				return nil, m.errorf("section %q: attribute 0x%02x of %d bytes passes the end", s.name, a.id, size)
			}
			a.value, d = d[:size], d[size:]
			if err := m.takeSymbols(s, &a); err != nil {
				return nil, err
			}
		}
		list = append(list, a)
	}
	return list, nil
}

func (m *image) takeSymbols(s *section, a *attribute) error {
	count := 0
	switch {
	case a.id == attrExterns:
		count = len(a.value) / 4
	case leadingSymbol(a.id):
		count = 1
	}
	if len(a.value) < 4*count || a.id == attrExterns && len(a.value)%4 != 0 {
		return m.errorf("section %q: attribute 0x%02x of %d bytes holds no symbol", s.name, a.id, len(a.value))
	}
	for range count {
		sym, err := m.symbol(s, le.Uint32(a.value))
		if err != nil {
			return err
		}
		a.symbols = append(a.symbols, sym)
		a.value = a.value[4:]
	}
	return nil
}
