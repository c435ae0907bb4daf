import { decodeText } from '../../../tasks/formats/decode.ts'
import {
  decodeLatin1,
  findDeclaredEncoding,
  findMarkedEncoding,
  findUnmarkedUtf16,
  resolveEncoding,
} from '../../../tasks/formats/encodings.ts'
import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { Unreadable } from '../images/images.ts'
import { readHtmlPage } from '../markdown/html.ts'
import { holdWhole } from './held.ts'
import { countMarkup, HTML_RULES, type MarkupRules, SVG_RULES, XML_RULES } from './held-markup.ts'
import {
  createPagedText,
  MAX_TEXT_BYTES,
  PageCollector,
  type PagedText,
  readTextFile,
  type TextFile,
} from './texts.ts'
import { stripNamespacePrefix } from './xml.ts'

/** Opens text files: plain text, HTML, XML, drawings, calendars, address cards and subtitles. */

/** Options of all text files. */
interface TextOptions {
  /** The encoding that the caller names; null if the bytes must tell it. */
  readonly encoding: string | null
}

// More than any print has.
const MAX_PAGES = 100_000

/** Opens a plain text. A form feed ends a page, as on a printer. */
export function openPlain(bytes: Uint8Array, { encoding: given }: TextOptions): PagedText {
  const file = readTextFile(bytes, { given })
  const pages = file.text.split('\f', MAX_PAGES + 1).filter((page) => page.trim() !== '')
  if (pages.length > MAX_PAGES) throw new Unreadable(`The text has more than ${MAX_PAGES} pages`)
  if (pages.length < 2) return createTextPages(file, [file.text.replaceAll('\f', '\n')])
  const document = createTextPages(file, pages)
  if (!file.isCut) return document
  const { pageCount } = document
  return {
    ...document,
    pageCount: pageCount + 1,
    read(page) {
      if (page > pageCount) throw new Unreadable('The text is too long; the pages from here on were not read')
      return document.read(page)
    },
  }
}

const createTextPages = ({ encoding }: TextFile, pages: readonly string[]): PagedText => ({
  ...createPagedText(pages),
  encoding,
})

function createMarkupPages(
  file: TextFile,
  pages: readonly string[],
  bytes: Uint8Array,
  rules: MarkupRules,
): PagedText {
  const count = (enough: number): number => countMarkup(bytes.subarray(0, MAX_TEXT_BYTES), rules, enough)
  const holdings = holdWhole(pages, count)
  return { ...createTextPages(file, pages), holdings }
}

const readMarkup = (bytes: Uint8Array, { encoding: given }: TextOptions): TextFile =>
  readTextFile(bytes, { given, declared: findDeclaredEncoding(bytes) })

export function openHtml(bytes: Uint8Array, options: TextOptions): PagedText {
  const file = readMarkup(bytes, options)
  const { text, markdown } = readHtmlPage(file.text)
  return { ...createMarkupPages(file, [text], bytes, HTML_RULES), read: () => ({ text, markdown }) }
}

// Elements of SVG with words. Each begins a line, as does a part of a text with a place of its own.
const SVG_TEXTS = new Set(['text', 'title', 'desc', 'foreignObject'])

/** Opens a drawing: its words without shapes and styles. */
export function openSvg(bytes: Uint8Array, options: TextOptions): PagedText {
  const file = readMarkup(bytes, options)
  const pages = new PageCollector()
  const open: string[] = []
  // Number of open elements with words.
  let depth = 0
  parseMarkup(file.text, 'xml', {
    open(qualified, { x, y, dy }) {
      const name = stripNamespacePrefix(qualified)
      if (SVG_TEXTS.has(name)) depth++
      if (SVG_TEXTS.has(name) || (name === 'tspan' && (x ?? y ?? dy) !== undefined)) pages.endLine()
      open.push(name)
    },
    text(data) {
      if (depth > 0 && !/^(style|script)$/.test(open.at(-1) ?? '')) pages.add(data.replace(/\s+/g, ' '))
    },
    close() {
      if (!SVG_TEXTS.has(open.pop() ?? '')) return
      depth--
      pages.endLine()
    },
  })
  return { ...createMarkupPages(file, pages.end(), bytes, SVG_RULES), hasPictures: true }
}

/** Opens an XML file. Each text gets a line of its own, which begins with the name and attributes of its element. */
export function openXml(bytes: Uint8Array, options: TextOptions): PagedText {
  const file = readMarkup(bytes, options)
  const pages = new PageCollector()
  const open: Element[] = []
  parseMarkup(file.text, 'xml', {
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
  return createMarkupPages(file, pages.end(), bytes, XML_RULES)
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
export function openFolded(bytes: Uint8Array, { encoding: given }: TextOptions): PagedText {
  const isWide = /^utf-(16|32)/.test(findMarkedEncoding(bytes) ?? findUnmarkedUtf16(bytes) ?? '')
  // Unfold before decoding: a fold may split a character.
  const unfolded = isWide ? bytes : Buffer.from(unfold(decodeLatin1(bytes)), 'latin1')
  const file = readTextFile(unfolded, { given })
  const properties = (isWide ? unfold(file.text) : file.text).split('\n').map(decodeProperty)
  return createTextPages(file, [
    properties.join('\n').replace(/\\([nN,;\\])/g, (_, sign) => (/n/i.test(sign) ? '\n' : sign)),
  ])
}

/** Joins the lines of each property. Quoted-printable values (vCard 2.1) have `=` at the end of continued lines. */
function unfold(text: string): string {
  const lines: string[] = []
  let isQuoted = false
  let isContinued = false
  for (const line of text.split(/\r?\n/)) {
    const isFold = !isContinued && /^[ \t]/.test(line)
    if (!isContinued && !isFold) isQuoted = isQuotedProperty(line.slice(0, Math.max(0, line.indexOf(':'))))
    if (lines.length > 0 && !isContinued && !isFold) lines.push('\n')
    isContinued = isQuoted && line.endsWith('=')
    lines.push(line.slice(isFold ? 1 : 0, isContinued ? -1 : undefined))
  }
  return lines.join('')
}

const isQuotedProperty = (name: string): boolean => /;(?:ENCODING=)?QUOTED-PRINTABLE\b/i.test(name)

function decodeProperty(line: string): string {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(0, colon))
  return isQuotedProperty(name)
    ? `${name.split(';', 1)[0]}:${decodeQuoted(name, line.slice(colon + 1))}`
    : line
}

function decodeQuoted(name: string, value: string): string {
  const bytes = value.replace(/=([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  const declared = resolveEncoding(/;CHARSET="?([\w:-]+)/i.exec(name)?.[1] ?? '')
  return decodeText(Buffer.from(bytes, 'latin1'), { declared })?.text.replace(/\r\n?/g, '\n') ?? value
}

/** Opens subtitles, without their voice and style tags (WebVTT). */
export function openSubtitles(bytes: Uint8Array, { encoding: given }: TextOptions): PagedText {
  const file = readTextFile(bytes, { given })
  return createTextPages(file, [file.text.replace(/<\/?(?:[cibuv]|ruby|rt|lang)[^<>\n]*>/g, '')])
}
