import { parseXml } from './xml.ts'

/** Reads the master pages of OpenDocument files. */

export const PARAGRAPH_ELEMENTS = new Set(['p', 'h'])

// Fields of headers and footers. Words next to them, such as "Page 1 of 2", say nothing either.
const PAGE_FIELDS = new Set(['page-number', 'page-count', 'sheet-name'])
const MAX_FIELD_WORDS = 2

/** Returns the texts of master pages: of headers and footers, and of shapes that all pages show. */
export function readMasters(xml: string): string {
  const lines = new Set<string>()
  let [masters, placeholders, fields, paragraphs] = [0, 0, 0, 0]
  let line = ''
  let hasField = false
  const frames: boolean[] = []
  parseXml(xml, {
    open(name, attributes) {
      if (name === 'master-page') masters++
      else if (name === 'frame' || name === 'custom-shape' || name === 'notes') {
        frames.push(name === 'notes' || attributes['presentation:class'] !== undefined)
        if (frames.at(-1)) placeholders++
      } else if (PARAGRAPH_ELEMENTS.has(name) && paragraphs++ === 0) [line, hasField] = ['', false]
      else if (PAGE_FIELDS.has(name)) {
        fields++
        hasField = true
      }
    },
    text(data) {
      if (masters > 0 && placeholders === 0 && fields === 0 && paragraphs > 0) line += data
    },
    close(name) {
      if (name === 'master-page') masters--
      else if (name === 'frame' || name === 'custom-shape' || name === 'notes') {
        if (frames.pop()) placeholders--
      } else if (PAGE_FIELDS.has(name)) fields--
      else if (PARAGRAPH_ELEMENTS.has(name) && --paragraphs === 0) {
        const words = line.match(/[\p{L}\p{N}]+/gu)?.length ?? 0
        if (words > (hasField ? MAX_FIELD_WORDS : 0)) lines.add(line.replace(/\s+/g, ' ').trim())
      }
    },
  })
  return [...lines].join('\n')
}
