package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// What may stand in a bundle.
var (
	fileName = regexp.MustCompile(`^(?:records/[0-9a-f]{64}\.json|raw/(?:` + evidence.Names(evidence.Order[1:], "|") + `)\.[0-9a-f]{8}\.[a-z]{1,16}(?:\.[a-z]{1,8}){0,2}\.gz)$`)
	commit   = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	codeID   = regexp.MustCompile(`^(?:v[0-9]{1,4})?[0-9a-f]{64}$`)
	arch     = regexp.MustCompile(`^sm_[0-9]{2,3}[af]?$`)
	word     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
)

// Read reads a bundle, whole or not at all.
func Read(data []byte) (*Bundle, error) {
	if len(data) > MostBytes {
		return nil, fmt.Errorf("the bundle is larger than %d bytes", MostBytes)
	}
	files, err := unpack(data)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	b := &Bundle{SHA256: hex.EncodeToString(sum[:]), entries: map[evidence.Key]Entry{}}
	text, ok := files[manifestName]
	if !ok {
		return nil, errors.New("the bundle has no manifest")
	}
	delete(files, manifestName)
	if err := strictjson.Decode(text, mostManifest, &b.Manifest); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	if err := b.valid(); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	if err := b.listed(files); err != nil {
		return nil, err
	}
	return b, b.records(files)
}

func (m *Manifest) valid() error {
	switch {
	case m.Schema != schema:
		return fmt.Errorf("the schema is %s, this gate reads %q", printable.Quote(m.Schema, 60), schema)
	case !commit.MatchString(m.Head) || !commit.MatchString(m.Base):
		return errors.New("head and base are not ids of commits")
	case m.Shard.Number < 1 || m.Shard.Of < m.Shard.Number || m.Shard.Of > 256:
		return fmt.Errorf("it is part %d of %d", m.Shard.Number, m.Shard.Of)
	case len(m.Kernels) > mostKernels:
		return fmt.Errorf("it names more than %d kernels", mostKernels)
	case len(m.Why) > mostName || !clean(m.Why):
		return errors.New("the reason why nothing was measured is not one line of text")
	}
	if err := m.gone(); err != nil {
		return err
	}
	type slot struct{ name, arch string }
	seen := map[slot]bool{}
	for i := range m.Kernels {
		k := &m.Kernels[i]
		if err := k.valid(); err != nil {
			return fmt.Errorf("kernel %d: %w", i+1, err)
		}
		at := slot{strings.ToLower(k.Name), k.Arch}
		if seen[at] {
			return fmt.Errorf("kernel %d: %s stands twice for %s", i+1, printable.Quote(k.Name, 100), k.Arch)
		}
		seen[at] = true
	}
	return nil
}

func (k *Kernel) valid() error {
	for what, s := range map[string]string{"name": k.Name, "file": k.File} {
		if !line(s) {
			return fmt.Errorf("the %s %s cannot be one", what, printable.Quote(s, 100))
		}
	}
	switch {
	case len(k.Source) > mostName || !clean(k.Source) || k.Line < 0 || k.Line > 1<<24 || k.Source == "" && k.Line > 0:
		return errors.New("where its source stands cannot be a place")
	case !arch.MatchString(k.Arch) || !word.MatchString(k.Op):
		return errors.New("its architecture or its op cannot be one")
	case (k.Why == "") != (k.Code != ""), (k.Code == "") != (k.Host == ""):
		return errors.New("it is neither built nor not built")
	case k.Code != "" && !(codeID.MatchString(k.Code) && codeID.MatchString(k.Host)):
		return errors.New("an id of its code is not one")
	case len(k.Why) > mostName || !clean(k.Why) || len(k.Detail) > mostText || printable.Text(k.Detail) != k.Detail:
		return errors.New("why it was not built is not printable, or too long")
	case len(k.Cases) > mostCases || len(k.Left) > mostCases || len(k.Funcs) > mostFuncs:
		return fmt.Errorf("it has more than %d cases or entries", mostCases)
	}
	seen := map[string]bool{}
	for _, c := range k.Cases {
		if !word.MatchString(c) || seen[c] {
			return fmt.Errorf("the case %s cannot be one, or stands twice", printable.Quote(c, 100))
		}
		seen[c] = true
	}
	for _, f := range k.Funcs {
		if f.Name == "" || f.Short == "" || len(f.Name)+len(f.Short) > mostText || !clean(f.Name) || !clean(f.Short) {
			return errors.New("a function is not printable, or too long")
		}
	}
	for _, l := range k.Left {
		if l == "" || len(l) > mostText || !clean(l) {
			return errors.New("an entry that is left out is not printable, or too long")
		}
	}
	return k.declares()
}

