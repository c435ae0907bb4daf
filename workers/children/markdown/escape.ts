/** Escapes text for GitHub Flavored Markdown, as little as its readers need: chunks and searches see the escapes. */

// A backslash before punctuation or at the end of a line, and the marks of code, tags, character references, links,
// emphasis and deleted text.
const INLINE_MARK = /\\(?=[!-/:-@[-`{-~]|$)|`|<(?=[a-z/!?])|&(?=#?\w{1,32};)|\](?=[(:])|[*~]+|_+/gi
// Nearly every line has none of these characters.
const MAYBE_MARK = /[\\`<&\]*~_]/
const WORD_CHARACTER = /[\p{L}\p{N}]/u
// Marks of headings, quotes, lists, rules, tables and tasks at the start of a line.
const LINE_MARK =
  /^(?:#{1,6}(?=\s|$)|>|[-+*](?=\s|$)|(?:[-_*=]\s?){2,}$|=+$|\|?[\s:]{0,9}-[-\s:|]*$|\[[ x]\]\s)/i
const NUMBER_MARK = /^(\d{1,9})([.)])(?=\s|$)/

/** Escapes a piece of a line. */
export const escapeInline = (text: string): string =>
  MAYBE_MARK.test(text) ? text.replace(INLINE_MARK, escapeMark) : text

/** Escapes a run of marks. Marks with spaces on both sides, and underscores within words, mean nothing. */
function escapeMark(marks: string, at: number, line: string): string {
  if (!/^[*~_]/.test(marks)) return `\\${marks}`
  const [before, after] = [line[at - 1] ?? ' ', line[at + marks.length] ?? ' ']
  if (/\s/.test(before) && /\s/.test(after)) return marks
  if (marks.startsWith('_') && WORD_CHARACTER.test(before) && WORD_CHARACTER.test(after)) return marks
  return marks.replace(/./g, '\\$&')
}

/** Escapes a line that begins a block or continues one. */
export const escapeLine = (line: string): string => escapeStart(escapeInline(line))

/** Escapes the mark that a line begins with. */
export const escapeStart = (line: string): string =>
  NUMBER_MARK.test(line) ? line.replace(NUMBER_MARK, '$1\\$2') : LINE_MARK.test(line) ? `\\${line}` : line

/** Escapes the text of a cell. Its line ends become `<br>`. */
export const escapeCell = (text: string): string =>
  splitLines(text)
    .map((line) => escapeInline(line).replaceAll('|', '\\|'))
    .join('<br>')

/** Escapes the text of a heading, which is a single line. */
export const escapeHeading = (text: string): string =>
  escapeInline(splitLines(text).join(' ')).replace(/(^|\s)(#+)$/, '$1\\$2')

const EXTRA_SPACE = /[ \t\r\f\v\u2028\u2029]+/g
// A single space is most often all that a line has.
const MAYBE_EXTRA_SPACE = /[\t\r\f\v\u2028\u2029]| {2}/

/** Splits a text into its lines, without blank ones. Redundant white space disappears. */
export function splitLines(text: string): readonly string[] {
  const lines = text.includes('\n') ? text.split('\n') : [text]
  return lines.flatMap((line) => {
    const trimmed = (MAYBE_EXTRA_SPACE.test(line) ? line.replace(EXTRA_SPACE, ' ') : line).trim()
    return trimmed === '' ? [] : [trimmed]
  })
}
