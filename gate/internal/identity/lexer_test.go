package identity

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func cut(source string, lenient bool) ([]string, error) {
	x := newLexer([]byte(source))
	x.lenient = lenient
	var tokens []string
	for {
		k, text := x.next()
		switch k {
		case kindEnd:
			return tokens, x.err
		case kindDirectiveEnd:
			tokens = append(tokens, "<end>")
		default:
			tokens = append(tokens, string(text))
		}
	}
}

func TestLexer(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"identifiers", "int é_1 = $x;", "int|é_1|=|$x|;"},
		{"numbers", "1'000 0x1p-3f 1.5e+3 .5f 1..2 0b1'1 12_km", "1'000|0x1p-3f|1.5e+3|.5f|1..2|0b1'1|12_km"},
		{"minus after a hex digit e", "0xe-1", "0xe-1"}, // one preprocessing number, as in the standard
		{"quote after a number", "case 1:'a'", "case|1|:|'a'"},
		{"line comment", "a // b 'c\nd", "a|d"},
		{"continued line comment", "a // b \\\nc\nd", "a|d"},
		{"continued line comment, CRLF", "a // b \\\r\nc\r\nd", "a|d"},
		{"line comment at the end", "a //", "a"},
		{"block comment", "a/* ' \n * \" **/b", "a|b"},
		{"no nested comments", "/* /* */ a", "a"},
		{"comment in a string", `"/* no */ // no" a`, `"/* no */ // no"|a`},
		{"string in a comment", "/* \" */ a // \"\nb", "a|b"},
		{"escapes", `"a\"b\\" '\'' '\\'`, `"a\"b\\"|'\''|'\\'`},
		{"prefixes", `u8"a" L'b' U"c" uR"(d)"`, `u8"a"|L'b'|U"c"|uR"(d)"`},
		{"no prefix", `x"a"`, `x|"a"`},
		{"raw string", "R\"(a\"b\n//c\\)\" d", "R\"(a\"b\n//c\\)\"|d"},
		{"raw string with delimiter", `R"x()" )y" )x" a`, `R"x()" )y" )x"|a`},
		{"splices", "ab\\\ncd \\\n \"x\\\ny\" 12\\\r\n34 /\\\n/ no\ne", `abcd|"xy"|1234|e`},
		{"splice in a raw string", "R\"(a\\\nb)\"", "R\"(a\\\nb)\""},
		{"operators", "a<<=b->*c<=>d...e##f", "a|<<=|b|->*|c|<=>|d|...|e|##|f"},
		{"plus is not plus plus", "a+ +b++", "a|+|+|b|++"},
		{"launch", "k<<<1,2>>>(p)", "k|<<|<|1|,|2|>>|>|(|p|)"},
		{"directive", "#  define A(x) #x /* c */ // d\nb # c", "#|define|A|(|x|)|#|x|<end>|b|#|c"},
		{"continued directive", "#define A \\\n 1\nb", "#|define|A|1|<end>|b"},
		{"comment through a directive", "#define A /* \n */ 1\nb", "#|define|A|1|<end>|b"},
		{"directive at the end", "#undef A", "#|undef|A|<end>"},
		{"quote in a directive", "#error don't\na", "#|error|don|'t|<end>|a"},
		{"raw string ends with its directive", "#define A R\"(\n#endif\nb", "#|define|A|R\"(|<end>|#|endif|<end>|b"},
		{"other spelling of #", "%:define A\na %: b", "%:|define|A|<end>|a|%|:|b"},
		{"directive after a comment", "/* c */ #undef A\n", "#|undef|A|<end>"},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := cut(c.source, false)
			if err != nil || strings.Join(got, "|") != c.want {
				t.Errorf("tokens %q, %v\nwant   %q", got, err, strings.Split(c.want, "|"))
			}
		})
	}
}

func TestLexerTorn(t *testing.T) {
	for _, c := range []struct {
		source string
		line   int
		msg    string
	}{
		{"a\n/* b", 2, "comment without an end"},
		{"a\n\n'b\n", 3, "literal without an end"},
		{`"a`, 1, "literal without an end"},
		{`"a\`, 1, "literal without an end"},
		{"R\"x(a)\"\n", 1, "literal without an end"},
	} {
		_, err := cut(c.source, false)
		var e *formatError
		if !errors.As(err, &e) || e.Line != c.line || e.Msg != c.msg {
			t.Errorf("%q: %v, want line %d: %s", c.source, err, c.line, c.msg)
		}
	}
	if got, err := cut("a 'b \"c\nd", true); err != nil || !slices.Equal(got, []string{"a", "'b \"c", "d"}) {
		t.Errorf("open quotes in skipped text: %q, %v", got, err)
	}
}

// TestLexerLines holds the line number against a plain count.
func TestLexerLines(t *testing.T) {
	source := "a\n/* x\n\ny */ b \\\n c // d \\\n e\n\"f\\\n\" R\"(\n)\" g\\\nh\n#if 1\n#endif\n/\\\n* i */ last"
	x := newLexer([]byte(source))
	for {
		k, text := x.next()
		if k == kindEnd {
			t.Fatal("no last token")
		}
		if string(text) == "last" {
			break
		}
	}
	if want := 1 + strings.Count(source, "\n"); x.line != want {
		t.Errorf("line %d, want %d", x.line, want)
	}
}
