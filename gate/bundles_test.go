package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A forger has the bundle of a change that passes, and changes it.
type forger struct {
	victim
	whole    []byte
	manifest map[string]any
	files    map[string][]byte
}

func newForger(t *testing.T) *forger {
	f := &forger{victim: newVictim(t)}
	f.env = append(f.env, "GITHUB_ACTIONS=", "GATE_CONFINE=off")
	f.run("git", "checkout", "-q", "-b", "change")
	f.change(0)
	f.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qam", "change")
	f.run("gate", "collect", "--bundle", filepath.Join(f.cache, "whole"))
	f.run("git", "checkout", "-q", "main")
	if err := os.RemoveAll(filepath.Join(f.cache, "evidence")); err != nil { // the judge has none of its own
		t.Fatal(err)
	}
	var err error
	if f.whole, err = os.ReadFile(filepath.Join(f.cache, "whole")); err != nil {
		t.Fatal(err)
	}
	return f.again()
}

// again is the bundle as it was.
func (f *forger) again() *forger {
	g := &forger{victim: f.victim, whole: f.whole, files: map[string][]byte{}}
	z, err := zip.NewReader(bytes.NewReader(f.whole), int64(len(f.whole)))
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range z.File {
		r, err := e.Open()
		if err != nil {
			f.Fatal(err)
		}
		if g.files[e.Name], err = io.ReadAll(r); err != nil {
			f.Fatal(err)
		}
	}
	if err := json.Unmarshal(g.files["manifest.json"], &g.manifest); err != nil {
		f.Fatal(err)
	}
	delete(g.files, "manifest.json")
	return g
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func plainJSON(v any) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// seal lists the files as they are now, and names records by their digests.
func (f *forger) seal() []byte {
	var list []any
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		data := f.files[name]
		if strings.HasPrefix(name, "records/") {
			delete(f.files, name)
			name = "records/" + digest(data) + ".json"
			f.files[name] = data
		}
		list = append(list, map[string]any{"name": name, "sha256": digest(data), "bytes": len(data)})
	}
	f.manifest["files"] = list
	return f.pack(plainJSON(f.manifest))
}

// pack makes the file, whatever the manifest says.
func (f *forger) pack(manifest []byte, more ...func(*zip.Writer)) []byte {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	add(w, "manifest.json", manifest)
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		add(w, name, f.files[name])
	}
	for _, m := range more {
		m(w)
	}
	w.Close()
	return buf.Bytes()
}

func add(w *zip.Writer, name string, data []byte) {
	addAs(w, &zip.FileHeader{Name: name, Method: zip.Deflate}, data)
}

func addAs(w *zip.Writer, h *zip.FileHeader, data []byte) {
	e, err := w.CreateHeader(h)
	if err == nil && len(data) > 0 {
		_, err = e.Write(data)
	}
	if err != nil {
		panic(err)
	}
}

func (f *forger) sealed() []byte {
	f.seal()
	return plainJSON(f.manifest)
}

func (f *forger) kernel(i int) map[string]any {
	return f.manifest["kernels"].([]any)[i].(map[string]any)
}

// leave takes a kernel out and says that the change retires it.
func (f *forger) leave(name, file, reason string) {
	f.manifest["kernels"] = slices.DeleteFunc(f.manifest["kernels"].([]any), func(k any) bool { return k.(map[string]any)["name"] == name })
	f.manifest["gone"] = []any{map[string]any{"name": name, "file": file, "reason": reason}}
}

// edit changes every record of a tier that a predicate takes.
func (f *forger) edit(tier string, change func(r map[string]any)) {
	found := 0
	for name, data := range maps.Clone(f.files) {
		var r map[string]any
		if !strings.HasPrefix(name, "records/") {
			continue
		}
		if err := json.Unmarshal(data, &r); err != nil {
			f.Fatal(err)
		}
		if r["tier"] == tier {
			found++
			change(r)
			f.files[name] = plainJSON(r)
		}
	}
	if found == 0 {
		f.Fatalf("no record of the tier %s", tier)
	}
}

