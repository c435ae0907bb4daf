import { type Archive, keepFirstOfEach, type Relation } from './archive.ts'
import { extractOfficeText } from './office-text.ts'
import type { RelatedParts } from './related.ts'
import { parseXml } from './xml.ts'

/** Reads what a sheet holds besides its cells: comments, text boxes, charts, headers and footers. */

/** Returns a line for each comment, with the name of its cell. */
export function readComments(xml: string): readonly string[] {
  const lines: string[] = []
  const authors: string[] = []
  let [cell, words, author] = ['', '', '']
  let isText = false
  let phonetic = 0
  parseXml(xml, {
    open(name, attributes) {
      if (name === 'comment' || name === 'threadedComment') {
        cell = attributes.ref ?? ''
        author = authors[Number(attributes.authorId)] ?? ''
        words = ''
      } else if (name === 'author') words = ''
      else if (name === 'rPh') phonetic++
      isText = name === 't' || name === 'text' || name === 'author'
    },
    text(data) {
      if (isText && phonetic === 0) words += data
    },
    close(name) {
      isText = false
      if (name === 'rPh') phonetic--
      else if (name === 'author') authors.push(words)
      else if (name === 'comment' || name === 'threadedComment') {
        // Excel repeats a thread as a comment for earlier versions, by an author of this name.
        const isCopy = name === 'comment' && author.startsWith('tc=')
        const line = words.replace(/\s+/g, ' ').trim()
        if (line !== '' && !isCopy) lines.push(`${cell}: ${line}`)
      }
    },
  })
  return lines
}

const HEADER_ELEMENTS = /^(odd|even|first)(Header|Footer)$/

/** Returns the lines of a sheet's headers and footers, without their codes (ECMA-376, part 1, 18.3.1.39). */
export function readHeadersAndFooters(xml: string): readonly string[] {
  const lines = new Set<string>()
  let words: string | null = null
  // The element follows the cells, which are most of the part.
  const from = xml.indexOf('headerFooter')
  if (from === -1) return []
  parseXml(xml.slice(Math.max(0, xml.lastIndexOf('<', from))), {
    open(name) {
      if (HEADER_ELEMENTS.test(name)) words = ''
    },
    text(data) {
      if (words !== null) words += data
    },
    close(name) {
      if (words === null || !HEADER_ELEMENTS.test(name)) return
      const line = decodeHeader(words)
      if (line !== '') lines.add(line)
      words = null
    },
  })
  return [...lines]
}

// Sections, names of fonts, sizes, colours and fields.
const HEADER_CODE = /&(?:"[^"]*"|K(?:[\dA-F]{6}|\d\d[+-]\d{3})|\d+|[\s\S])/gi

// Words next to fields, such as "Page 1 of 2", say nothing either.
const MAX_FIELD_WORDS = 2

/** Returns the words of a header or footer; '' if it only shows fields, such as the page number. */
export function decodeHeader(code: string): string {
  let hasField = false
  const words = code
    .replace(HEADER_CODE, (found) => {
      const letter = found.slice(1).toUpperCase()
      if (letter === '&') return '&'
      hasField ||= /^[APNDTFZ]$/.test(letter)
      return /^[LCR]$/.test(letter) ? '\t' : ''
    })
    .replace(/ *\t\s*/g, '\t')
    .trim()
  const count = words.match(/[\p{L}\p{N}]+/gu)?.length ?? 0
  return hasField && count <= MAX_FIELD_WORDS ? '' : words
}

/** A part that belongs to a sheet, with the parts that it shows. */
export interface SheetPart {
  readonly type: string
  readonly path: string
  readonly shown: readonly Relation[]
}

const PART_TYPES = /^(comments|threadedComment|drawing|vmlDrawing)$/

/** Lists the parts of a sheet, except those in `seen`. */
export async function listSheetParts(
  archive: Archive,
  path: string,
  related: RelatedParts,
  seen: Set<string>,
): Promise<readonly SheetPart[]> {
  const own = (await archive.readRelations(path)).filter(({ type }) => PART_TYPES.test(type))
  const parts: SheetPart[] = []
  for (const { type, path: part } of keepFirstOfEach(own, seen))
    parts.push({ type, path: part, shown: await related.list(part) })
  return parts
}

/** Reads the comments, text boxes, charts and diagrams of a sheet, as lines. */
export async function readSheetParts(
  archive: Archive,
  parts: readonly SheetPart[],
  related: RelatedParts,
): Promise<readonly string[]> {
  const lines: string[] = []
  for (const { type, path, shown } of parts) {
    const xml = (await archive.text(path)) ?? ''
    if (type === 'vmlDrawing') lines.push(readVmlTexts(xml))
    else if (type === 'drawing') lines.push(extractOfficeText(xml, { related: await related.read(shown) }))
    else lines.push(...readComments(xml))
  }
  return lines.filter((line) => line.trim() !== '')
}

/** Returns the labels of form controls. Comments have their text in a part of its own. */
function readVmlTexts(xml: string): string {
  let words = ''
  let depth = 0
  parseXml(xml, {
    open(name) {
      if (name === 'textbox') depth++
    },
    text(data) {
      if (depth > 0) words += data
    },
    close(name) {
      if (name !== 'textbox') return
      depth--
      words += '\n'
    },
  })
  return words.replace(/\s*\n\s*/g, '\n').trim()
}
