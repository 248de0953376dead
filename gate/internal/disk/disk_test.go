package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	names = slices.Sorted(slices.Values(names))
	var got []string
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", got, names)
	}
}

// Readers see one of the texts that writers wrote, whole.
func TestWriteFileIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, WriteFile(path, nil))
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		write := []func(string, []byte) error{WriteFile, ReplaceFile}[i%2]
		writers.Go(func() {
			for range 20 {
				if err := write(path, bytes.Repeat([]byte{byte('a' + i)}, 100_000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				data, err := os.ReadFile(path)
				if err != nil || len(data) != 0 && (len(data) != 100_000 || bytes.Count(data, data[:1]) != len(data)) {
					t.Errorf("%d bytes, %v", len(data), err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	wantOnly(t, filepath.Dir(path), "file")
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "folder", "sub"), 0o755))
	if err := WriteFile(filepath.Join(dir, "folder"), []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	wantOnly(t, dir, "folder")
	if err := WriteFile(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("fine"), []byte("12345678"), 0o644))
	must(t, os.WriteFile(at("large"), []byte("123456789"), 0o644))
	must(t, os.Symlink("fine", at("link")))
	must(t, os.Symlink("none", at("link to nothing")))
	must(t, unix.Mkfifo(at("pipe"), 0o644))
	must(t, os.Mkdir(at("folder"), 0o755))
	if data, err := ReadFile(at("fine"), 8); err != nil || string(data) != "12345678" {
		t.Errorf("%q, %v", data, err)
	}
	for _, name := range []string{"large", "link", "link to nothing", "pipe", "folder"} {
		if data, err := ReadFile(at(name), 8); err == nil || data != nil || err.Error() != at(name)+" is not a file of at most 8 bytes" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := ReadFile("/proc/self/status", 10); err == nil {
		t.Error("a file that does not tell its size is read beyond the limit")
	}
	if data, err := ReadFile("/proc/self/status", 1<<16); err != nil || !bytes.HasPrefix(data, []byte("Name:")) {
		t.Errorf("%.20q, %v", data, err)
	}
	if _, err := ReadFile(at("none"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestPublishFolder(t *testing.T) {
	for _, c := range []struct {
		name, there string
		whole       bool
		want        string
	}{
		{"nothing there", "", false, "new"}, {"another whole one", "old", true, "old"}, {"a damaged one", "old", false, "new"},
	} {
		dir := t.TempDir()
		made, final := filepath.Join(dir, "made"), filepath.Join(dir, "final")
		must(t, os.Mkdir(made, 0o700))
		must(t, os.WriteFile(filepath.Join(made, "new"), nil, 0o644))
		if c.there != "" {
			must(t, os.Mkdir(final, 0o755))
			must(t, os.WriteFile(filepath.Join(final, c.there), nil, 0o644))
		}
		must(t, PublishFolder(made, final, func() bool { return c.whole }))
		wantOnly(t, final, c.want)
		if info, err := os.Stat(final); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", c.name, info, err)
		}
	}
	if err := PublishFolder("/none/made", "/none/final", func() bool { return true }); err == nil {
		t.Error("published nothing")
	}
}

func TestSHA256(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("abc"), 0o644))
	if got, err := SHA256(path); err != nil || got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := SHA256(path + ".none"); err == nil || got != "" {
		t.Errorf("no file: %s, %v", got, err)
	}
}

// asked counts how often the question is asked; its answer is the file's text.
func asked(t *testing.T, a *Answers, path string, n *int) string {
	t.Helper()
	text, err := a.Ask("text", path, func() (string, error) {
		*n++
		data, err := os.ReadFile(path)
		return string(data), err
	}, func(s string) error {
		if !strings.HasPrefix(s, "v") {
			return fmt.Errorf("%q is not an answer", s)
		}
		return nil
	})
	must(t, err)
	return text
}

func TestAnswersLastAsLongAsTheFile(t *testing.T) {
	dir := t.TempDir()
	file, memory := filepath.Join(dir, "file"), filepath.Join(dir, "cache", "answers.json")
	must(t, os.WriteFile(file, []byte("v1"), 0o644))
	n := 0
	a := OpenAnswers(memory)
	asked(t, a, file, &n)
	asked(t, a, file, &n)
	a.Save()
	again := OpenAnswers(memory)
	if text := asked(t, again, file, &n); text != "v1" || n != 1 {
		t.Errorf("%q, asked %d times", text, n)
	}
	must(t, os.WriteFile(file, []byte("v22"), 0o644))
	if text := asked(t, again, file, &n); text != "v22" || n != 2 {
		t.Errorf("the file changed: %q, asked %d times", text, n)
	}
	if _, err := again.SHA256(file); err != nil {
		t.Error(err)
	}
	again.Save()
	a.Save() // has nothing new, and must not undo what again knows
	if text := asked(t, OpenAnswers(memory), file, &n); text != "v22" || n != 2 {
		t.Errorf("%q, asked %d times", text, n)
	}
	if _, err := a.Ask("text", filepath.Join(dir, "none"), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if text, err := a.Ask("other", file, func() (string, error) { return "odd", nil }, func(string) error { return errors.New("no") }); err == nil || text != "" {
		t.Errorf("an answer without sense: %q, %v", text, err)
	}
}

func TestOddMemoryIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("v1"), 0o644))
	info, err := os.Stat(file)
	must(t, err)
	forged := fmt.Sprintf(`{"text %s": {"size": 2, "mtime_ns": %d, "answer": "forged"}}`, file, info.ModTime().UnixNano())
	for name, text := range map[string]string{"empty": "", "no JSON": "{", "null": "null", "list": "[]", "other": `{"a":{"size":"x"}}`, "forged": forged} {
		memory := filepath.Join(dir, "answers.json")
		must(t, os.WriteFile(memory, []byte(text), 0o644))
		n := 0
		a := OpenAnswers(memory)
		if text := asked(t, a, file, &n); text != "v1" || n != 1 {
			t.Errorf("%s: %q, asked %d times", name, text, n)
		}
		a.Save()
		if asked(t, OpenAnswers(memory), file, &n); n != 1 {
			t.Errorf("%s was not mended", name)
		}
	}
	n := 0
	unwritable := OpenAnswers(filepath.Join(file, "answers.json"))
	if asked(t, unwritable, file, &n) != "v1" {
		t.Error("without a memory nothing is answered")
	}
	unwritable.Save()
}
