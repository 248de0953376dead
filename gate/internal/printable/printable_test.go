package printable

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

func TestLineAndText(t *testing.T) {
	for _, c := range []struct {
		in, line, text string
	}{
		{"plain µ → 1", "plain µ → 1", "plain µ → 1"}, {"a\tb\nc", `a\u0009b\u000ac`, "a\tb\nc"}, {"a\r\n", `a\u000d\u000a`, `a\u000d` + "\n"},
		{"\x1b[0m", `\u001b[0m`, `\u001b[0m`}, {"a\xffb", `a\ufffdb`, `a\ufffdb`}, {"\u00ad\ufeff", `\u00ad\ufeff`, `\u00ad\ufeff`},
		{"\x7f\u009b", `\u007f\u009b`, `\u007f\u009b`}, {"\u202e\u2066\u2028", `\u202e\u2066\u2028`, `\u202e\u2066\u2028`}, {"\x00", `\u0000`, `\u0000`},
	} {
		if got := Line(c.in); got != c.line {
			t.Errorf("%q as a line is %q, want %q", c.in, got, c.line)
		}
		if got := Text(c.in); got != c.text {
			t.Errorf("%q as a text is %q, want %q", c.in, got, c.text)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in, want string
		most     int
	}{{"", "", 3}, {"abc", "abc", 3}, {"abcd", "abc…", 3}, {"äöüß", "äöü…", 3}, {"a\x1bc\x1b", `a\u001bc…`, 3}, {"\xff\xff", `\ufffd…`, 1}, {"a", "…", 0}} {
		if got := Cut(c.in, c.most); got != c.want {
			t.Errorf("%q cut to %d is %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

func TestFirstAndLast(t *testing.T) {
	for text, want := range map[string][2]string{"": {"", ""}, "a": {"a", "a"}, "\n a \nb\n": {"a", "b"}, "a\n  b\x07  \n\n": {"a", `b\u0007`}, "\n": {"", ""}} {
		if got := [2]string{First(text), Last(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("x", 400)
	if got := First(long); got != Last(long) || len(got) != 300+len("…") {
		t.Errorf("a long line keeps %d bytes", len(got))
	}
}

// TestJSON: no character that a terminal acts on stays, and the value does.
func TestJSON(t *testing.T) {
	value := map[string]string{"plain": "ä→漢", "hostile": "a\u009bb\u202ec\u007fd\u200be\u2066f\u2028g\U000e0041h\x1b[2J\r\n\t", "\u202ekey": ""}
	data, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got := JSON(data)
	if i := bytes.IndexFunc(got, func(r rune) bool { return hidden(r) && r != '\n' && r != '\t' }); i >= 0 {
		t.Errorf("%q is left", got[i:min(len(got), i+8)])
	}
	var back map[string]string
	if err := json.Unmarshal(got, &back); err != nil || !maps.Equal(back, value) {
		t.Errorf("%q, %v", back, err)
	}
	if !bytes.Contains(got, []byte("ä→漢")) || !bytes.Contains(got, []byte(`\udb40\udc41`)) {
		t.Errorf("%s", got)
	}
}
