package build

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// truth is what runs of a build, read without the package that makes
// identities: of the final cubins every section but those for debuggers, and
// of each unit's host object the allocatable sections and the relocations.
func truth(t testing.TB, tmp string, sources []string, relocatable bool, linked ...string) string {
	t.Helper()
	var parts []string
	parts = append(parts, "link\n"+describe(t, filepath.Join(tmp, "lib_dlink.o"), hostSection))
	cubins := []string{"lib_dlink"}
	if !relocatable {
		cubins = nil
	}
	for _, s := range sources {
		parts = append(parts, "host "+s+"\n"+describe(t, filepath.Join(tmp, stem(s)+".o"), hostSection))
		if !relocatable {
			cubins = append(cubins, stem(s))
		}
	}
	for _, c := range cubins {
		files, err := filepath.Glob(filepath.Join(tmp, c+"*.cubin"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%d cubins of %s", len(files), c)
		}
		parts = append(parts, "cubin "+c+"\n"+describe(t, files[0], deviceSection))
	}
	for _, file := range linked {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprintf("linked %x", sha256.Sum256(data)))
	}
	return strings.Join(parts, "\n")
}

func hostSection(s *elf.Section) bool {
	return s.Flags&elf.SHF_ALLOC != 0 && s.Name != ".nv_fatbin" && s.Name != "__nv_relfatbin"
}

func deviceSection(s *elf.Section) bool {
	return !strings.Contains(s.Name, "debug") && s.Name != ".note.nv.tkinfo" && s.Type != elf.SHT_STRTAB
}

// describe lists the sections of an object, its symbols, and its relocations by
// the names of what they relocate.
func describe(t testing.TB, file string, counts func(*elf.Section) bool) string {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, _ := f.Symbols()
	name := func(index uint32) string {
		if index == 0 || int(index) > len(symbols) {
			return fmt.Sprint(index)
		}
		s := symbols[index-1]
		if elf.ST_TYPE(s.Info) == elf.STT_SECTION && int(s.Section) < len(f.Sections) {
			return f.Sections[s.Section].Name
		}
		return s.Name
	}
	var lines []string
	for _, s := range f.Sections {
		switch {
		case s.Type == elf.SHT_RELA && int(s.Info) < len(f.Sections) && counts(f.Sections[s.Info]):
			data, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			for ; len(data) >= 24; data = data[24:] {
				info := binary.LittleEndian.Uint64(data[8:])
				lines = append(lines, fmt.Sprintf("%s+%x %d %s%+d", f.Sections[s.Info].Name, binary.LittleEndian.Uint64(data), uint32(info),
					name(uint32(info>>32)), int64(binary.LittleEndian.Uint64(data[16:]))))
			}
		case s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_RELA || s.Name == ".nv.merc.symtab" || !counts(s):
		case s.Type == elf.SHT_NOBITS || s.Type == 0x7000000a:
			lines = append(lines, fmt.Sprintf("%s %v %d", s.Name, s.Type, s.Size))
		default:
			data, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s %v %d %x", s.Name, s.Type, s.Size, sha256.Sum256(bytes.Clone(data))))
		}
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_SECTION && elf.ST_TYPE(s.Info) != elf.STT_FILE {
			lines = append(lines, fmt.Sprintf("symbol %s %d %d %d %d %d", s.Name, s.Info, s.Other, s.Section, s.Value, s.Size))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
