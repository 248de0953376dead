package ncu

import "strings"

// splitInstances separates the scalar of a cell from the list of instances that
// --print-metric-instances appends: "158 (0: 100; 16: 58)" or "6 (1; 2; 3)".
func splitInstances(text string) (scalar, list string) {
	if !strings.HasSuffix(text, ")") {
		return text, ""
	}
	i := strings.Index(text, " (")
	if i <= 0 {
		return text, ""
	}
	head := text[:i]
	if _, absent := absentCell(head); !absent && !numberLike(head) {
		return text, "" // a word or a device name with parentheses
	}
	return head, text[i+2 : len(text)-1]
}

// parseInstances reads the list inside the parentheses.
func parseInstances(list string, u unit) ([]Instance, error) {
	if list == "" {
		return nil, nil
	}
	parts := strings.Split(list, "; ")
	out := make([]Instance, 0, len(parts))
	for _, p := range parts {
		var in Instance
		if i := strings.LastIndex(p, ": "); i >= 0 {
			in.Key, p = p[:i], p[i+2:]
		}
		v, err := parseCell(p, u)
		if err != nil {
			return nil, err
		}
		if v.Kind == Missing {
			continue
		}
		in.Number, in.Text = v.Number, v.Text
		out = append(out, in)
	}
	return out, nil
}
