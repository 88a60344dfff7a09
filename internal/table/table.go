// SPDX-License-Identifier: GPL-2.0

// Package table writes aligned text for people. What programs read is JSON.
//
// Neighbours: cmd/shunt (every verb that shows something).
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table collects rows and writes them aligned.
type Table struct {
	rows [][]string
}

// Row adds a row; cells may be of any kind.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// Write writes all rows, two spaces between columns, none at the line's end.
func (t *Table) Write(out io.Writer) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range strings.SplitAfter(b.String(), "\n") {
		text, ended := strings.CutSuffix(line, "\n")
		text = strings.TrimRight(text, " ")
		if ended {
			text += "\n"
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// Bytes writes an amount for people: 0 B, 1.5 KiB, 64 KiB.
func Bytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	text := strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0")
	return fmt.Sprintf("%s %ciB", text, units[unit])
}

// Count writes a number and its noun: "1 connection", "2 connections".
func Count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
