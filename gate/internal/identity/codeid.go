package identity

import (
	"bytes"
	"debug/elf"
)

// CodeID returns the identity of what the GPU runs for the given entries, mangled names that belong to one kernel;
// nil means all of them. An empty list, a name that the cubin does not have and a name given twice are errors.
//
// The names of entries are not part of it: each entry is hashed with a placeholder for its name, and the entries are
// put in the order of their hashes.
func (c *Cubin) CodeID(entries []string) (string, error) {
	chosen, err := c.choose(entries)
	if err != nil {
		return "", err
	}
	h := codeHasher{Cubin: c, alone: map[int][]byte{}}
	list := make([][]byte, 0, len(chosen))
	for _, f := range chosen {
		list = append(list, h.function(f, false))
	}
	r := newRecipe(codeRecipe)
	r.text(c.Arch)
	r.list(list)
	r.list(h.others())
	r.list(h.moduleSections())
	r.list(h.attributes(c.moduleInfo, -1, false))
	return r.hex(), nil
}

func (c *Cubin) choose(entries []string) ([]int, error) {
	if entries == nil {
		entries = c.Entries
	}
	if len(entries) == 0 {
		return nil, c.image.errorf("no entry function to identify")
	}
	chosen, seen := make([]int, 0, len(entries)), make(map[int]bool, len(entries))
	for _, name := range entries {
		f, ok := c.byName[name]
		if !ok || !c.functions[f].entry {
			return nil, c.image.errorf("no entry function %q", name)
		}
		if seen[f] {
			return nil, c.image.errorf("entry function %q given twice", name)
		}
		seen[f] = true
		chosen = append(chosen, f)
	}
	return chosen, nil
}

// A codeHasher hashes the parts of a cubin. What points to an entry is hashed as that entry's code without its own
// pointers to entries, so that a name has no part in it and a cycle ends.
type codeHasher struct {
	*Cubin
	alone map[int][]byte
}

// others hashes the device functions that are not entries.
func (h *codeHasher) others() [][]byte {
	var list [][]byte
	for f := range h.functions {
		if !h.functions[f].entry {
			list = append(list, h.function(f, false))
		}
	}
	return list
}

func (h *codeHasher) moduleSections() [][]byte {
	list := make([][]byte, 0, len(h.module))
	for _, i := range h.module {
		list = append(list, h.section(h.names.normalise(h.image.sections[i].name), i, -1, false))
	}
	return list
}

// function hashes one function; blind replaces every pointer to an entry by one word.
func (h *codeHasher) function(f int, blind bool) []byte {
	fn := &h.functions[f]
	r := newRecipe("function")
	if !fn.entry {
		r.text(h.names.normalise(fn.name))
	}
	sections := make([][]byte, 0, len(fn.sections))
	for _, i := range fn.sections {
		sections = append(sections, h.section(h.owners[i].prefix, i, f, blind))
	}
	r.list(sections)
	r.list(h.attributes(fn.info, f, blind))
	return r.sum()
}

// section hashes a section of function self (-1: of the module) under a name that does not hold the function's.
func (h *codeHasher) section(name string, index, self int, blind bool) []byte {
	s := &h.image.sections[index]
	r := newRecipe("section")
	r.text(name)
	r.number(uint64(s.flags & (elf.SHF_ALLOC | elf.SHF_EXECINSTR | elf.SHF_WRITE)))
	r.number(s.align)
	if self >= 0 && index == h.functions[self].text {
		// ptxas of CUDA 12 and earlier keeps registers and barriers in the upper bits; below are symbol indices.
		r.number(uint64(s.info >> 24))
		r.number(uint64(s.flags) >> 20 & 0xfff)
	}
	if self < 0 && s.flags&(elf.SHF_ALLOC|elf.SHF_WRITE) == elf.SHF_ALLOC|elf.SHF_WRITE {
		r.list(h.globals(index))
	} else {
		r.number(s.size)
		r.bytes(s.data)
		r.list(h.constants(index))
	}
	r.list(h.relocationsOf(index, self, blind))
	return r.sum()
}