// gone requires a place and a reason of every kernel that is declared retired.
func (m *Manifest) gone() error {
	if len(m.Gone) > mostKernels {
		return fmt.Errorf("it retires more than %d kernels", mostKernels)
	}
	seen := map[string]bool{}
	for _, g := range m.Gone {
		if !line(g.Name) || !line(g.File) || !line(g.Reason) || seen[g.Name] {
			return errors.New("a kernel that is retired has no name, place or reason, or stands twice")
		}
		seen[g.Name] = true
	}
	return nil
}

// declares requires that what a kernel says of the base is what a kernel.yaml can say.
func (k *Kernel) declares() error {
	if w := k.Was; w != nil && (w.Kernel == "" && w.Arch == "" || w.Kernel != "" && !line(w.Kernel) || w.Arch != "" && !arch.MatchString(w.Arch)) {
		return errors.New("what it was cannot be a kernel")
	}
	if len(k.Retired) > mostCases || len(k.Brought) > mostCases {
		return fmt.Errorf("it has more than %d cases or entries", mostCases)
	}
	for _, r := range k.Retired {
		named := 0
		for _, what := range []string{r.Case, r.Entry, r.Arch} {
			if what != "" && clean(what) && len(what) <= 4*mostName {
				named++
			}
		}
		if named != 1 || r.Case+r.Entry+r.Arch == "" || !line(r.Reason) {
			return errors.New("what it retires is not one case, entry or architecture with a reason")
		}
	}
	seen := map[string]bool{}
	for _, b := range k.Brought {
		if !word.MatchString(b.Case) || seen[b.Case] || b.Harness != "" && !codeID.MatchString(b.Harness) {
			return fmt.Errorf("the case %s that it brings cannot be one, or stands twice", printable.Quote(b.Case, 100))
		}
		seen[b.Case] = true
	}
	return nil
}

// line holds for a line of text that says something.
func line(s string) bool {
	return s != "" && len(s) <= mostName && clean(s) && strings.TrimSpace(s) == s
}

// clean holds for a line in which nothing is hidden.
func clean(s string) bool { return printable.Line(s) == s }

// listed requires the manifest to list the files that are there, and no other.
func (b *Bundle) listed(files map[string][]byte) error {
	if len(b.Files) != len(files) {
		return fmt.Errorf("the manifest lists %d files, and the bundle has %d", len(b.Files), len(files))
	}
	seen := map[string]bool{}
	for _, f := range b.Files {
		data, ok := files[f.Name]
		if !ok || seen[f.Name] {
			return fmt.Errorf("the manifest lists %s, which is not there or stands twice", printable.Quote(f.Name, 100))
		}
		seen[f.Name] = true
		sum := sha256.Sum256(data)
		if f.Bytes != int64(len(data)) || f.SHA256 != hex.EncodeToString(sum[:]) {
			return fmt.Errorf("%s is not what the manifest says", f.Name)
		}
	}
	return nil
}

// records decodes every record and gives it its raw inputs. Whether a record
// follows from them is for the store's audit to say, when it is asked for.
func (b *Bundle) records(files map[string][]byte) error {
	used, machines := map[string]bool{}, map[string]bool{}
	for _, f := range b.Files {
		if !strings.HasPrefix(f.Name, "records/") {
			continue
		}
		if f.Name != "records/"+f.SHA256+".json" {
			return fmt.Errorf("%s is not called by its digest", f.Name)
		}
		r, err := evidence.Decode(files[f.Name])
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if !slices.Contains(evidence.Order, r.Tier) {
			return fmt.Errorf("%s is of the tier %s, which no bundle has", f.Name, printable.Quote(string(r.Tier), 40))
		}
		e := Entry{Record: files[f.Name], Raw: map[string][]byte{}}
		for _, raw := range r.Raw {
			data, ok := files["raw/"+raw.Name]
			if !ok {
				return fmt.Errorf("%s names the raw input %s, which is not there", f.Name, printable.Quote(raw.Name, 100))
			}
			e.Raw[raw.Name], used["raw/"+raw.Name] = data, true
		}
		if _, twice := b.entries[r.Key()]; twice {
			return fmt.Errorf("%s is a second record under one key", f.Name)
		}
		b.entries[r.Key()] = e
		if m := r.Provenance.Machine; r.Tier != evidence.Static && !machines[m.Key()] {
			machines[m.Key()] = true
			b.machines = append(b.machines, m)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "raw/") && !used[name] {
			return fmt.Errorf("no record names %s", name)
		}
	}
	return nil
}
