package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	// maxDistinct is how many different words are kept, and maxWordBytes how
	// long each may be: they bound the memory. Other words are only counted.
	maxDistinct  = 1 << 20
	maxWordBytes = 128
	blockBytes   = 64 << 10
)

// counter adds up texts.
type counter struct {
	lines, words, bytes int64
	distinct            map[string]*int64 // pointers, so that counting on allocates nothing
	dropped             bool

	word    []byte // the one under way
	long    bool   // it is over maxWordBytes
	pending bool   // an apostrophe stands behind it
}

func newCounter() *counter { return &counter{distinct: map[string]*int64{}} }

// count reads a text to its end; the end of the text ends a word. It returns
// ctx's cause if that ends first.
func (c *counter) count(ctx context.Context, text io.Reader) error {
	block := make([]byte, 0, blockBytes)
	for ctx.Err() == nil {
		n, err := text.Read(block[len(block):cap(block)])
		block = block[:len(block)+n]
		c.bytes += int64(n)
		c.lines += int64(bytes.Count(block[len(block)-n:], []byte("\n")))
		used := c.take(block, err != nil)
		block = append(block[:0], block[used:]...)
		if err != nil {
			c.endWord()
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
	c.endWord()
	return context.Cause(ctx)
}

// take returns how many bytes it has used: the start of a character whose end
// is not read yet is left for the next block.
func (c *counter) take(block []byte, last bool) int {
	used := 0
	for used < len(block) {
		if !last && !utf8.FullRune(block[used:]) {
			break
		}
		r, size := utf8.DecodeRune(block[used:])
		c.character(r, size)
		used += size
	}
	return used
}

// character counts a byte that is not UTF-8 as no part of a word.
func (c *counter) character(r rune, size int) {
	switch {
	case r == utf8.RuneError && size == 1:
		c.endWord()
	case inWord(r):
		if c.pending {
			c.grow('\'')
		}
		c.pending = false
		c.grow(unicode.ToLower(r))
	case (r == '\'' || r == '’') && len(c.word) > 0 && !c.pending:
		c.pending = true
	default:
		c.endWord()
	}
}

// inWord asks the tables only for what is not ASCII.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

func (c *counter) grow(r rune) {
	if len(c.word)+utf8.UTFMax > maxWordBytes {
		c.long = true
		return
	}
	c.word = utf8.AppendRune(c.word, r)
}

func (c *counter) endWord() {
	if len(c.word) > 0 {
		c.words++
		c.keep()
	}
	c.word, c.long, c.pending = c.word[:0], false, false
}

func (c *counter) keep() {
	if count, known := c.distinct[string(c.word)]; known && !c.long {
		*count++
		return
	}
	if c.long || len(c.distinct) >= maxDistinct {
		c.dropped = true
		return
	}
	c.distinct[string(c.word)] = new(int64(1))
}

func (c *counter) summary(top int) Summary {
	return Summary{Lines: c.lines, Words: c.words, Bytes: c.bytes, Top: c.top(top), Approximate: c.dropped}
}

// top lists the n most frequent words, those of the same count by name. It
// sorts no more than it lists: a call whose time is over waits for it.
func (c *counter) top(n int) []Word {
	list := make([]Word, 0, n+1)
	for text, count := range c.distinct {
		word := Word{text, *count}
		if len(list) == n && byRank(word, list[n-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, word, byRank)
		list = slices.Insert(list, at, word)
		list = list[:min(n, len(list))]
	}
	return list
}

func byRank(a, b Word) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
}