// text replaces a text in every record of a tier.
func (f *forger) text(tier, old, new string) {
	found := false
	for name, data := range maps.Clone(f.files) {
		if strings.HasPrefix(name, "records/") && bytes.Contains(data, []byte(`"tier": "`+tier+`"`)) && bytes.Contains(data, []byte(old)) {
			f.files[name], found = bytes.ReplaceAll(data, []byte(old), []byte(new)), true
		}
	}
	if !found {
		f.Fatalf("no record of the tier %s holds %q", tier, old)
	}
}

func (f *forger) drop(tier string) {
	for name, data := range maps.Clone(f.files) {
		if strings.HasPrefix(name, "records/") && bytes.Contains(data, []byte(`"tier": "`+tier+`"`)) {
			delete(f.files, name)
		}
	}
	used := ""
	for name, data := range f.files {
		if strings.HasPrefix(name, "records/") {
			used += string(data)
		}
	}
	for name := range maps.Clone(f.files) {
		if strings.HasPrefix(name, "raw/") && !strings.Contains(used, strings.TrimPrefix(name, "raw/")) {
			delete(f.files, name)
		}
	}
}

// raw replaces raw inputs and says so in their records.
func (f *forger) raw(tier string, change func(text []byte) []byte) {
	f.edit(tier, func(r map[string]any) {
		for _, e := range r["raw"].([]any) {
			e := e.(map[string]any)
			old := "raw/" + e["name"].(string)
			z, err := gzip.NewReader(bytes.NewReader(f.files[old]))
			if err != nil {
				f.Fatal(err)
			}
			text, err := io.ReadAll(z)
			if err != nil {
				f.Fatal(err)
			}
			var buf bytes.Buffer
			w := gzip.NewWriter(&buf)
			w.Write(change(text))
			w.Close()
			parts := strings.SplitN(e["name"].(string), ".", 3)
			e["name"], e["sha256"], e["bytes"] = parts[0]+"."+digest(buf.Bytes())[:8]+"."+parts[2], digest(buf.Bytes()), buf.Len()
			f.files["raw/"+e["name"].(string)] = buf.Bytes()
		}
	})
	f.drop("nothing")
}

