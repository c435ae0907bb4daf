/** A piece of text that belongs together: a paragraph, a function, the beginning of a section. */
export interface Block {
  /** Its position in the text, in characters. */
  readonly start: number
  readonly end: number
  /** What encloses it, outermost first: headings, or the names of what it is part of. */
  readonly path: readonly string[]
  /** The page of a PDF. */
  readonly page?: number
  /** Its text, if that differs from the text at its position. */
  readonly text?: string
}

/** The lines of a text with their start positions, without line endings. */
export function linesOf(text: string): readonly { readonly start: number; readonly text: string }[] {
  const lines: { start: number; text: string }[] = []
  for (let start = 0; start <= text.length; ) {
    const found = text.indexOf('\n', start)
    const end = found === -1 ? text.length : found
    lines.push({ start, text: text.slice(start, end).replace(/\r$/, '') })
    start = end + 1
  }
  return lines
}

/** A block without the white space around it; null when nothing is left. */
export function trimmed(text: string, block: Block): Block | null {
  let { start, end } = block
  // The first line keeps its indentation, which has a meaning in code.
  while (start < end && /\s/.test(text[start]!)) {
    const line = text.indexOf('\n', start)
    if (line === -1 || line >= end || text.slice(start, line).trim() !== '') break
    start = line + 1
  }
  while (end > start && /\s/.test(text[end - 1]!)) end--
  return end > start && text.slice(start, end).trim() !== '' ? { ...block, start, end } : null
}
