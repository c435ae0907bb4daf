import { type Block, linesOf } from './block.ts'

interface Line {
  readonly start: number
  readonly text: string
}

// Matches a line that ends or continues the construct above it, in any language.
const CONTINUATION_PATTERN =
  /^\s*(?:[\])}>]|end\b|else\b|elif\b|elsif\b|except\b|finally\b|catch\b|rescue\b|ensure\b|then\b|fi\b|done\b|esac\b)/
const COMMENT_OR_ANNOTATION_PATTERN = /^\s*(?:\/\/|\/\*|\*|#|--|;|%|"""|'''|@|\[)/
const DECLARATION_PATTERN =
  /^\s*(?:(?:export|default|public|private|protected|internal|static|abstract|final|async|pub(?:\([^)]*\))?|unsafe|extern|override|virtual|sealed|readonly|declare|inline|local)\s+)*(?:function\*?|class|interface|type|enum|struct|trait|impl|def|defp|defmodule|fn|fun|func|sub|proc|module|namespace|package|object|record|protocol|extension|const|let|var|val|create\s+(?:or\s+replace\s+)?(?:table|function|view|index|procedure|trigger))\s+[`"']?([\p{L}_$][\p{L}\p{N}_$.:]*)/iu
const METHOD_PATTERN =
  /^\s+(?:(?:public|private|protected|static|async|get|set|override|final|virtual)\s+)*(?:[\w<>[\],.?]+\s+)?([\p{L}_$#][\p{L}\p{N}_$]*)\s*(?:<[^>]*>)?\(.*\)?\s*(?::.*)?\{\s*$/u

const MAX_LINE_LENGTH = 300
// No real program is nested deeper.
const MAX_DEPTH = 16

/**
 * Splits a program into its declarations. Uses only indentation and keywords, so it works for any block-structured
 * language. Splits a declaration of more than `max` characters into its own parts, each under its name.
 */
export function splitCode(text: string, max: number): Block[] {
  return splitParts(linesOf(text), text.length, [], max)
}

function splitParts(lines: readonly Line[], end: number, path: readonly string[], max: number): Block[] {
  const base = lines.reduce(
    (min, { text }) =>
      text.trim() === '' || CONTINUATION_PATTERN.test(text) ? min : Math.min(min, indentOf(text)),
    Number.POSITIVE_INFINITY,
  )
  const starts = lines.flatMap((_, i) => (beginsPart(lines, i, base) ? [i] : []))
  if (starts[0] !== 0) starts.unshift(0)
  return starts.flatMap((from, n) => {
    const to = starts[n + 1] ?? lines.length
    const part = lines.slice(from, to)
    const stop = lines[to]?.start ?? end
    const start = part[0]!.start
    const name = findPartName(part, base)
    const inner = name === null ? path : [...path, name]
    if (stop - start <= max || part.length < 3 || inner.length >= MAX_DEPTH)
      return [{ start, end: stop, path: inner }]
    const first = part.findIndex(({ text }) => findDeclaredName(text) !== null)
    const rest = part.slice(first + 1)
    const deeper = rest.some(({ text }) => text.trim() !== '' && indentOf(text) > base)
    // A part without inner structure stays whole; the caller splits it at lines.
    if (first === -1 || rest.length === 0 || !deeper) return [{ start, end: stop, path: inner }]
    const body = rest.filter(({ text }) => text.trim() === '' || indentOf(text) > base)
    if (body.length < rest.length - 2) return [{ start, end: stop, path: inner }]
    const head: Block = { start, end: rest[0]!.start, path: inner }
    return [head, ...splitParts(rest, stop, inner, max)]
  })
}

/** True if a line with the base indentation is a declaration, or follows a blank line or the end of a construct. */
function beginsPart(lines: readonly Line[], i: number, base: number): boolean {
  const { text } = lines[i]!
  if (text.trim() === '' || indentOf(text) > base || CONTINUATION_PATTERN.test(text)) return false
  const before = lines[i - 1]?.text ?? ''
  if (before.trim() === '') return true
  if (COMMENT_OR_ANNOTATION_PATTERN.test(before) && indentOf(before) <= base) return false
  return findDeclaredName(text) !== null || (CONTINUATION_PATTERN.test(before) && indentOf(before) <= base)
}

function findPartName(lines: readonly Line[], base: number): string | null {
  for (const { text } of lines) {
    if (text.trim() === '' || indentOf(text) > base) continue
    const name = findDeclaredName(text)
    if (name !== null) return name
  }
  return null
}

/** Returns the name that a line declares; null if it declares none. Treats a very long line as data. */
function findDeclaredName(text: string): string | null {
  if (text.length > MAX_LINE_LENGTH) return null
  return (DECLARATION_PATTERN.exec(text) ?? METHOD_PATTERN.exec(text))?.[1] ?? null
}

function indentOf(text: string): number {
  return /^[ \t]*/.exec(text)![0].replaceAll('\t', '    ').length
}