// forgeries are bundles by what is wrong with them.
func forgeries(f *forger) map[string][]byte {
	out := map[string][]byte{}
	for at := 0; at < len(f.whole); at += 1024 {
		out[fmt.Sprintf("cut at %d", at)] = f.whole[:at]
	}
	out["one byte less"] = f.whole[:len(f.whole)-1]
	out["one byte more"] = append(slices.Clone(f.whole), 0)
	out["a byte before"] = append([]byte{0}, f.whole...)
	out["twice"] = append(slices.Clone(f.whole), f.whole...)
	out["no zip file"] = []byte("hello")
	out["a zip file of nothing"] = append([]byte("PK\x05\x06"), make([]byte, 18)...)
	for i, at := range []int{40, len(f.whole) / 3, len(f.whole) / 2, len(f.whole) - 60, len(f.whole) - 14, len(f.whole) - 12, len(f.whole) - 8} {
		flipped := slices.Clone(f.whole)
		flipped[at] ^= 0x41
		out[fmt.Sprintf("a byte changed %d", i)] = flipped
	}
	for _, name := range []string{"../x", "/etc/passwd", `a\..\b`, "records/../../x.json", "records/", "MANIFEST.JSON", "raw/x.gz", "raw/profile.00000000.a\x00b.gz", "records/" + strings.Repeat("0", 64) + ".json", "\u202e", ""} {
		out["a file named "+name] = f.again().pack(f.again().sealed(), func(w *zip.Writer) {
			addAs(w, &zip.FileHeader{Name: name, Method: zip.Deflate}, []byte("x")[:min(1, len(strings.TrimRight(name, "/"))-len(name)+1)])
		})
	}
	structure := map[string]func(w *zip.Writer){
		"two manifests": func(w *zip.Writer) { add(w, "manifest.json", f.sealed()) },
		"a record twice": func(w *zip.Writer) {
			for name, data := range f.files {
				add(w, name, data)
				return
			}
		},
		"a link": func(w *zip.Writer) {
			h := &zip.FileHeader{Name: "records/" + digest([]byte("/etc/passwd")) + ".json", Method: zip.Deflate}
			h.SetMode(os.ModeSymlink | 0o777)
			addAs(w, h, []byte("/etc/passwd"))
		},
		"a device": func(w *zip.Writer) {
			h := &zip.FileHeader{Name: "records/" + digest(nil) + ".json", Method: zip.Deflate}
			h.SetMode(os.ModeDevice)
			addAs(w, h, nil)
		},
		"a comment": func(w *zip.Writer) { w.SetComment("PK\x05\x06") },
		"many files": func(w *zip.Writer) {
			for i := range 20_000 {
				addAs(w, &zip.FileHeader{Name: fmt.Sprintf("records/%064x.json", i), Method: zip.Deflate}, nil)
			}
		},
		"a bomb": func(w *zip.Writer) { add(w, "records/"+strings.Repeat("a", 64)+".json", make([]byte, 400<<20)) },
		"not compressed": func(w *zip.Writer) {
			addAs(w, &zip.FileHeader{Name: "records/" + digest(nil) + ".json", Method: zip.Store}, nil)
		},
		"an extra field": func(w *zip.Writer) {
			addAs(w, &zip.FileHeader{Name: "records/" + digest(nil) + ".json", Method: zip.Deflate, Extra: []byte{1, 0, 1, 0, 0}}, nil)
		},
	}
	for name, more := range structure {
		g := f.again()
		out[name] = g.pack(g.sealed(), more)
	}
	manifests := map[string]func(text string) string{
		"a key twice": func(s string) string { return strings.Replace(s, `"base":`, `"base":"x","base":`, 1) },
		"a key in capitals": func(s string) string {
			return strings.Replace(s, `"base":`, `"BASE":"`+strings.Repeat("0", 40)+`","base":`, 1)
		},
		"an unknown key":    func(s string) string { return strings.Replace(s, `{`, `{"policy":{"rules":[]},`, 1) },
		"a second document": func(s string) string { return s + s },
		"bad UTF-8":         func(s string) string { return strings.Replace(s, `toy/scale`, "toy/\xffscale", 1) },
		"NaN":               func(s string) string { return strings.Replace(s, `"number":1`, `"number":NaN`, 1) },
		"1e999":             func(s string) string { return strings.Replace(s, `"number":1`, `"number":1e999`, 1) },
		"a fraction":        func(s string) string { return strings.Replace(s, `"number":1`, `"number":1.5`, 1) },
		"deep nesting":      func(s string) string { return strings.Repeat(`{"schema":`, 9000) + "1" + strings.Repeat("}", 9000) },
		"null":              func(string) string { return "null" },
		"a list":            func(string) string { return "[]" },
		"nothing":           func(string) string { return "" },
		"spaces":            func(s string) string { return s + strings.Repeat(" ", 32<<20) },
		"another schema":    func(s string) string { return strings.Replace(s, "gate/bundle/v1", "gate/bundle/v2", 1) },
		"files not listed": func(s string) string {
			return regexp.MustCompile(`"files":\[[^\]]*\]`).ReplaceAllString(s, `"files":[]`)
		},
		"another digest": func(s string) string {
			return regexp.MustCompile(`"sha256":"[0-9a-f]{64}"`).ReplaceAllString(s, `"sha256":"`+strings.Repeat("0", 64)+`"`)
		},
		"the base an option": func(s string) string {
			return regexp.MustCompile(`"base":"[0-9a-f]+"`).ReplaceAllString(s, `"base":"--upload-pack=touch /tmp/x"`)
		},
		"the base a branch": func(s string) string {
			return regexp.MustCompile(`"base":"[0-9a-f]+"`).ReplaceAllString(s, `"base":"main"`)
		},
		"the base of nobody": func(s string) string {
			return regexp.MustCompile(`"base":"[0-9a-f]+"`).ReplaceAllString(s, `"base":"`+strings.Repeat("1", 40)+`"`)
		},
		"the change as base": func(s string) string {
			return regexp.MustCompile(`"base":"[0-9a-f]+"`).ReplaceAllString(s, `"base":"`+f.manifest["head"].(string)+`"`)
		},
		"a part of two":                        func(s string) string { return strings.Replace(s, `"of":1`, `"of":2`, 1) },
		"part 0":                               func(s string) string { return strings.Replace(s, `"number":1`, `"number":0`, 1) },
		"a name in lower case and in capitals": func(s string) string { return strings.Replace(s, "toy/shift", "toy/SCALE", 2) },
	}
	for name, change := range manifests {
		g := f.again()
		text := change(string(g.sealed()))
		out["manifest: "+name] = g.pack([]byte(text))
	}
	for name, value := range map[string]string{"nothing": "", "control": "toy/sc\x1b[2Jale", "lines": "toy/scale\n::error::x", "bidi": "toy/\u202escale", "zero width": "toy/sc\u200bale", "zero": "toy/\x00",
		"long": strings.Repeat("k", 2000), "HTML": "toy/<script>alert(1)</script>", "Markdown": "toy/[x](https://evil.example)|`@a #1`", "a command": "::error file=a::b", "an old command": "##[error]x", "up": "../../x"} {
		for _, field := range []string{"name", "file", "source"} {
			g := f.again()
			g.kernel(0)[field] = value
			if field == "name" {
				g.kernel(0)["file"] = "kernels/" + value + "/kernel.yaml"
			}
			if field != "source" || strings.Contains("control lines bidi zero width zero long", name) {
				out["kernel: "+field+" "+name] = g.seal()
			}
		}
	}
	for name, change := range map[string]func(k map[string]any){
		"no function":          func(k map[string]any) { delete(k, "functions") },
		"another function":     func(k map[string]any) { k["functions"] = []any{map[string]any{"name": "f()", "short": "f"}} },
		"no case":              func(k map[string]any) { k["cases"] = []any{} },
		"another case":         func(k map[string]any) { k["cases"] = []any{"tiny"} },
		"a case more":          func(k map[string]any) { k["cases"] = append(k["cases"].([]any), "tiny") },
		"a case twice":         func(k map[string]any) { k["cases"] = []any{"small", "small"} },
		"a case above":         func(k map[string]any) { k["cases"] = []any{"../small"} },
		"another op":           func(k map[string]any) { k["op"] = "other" },
		"another architecture": func(k map[string]any) { k["arch"] = "sm_80" },
		"no architecture":      func(k map[string]any) { k["arch"] = "a" },
		"an id that is none":   func(k map[string]any) { k["code_id"] = "v2" + strings.Repeat("g", 64) },
		"an id of nobody":      func(k map[string]any) { k["code_id"] = "v2" + strings.Repeat("0", 64) },
		"no id":                func(k map[string]any) { delete(k, "code_id") },
		"built and not built":  func(k map[string]any) { k["why"] = "because" },
		"not built":            func(k map[string]any) { delete(k, "code_id"); delete(k, "host_id"); k["why"] = "because <b>" },
		"does not compile": func(k map[string]any) {
			delete(k, "code_id")
			delete(k, "host_id")
			k["why"], k["blame"], k["detail"] = "x", true, "::error::x\n##[error]y"
		},
		"escapes in the detail": func(k map[string]any) {
			delete(k, "code_id")
			delete(k, "host_id")
			k["why"], k["detail"] = "x", "\x1b[2J"
		},
		"an entry left out":       func(k map[string]any) { k["left_out"] = []any{"@a <!-- x -->"} },
		"a line below the ground": func(k map[string]any) { k["line"] = -1 },
		"left out without a name": func(k map[string]any) { k["left_out"] = []any{""} },
	} {
		g := f.again()
		change(g.kernel(0))
		out["kernel: "+name] = g.seal()
	}
	for name, change := range map[string]func(g *forger){
		"a kernel retired by nobody":  func(g *forger) { g.leave("toy/scale", "kernels/toy/scale/kernel.yaml", "faster") },
		"retired in a file of nobody": func(g *forger) { g.leave("toy/scale", "kernels/toy/none/kernel.yaml", "faster") },
		"retired above the ground":    func(g *forger) { g.leave("toy/scale", "../../../etc/passwd", "faster") },
		"retired with lines":          func(g *forger) { g.leave("toy/scale", "kernels/toy/scale/kernel.yaml", "x\n::error::y") },
		"retired without a reason":    func(g *forger) { g.leave("toy/scale", "kernels/toy/scale/kernel.yaml", "") },
		"retired and there": func(g *forger) {
			g.manifest["gone"] = []any{map[string]any{"name": "toy/scale", "file": "kernels/toy/scale/kernel.yaml", "reason": "x"}}
		},
		"a case retired by nobody": func(g *forger) {
			g.kernel(0)["cases"], g.kernel(0)["retired"] = []any{}, []any{map[string]any{"case": "small", "reason": "x"}}
		},
		"an architecture retired by nobody": func(g *forger) {
			g.kernel(0)["arch"], g.kernel(0)["retired"] = "sm_80", []any{map[string]any{"arch": "sm_90", "reason": "x"}}
		},
		"two things retired at once": func(g *forger) {
			g.kernel(0)["retired"] = []any{map[string]any{"case": "small", "arch": "sm_90", "reason": "x"}}
		},
		"nothing retired":     func(g *forger) { g.kernel(0)["retired"] = []any{map[string]any{"reason": "x"}} },
		"bidi in a reason":    func(g *forger) { g.kernel(0)["retired"] = []any{map[string]any{"case": "small", "reason": "\u202e"}} },
		"was what it was not": func(g *forger) { g.kernel(0)["was"] = map[string]any{"kernel": "toy/none"} },
		"was another, whose place it takes": func(g *forger) {
			k := g.kernel(0)
			k["name"], k["file"], k["was"] = "toy/new", "kernels/toy/new/kernel.yaml", map[string]any{"kernel": "toy/scale"}
		},
		"was nothing":                 func(g *forger) { g.kernel(0)["was"] = map[string]any{} },
		"was an option":               func(g *forger) { g.kernel(0)["was"] = map[string]any{"arch": "--x"} },
		"brings the base's case":      func(g *forger) { g.kernel(0)["brought"] = []any{map[string]any{"case": "small"}} },
		"brings a case of no harness": func(g *forger) { g.kernel(0)["brought"] = []any{map[string]any{"case": "tiny", "harness": "x"}} },
		"brings an easier op": func(g *forger) {
			g.kernel(0)["op"], g.kernel(0)["brought"] = "easy", []any{map[string]any{"case": "small", "harness": strings.Repeat("0", 64)}}
		},
		"the commit of nobody": func(g *forger) {
			g.manifest["head"] = strings.Repeat("2", 40)
			g.kernel(0)["was"] = map[string]any{"kernel": "toy/none"}
		},
	} {
		g := f.again()
		change(g)
		out["declares: "+name] = g.seal()
	}
	for name, change := range map[string]func(g *forger){
		"a kernel missing": func(g *forger) { g.manifest["kernels"] = g.manifest["kernels"].([]any)[1:] },
		"no kernel":        func(g *forger) { g.manifest["kernels"] = []any{} },
		"a kernel twice":   func(g *forger) { g.manifest["kernels"] = append(g.manifest["kernels"].([]any), g.kernel(0)) },
		"a kernel more": func(g *forger) {
			k := maps.Clone(g.kernel(0))
			k["name"], k["file"] = "toy/more", "kernels/toy/more/kernel.yaml"
			k["code_id"] = strings.Repeat("1", 64)
			g.manifest["kernels"] = append(g.manifest["kernels"].([]any), k)
		},
		"kernels exchanged": func(g *forger) {
			g.kernel(0)["code_id"], g.kernel(1)["code_id"] = g.kernel(1)["code_id"], g.kernel(0)["code_id"]
		},
		"10,001 kernels": func(g *forger) {
			var all []any
			for i := range 10_001 {
				k := maps.Clone(g.kernel(0))
				k["name"] = fmt.Sprint("toy/k", i)
				all = append(all, k)
			}
			g.manifest["kernels"] = all
		},
		"no correctness":   func(g *forger) { g.drop("correctness") },
		"no profile":       func(g *forger) { g.drop("profile") },
		"no times":         func(g *forger) { g.drop("latency") },
		"no compiler":      func(g *forger) { g.drop("static") },
		"nothing measured": func(g *forger) { g.files = map[string][]byte{} },
		"sessions":         func(g *forger) { g.edit("latency", func(r map[string]any) { r["tier"] = "sessions" }) },
		"calibration":      func(g *forger) { g.edit("latency", func(r map[string]any) { r["tier"] = "calibration" }) },
		"a tier of nobody": func(g *forger) { g.edit("latency", func(r map[string]any) { r["tier"] = "\u202e" }) },
		"the other arm failed": func(g *forger) {
			g.edit("latency", func(r map[string]any) {
				r["experiment"], r["raw"] = nil, nil
				r["failure"] = map[string]any{"kind": "hang", "message": "x", "other_arm": true}
			})
		},
		"a tool failed": func(g *forger) {
			g.edit("latency", func(r map[string]any) {
				r["experiment"], r["raw"] = nil, nil
				r["failure"] = map[string]any{"kind": "tool", "message": "::error::x"}
			})
		},
		"a kernel that hangs": func(g *forger) {
			g.edit("latency", func(r map[string]any) { r["failure"] = map[string]any{"kind": "hang", "message": "<b>@a"} })
		},
		"the future": func(g *forger) {
			g.edit("correctness", func(r map[string]any) { r["provenance"].(map[string]any)["recorded"] = "2999-01-01T00:00:00Z" })
		},
		"no date": func(g *forger) {
			g.edit("correctness", func(r map[string]any) { r["provenance"].(map[string]any)["recorded"] = "now" })
		},
		"another machine": func(g *forger) {
			g.edit("profile", func(r map[string]any) {
				r["provenance"].(map[string]any)["machine"].(map[string]any)["gpu"] = "NVIDIA B200"
			})
		},
		"another harness": func(g *forger) {
			g.edit("correctness", func(r map[string]any) { r["address"].(map[string]any)["harness_id"] = strings.Repeat("0", 64) })
		},
		"checks changed": func(g *forger) {
			g.edit("correctness", func(r map[string]any) { r["checks"].([]any)[0].(map[string]any)["relative_error"] = 0 })
		},
		"no checks": func(g *forger) { g.edit("correctness", func(r map[string]any) { delete(r, "checks") }) },
		"a check of 1e308": func(g *forger) {
			g.edit("correctness", func(r map[string]any) { r["checks"].([]any)[0].(map[string]any)["relative_error"] = 1e308 })
		},
		"figures changed": func(g *forger) {
			g.edit("profile", func(r map[string]any) {
				for _, v := range r["metrics"].(map[string]any) {
					v.(map[string]any)["value"] = 1e308
				}
			})
		},
		"times of 1e308":  func(g *forger) { g.edit("latency", overAllTimes(1e308)) },
		"times of 1e12":   func(g *forger) { g.edit("latency", overAllTimes(1e12)) },
		"times of 0":      func(g *forger) { g.edit("latency", overAllTimes(0)) },
		"times below 0":   func(g *forger) { g.edit("latency", overAllTimes(-1)) },
		"times of 5e-324": func(g *forger) { g.edit("latency", overAllTimes(5e-324)) },
		"spills below 0":  func(g *forger) { g.edit("static", overAllMetrics(-1)) },
		"spills of 1e308": func(g *forger) { g.edit("static", overAllMetrics(1e308)) },
		"half a register": func(g *forger) { g.edit("static", overAllMetrics(0.5)) },
		"a unit of nobody": func(g *forger) {
			g.edit("static", func(r map[string]any) {
				for _, v := range r["metrics"].(map[string]any) {
					v.(map[string]any)["unit"] = "elephants"
				}
			})
		},
		"figures of the compiler that are not its": func(g *forger) {
			g.edit("static", func(r map[string]any) {
				r["metrics"].(map[string]any)["latency.typical"] = map[string]any{"value": 1, "unit": "ns"}
			})
		},
		"an unknown key in a record": func(g *forger) { g.edit("correctness", func(r map[string]any) { r["passed"] = true }) },
		"NaN in a record":            func(g *forger) { g.text("latency", `"kernel_nodes": `, `"kernel_nodes": NaN`) },
		"raw inputs of nobody":       func(g *forger) { g.files["raw/profile.00000000.ncu.csv.gz"] = []byte("x") },
		"raw inputs that are a bomb": func(g *forger) { g.raw("correctness", func([]byte) []byte { return make([]byte, 300<<20) }) },
		"raw inputs of nothing":      func(g *forger) { g.raw("correctness", func([]byte) []byte { return nil }) },
		"raw inputs cut":             func(g *forger) { g.raw("profile", func(b []byte) []byte { return b[:len(b)/2] }) },
		"raw inputs with NaN": func(g *forger) {
			g.raw("latency", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(":1"), []byte(":NaN")) })
		},
		"raw inputs of another case": func(g *forger) {
			g.raw("correctness", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("small"), []byte("tiny")) })
		},
		"no raw inputs": func(g *forger) { g.edit("correctness", func(r map[string]any) { delete(r, "raw") }); g.drop("nothing") },
		"a record twice under one key": func(g *forger) {
			for n, d := range maps.Clone(g.files) {
				if strings.HasPrefix(n, "records/") {
					g.files[n+"x"] = append(slices.Clone(d), '\n')
				}
			}
		},
		"a record that is large": func(g *forger) {
			g.edit("correctness", func(r map[string]any) { r["provenance"].(map[string]any)["compiler"] = strings.Repeat("c", 9<<20) })
		},
	} {
		g := f.again()
		change(g)
		out["records: "+name] = g.seal()
	}
	return out
}

