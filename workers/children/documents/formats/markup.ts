import { readMarkup } from '../../../../tasks/markup.ts'
import { decodeText, decodeXml, latin1 } from '../texts.ts'
import { localName } from './archive.ts'
import { htmlText } from './epub.ts'
import { Pages, type Texts, textsOf } from './texts.ts'

/** Files that are written in characters: plain ones, and those with marks of HTML, XML, calendars and subtitles. */

export const openPlain = (bytes: Uint8Array): Texts => textsOf([decodeText(bytes)])

export function openHtml(bytes: Uint8Array): Texts {
  // 13.2.3.2 of HTML: the encoding that the page declares, within its first 1024 bytes.
  const start = latin1(bytes.subarray(0, 1024))
  const declared = /<meta\s[^>]*charset\s*=\s*["']?\s*([\w-]+)/i.exec(start)?.[1]
  return textsOf([htmlText(decodeText(bytes, declared))])
}

/** Each text of an XML file in a line of its own, behind the name and the attributes of its element. */
export function openXml(bytes: Uint8Array): Texts {
  const pages = new Pages()
  const open: Element[] = []
  readMarkup(decodeXml(bytes), 'xml', {
    open(qualified, attributes) {
      const parent = open.at(-1)
      // An element amid a text is part of it.
      const isInline = parent !== undefined && (parent.isInline || parent.hasWords)
      if (!isInline && parent !== undefined) say(parent, pages)
      open.push({ label: labelOf(localName(qualified), attributes), text: '', hasWords: false, isInline })
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
      else say(element, pages)
    },
  })
  return textsOf(pages.end())
}

interface Element {
  label: string
  text: string
  /** Whether its own text is more than white space. */
  hasWords: boolean
  readonly isInline: boolean
}

const labelOf = (name: string, attributes: Readonly<Record<string, string>>): string =>
  [
    name,
    ...Object.entries(attributes)
      .filter(([attribute]) => !/^(xmlns|xsi:|xml:)/.test(attribute))
      .map(([attribute, value]) => `${localName(attribute)}=${value}`),
  ].join(' ')

/** Writes what an element says, once; its label is enough where it has attributes. */
function say(element: Element, pages: Pages): void {
  const text = element.text.replace(/\s+/g, ' ').trim()
  if (text !== '') pages.add(`${element.label}: ${text}\n`)
  else if (element.label.includes('=')) pages.add(`${element.label}\n`)
  element.text = ''
  element.hasWords = false
  element.label = element.label.split(' ', 1)[0]!
}

/** Calendars and address cards: their long lines are folded, and some signs are escaped (RFC 5545, 3.1 and 3.3.11). */
export function openFolded(bytes: Uint8Array): Texts {
  // Before the encoding: a line may be folded amid a character.
  const unfolded = Buffer.from(latin1(bytes).replace(/\r?\n[ \t]/g, ''), 'latin1')
  return textsOf([
    decodeText(unfolded).replace(/\\([nN,;\\])/g, (_, sign) => (/n/i.test(sign) ? '\n' : sign)),
  ])
}

/** Subtitles, without their marks of voices and styles (WebVTT). */
export function openSubtitles(bytes: Uint8Array): Texts {
  return textsOf([decodeText(bytes).replace(/<\/?(?:[cibuv]|ruby|rt|lang)[^<>\n]*>/g, '')])
}
