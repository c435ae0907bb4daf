import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { decodeLatin1, decodeText, decodeXml } from '../documents/texts.ts'
import { extractHtmlText } from './epub.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'
import { stripNamespacePrefix } from './xml.ts'

/** Opens text files: plain text, HTML, XML, calendars, address cards and subtitles. */

export const openPlain = (bytes: Uint8Array): PagedText => createPagedText([decodeText(bytes)])

export const openHtml = (bytes: Uint8Array): PagedText =>
  createPagedText([extractHtmlText(decodeHtml(bytes))])

/** Decodes an HTML page by its own declaration, else as `declared`. */
export function decodeHtml(bytes: Uint8Array, declared?: string): string {
  // A page declares its encoding within its first 1024 bytes (HTML, 13.2.3.2).
  const start = decodeLatin1(bytes.subarray(0, 1024))
  return decodeText(bytes, /<meta\s[^>]*charset\s*=\s*["']?\s*([\w-]+)/i.exec(start)?.[1] ?? declared)
}

/** Opens an XML file. Each text gets a line of its own, which begins with the name and attributes of its element. */
export function openXml(bytes: Uint8Array): PagedText {
  const pages = new PageCollector()
  const open: Element[] = []
  parseMarkup(decodeXml(bytes), 'xml', {
    open(qualified, attributes) {
      const parent = open.at(-1)
      // An element within a text is part of that text.
      const isInline = parent !== undefined && (parent.isInline || parent.hasWords)
      if (!isInline && parent !== undefined) writeElement(parent, pages)
      open.push({
        label: labelOf(stripNamespacePrefix(qualified), attributes),
        text: '',
        hasWords: false,
        isInline,
      })
    },
    text(data) {
      const element = open.at(-1)
      if (element === undefined) return
      element.text += data
      element.hasWords ||= data.trim() !== ''
    },
    close() {
      const element = open.pop()
      const parent = open.at(-1)
      if (element === undefined) return
      if (element.isInline && parent !== undefined) parent.text += element.text
      else writeElement(element, pages)
    },
  })
  return createPagedText(pages.end())
}

interface Element {
  label: string
  text: string
  /** True if the element's own text has more than white space. */
  hasWords: boolean
  readonly isInline: boolean
}

const labelOf = (name: string, attributes: Readonly<Record<string, string>>): string =>
  [
    name,
    ...Object.entries(attributes)
      .filter(([attribute]) => !/^(xmlns|xsi:|xml:)/.test(attribute))
      .map(([attribute, value]) => `${stripNamespacePrefix(attribute)}=${value}`),
  ].join(' ')

/** Writes an element's text and clears it. An element with attributes but no text yields only its label. */
function writeElement(element: Element, pages: PageCollector): void {
  const text = element.text.replace(/\s+/g, ' ').trim()
  if (text !== '') pages.add(`${element.label}: ${text}\n`)
  else if (element.label.includes('=')) pages.add(`${element.label}\n`)
  element.text = ''
  element.hasWords = false
  element.label = element.label.split(' ', 1)[0]!
}

/** Opens calendars and address cards: unfolds long lines and resolves escapes (RFC 5545, 3.1 and 3.3.11). */
export function openFolded(bytes: Uint8Array): PagedText {
  // Unfold before decoding: a fold may split a character.
  const unfolded = Buffer.from(decodeLatin1(bytes).replace(/\r?\n[ \t]/g, ''), 'latin1')
  return createPagedText([
    decodeText(unfolded).replace(/\\([nN,;\\])/g, (_, sign) => (/n/i.test(sign) ? '\n' : sign)),
  ])
}

/** Opens subtitles, without their voice and style tags (WebVTT). */
export function openSubtitles(bytes: Uint8Array): PagedText {
  return createPagedText([decodeText(bytes).replace(/<\/?(?:[cibuv]|ruby|rt|lang)[^<>\n]*>/g, '')])
}