func overAllMetrics(x float64) func(map[string]any) {
	return func(r map[string]any) {
		for _, v := range r["metrics"].(map[string]any) {
			v.(map[string]any)["value"] = x
		}
	}
}

// overAllTimes replaces the times of the head in an experiment.
func overAllTimes(x float64) func(map[string]any) {
	return func(r map[string]any) {
		e, ok := r["experiment"].(map[string]any)
		if !ok {
			return
		}
		for _, b := range e["blocks"].([]any) {
			for _, s := range b.(map[string]any)["head"].([]any) {
				batches := s.(map[string]any)["batches_ns"].([]any)
				for i := range batches {
					batches[i] = x
				}
			}
		}
	}
}

// mostMemory is what judging any bundle may take: the bundle, what it unpacks
// to, and one record with its raw inputs.
const mostMemory = 1 << 20 // KiB

// TestForgedBundles: none passes, none ends gate, and nothing that a reader's
// terminal, browser or runner acts on comes out.
func TestForgedBundles(t *testing.T) {
	takesLong(t)
	f := newForger(t)
	judge := func(data []byte) (status int, log string, v *verdict.Verdict, memory int64) {
		path, out := filepath.Join(t.TempDir(), "bundle"), t.TempDir()
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		peak := filepath.Join(t.TempDir(), "peak")
		cmd, text := f.command("peak", peak, "gate", "judge", "--format", "github", "--verbose", "--out", out, path)
		cmd.Run()
		v, _ = verdict.Read(filepath.Join(out, "verdict.json"))
		return cmd.ProcessState.ExitCode(), text.String(), v, peakOf(t, peak)
	}
	if status, log, _, _ := judge(f.whole); status != 0 {
		t.Fatalf("the bundle itself: exit %d\n%s", status, log)
	}
	if status, log, _, _ := judge(f.again().seal()); status != 0 {
		t.Fatalf("the bundle made again: exit %d\n%s", status, log)
	}
	all, most := forgeries(f), int64(0)
	if len(all) < 60 {
		t.Errorf("only %d forgeries", len(all))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		status, log, v, memory := judge(all[name])
		most = max(most, memory)
		if status != 1 && status != 3 && status != 4 || v == nil || v.Status == verdict.Pass || v.Status == verdict.Warn {
			t.Errorf("%s: exit %d\n%s", name, status, log)
			continue
		}
		if memory > mostMemory {
			t.Errorf("%s: %d KiB of memory", name, memory)
		}
		harmlessText(t, name, log)
		for _, line := range strings.Split(log, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "::") && !regexp.MustCompile(`^::(?:error|warning|notice) (?:file=|title=)`).MatchString(line) || strings.Contains(line, "##[") {
				t.Errorf("%s: a command: %q", name, line)
			}
		}
		harmlessText(t, name, report.Markdown(v, report.CommentBytes))
	}
	t.Logf("%d forged bundles, at most %d MiB of memory", len(all), most>>10)
}