// globals hashes the objects of .nv.global and .nv.global.init one by one: instructions reach them through the
// address bank, so their place is not part of the code, their name and content are.
func (h *codeHasher) globals(index int) [][]byte {
	s := &h.image.sections[index]
	list := [][]byte{}
	end, gaps := uint64(0), newRecipe("gaps")
	for _, i := range h.objects[index] {
		o := &h.image.symbols[i]
		r := newRecipe("global")
		r.text(h.names.normalise(o.name))
		r.number(o.size)
		r.bytes(s.slice(o.value, o.size))
		list = append(list, r.sum())
		if o.value > end {
			gaps.bytes(bytes.Trim(s.slice(end, o.value-end), "\x00"))
		}
		end = max(end, o.value+o.size)
	}
	if end == 0 {
		r := newRecipe("unnamed")
		r.number(s.size)
		r.bytes(s.data)
		return append(list, r.sum())
	}
	gaps.bytes(bytes.Trim(s.slice(end, s.size), "\x00"))
	return append(list, gaps.sum())
}

// constants hashes where each named constant of the module lies: the host fills them by name, instructions read them
// by offset.
func (h *codeHasher) constants(index int) [][]byte {
	list := [][]byte{}
	for _, i := range h.objects[index] {
		o := &h.image.symbols[i]
		r := newRecipe("constant")
		r.text(h.names.normalise(o.name))
		r.number(o.value)
		r.number(o.size)
		list = append(list, r.sum())
	}
	return list
}

// slice returns the part of a section's data that exists; a symbol can claim more.
func (s *section) slice(at, size uint64) []byte {
	length := uint64(len(s.data))
	if at >= length {
		return nil
	}
	return s.data[at : at+min(size, length-at)]
}

func (h *codeHasher) relocationsOf(index, self int, blind bool) [][]byte {
	list := make([][]byte, 0, len(h.relocations[index]))
	for _, rel := range h.relocations[index] {
		r := newRecipe("relocation")
		r.number(rel.offset)
		r.number(uint64(rel.typ))
		r.number(uint64(rel.addend))
		if rel.rela {
			r.text("addend")
		}
		h.reference(r, rel.symbol, self, blind)
		list = append(list, r.sum())
	}
	return list
}

func (h *codeHasher) attributes(attributes []attribute, self int, blind bool) [][]byte {
	list := make([][]byte, 0, len(attributes))
	for _, a := range attributes {
		r := newRecipe("attribute")
		r.number(uint64(a.format))
		r.number(uint64(a.id))
		r.bytes(a.value)
		symbols := make([][]byte, 0, len(a.symbols))
		for _, s := range a.symbols {
			one := newRecipe("symbol")
			h.reference(one, s, self, blind)
			symbols = append(symbols, one.sum())
		}
		r.list(symbols)
		list = append(list, r.sum())
	}
	return list
}

// reference hashes what a symbol stands for: a place in a function's section, an object, or something outside.
func (h *codeHasher) reference(r *recipe, index, self int, blind bool) {
	s := &h.image.symbols[index]
	if s.section < 0 {
		r.text("outside")
		r.text(h.names.normalise(s.name))
		return
	}
	prefix, f := h.owners[s.section].prefix, h.owners[s.section].function
	switch {
	case f < 0 && elf.SymType(s.typ) == elf.STT_SECTION:
		r.text("section")
		r.text(h.names.normalise(h.image.sections[s.section].name))
		return
	case f < 0:
		r.text("object")
		r.text(h.names.normalise(s.name))
		return
	case f == self:
		r.text("self")
	case !h.functions[f].entry:
		r.text("function")
		r.text(h.names.normalise(h.functions[f].name))
	case blind:
		r.text("entry")
	default:
		r.text("entry")
		r.bytes(h.entryAlone(f))
	}
	r.text(prefix)
	r.number(s.value)
}

func (h *codeHasher) entryAlone(f int) []byte {
	if h.alone[f] == nil {
		h.alone[f] = h.function(f, true)
	}
	return h.alone[f]
}