// TestHeadIsBuilt: where the policy asks for it, measurements of one commit do not
// pass under the name of another.
func TestHeadIsBuilt(t *testing.T) {
	if version, why := command.Landlock(); version == 0 {
		t.Skip(why)
	}
	f := newForger(t)
	f.env = append(f.env, "GATE_CONFINE=")
	f.run("git", "checkout", "-q", "change")
	f.change(1)
	f.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qam", "something else")
	cmd, head := f.command("git", "rev-parse", "HEAD")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	other := strings.TrimSpace(head.String())
	f.run("git", "checkout", "-q", "main")
	g := f.again()
	g.manifest["head"] = other
	for _, c := range []struct {
		policy string
		bundle []byte
		status int
		want   string
	}{
		{"never", g.seal(), 0, ""},
		{"always", f.whole, 0, "kernels whose head was built here: 2; that are what the bundle says: 2"},
		{"always", g.seal(), 4, "and what is built here of the commit " + other[:12] + " is "},
		{"touched", g.seal(), 0, "kernels whose head was built here: 1; that are what the bundle says: 1"},
	} {
		f.run("git", "checkout", "-q", "policies.yaml")
		f.run("sed", "-i", "s/^store:/build_head: "+c.policy+"\\n&/", "policies.yaml")
		path := filepath.Join(t.TempDir(), "bundle")
		if err := os.WriteFile(path, c.bundle, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd, text := f.command("gate", "judge", path)
		if cmd.Run(); cmd.ProcessState.ExitCode() != c.status || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: exit %d, want %d and %q\n%s", c.policy, cmd.ProcessState.ExitCode(), c.status, c.want, text)
		}
	}
}

func harmlessText(t *testing.T, name, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == unicode.ReplacementChar) {
			t.Errorf("%s: the output holds %U", name, r)
			return
		}
	}
	if strings.Contains(text, "](http") && !strings.Contains(text, "`") {
		t.Errorf("%s: the output holds a link", name)
	}
}
