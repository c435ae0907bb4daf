/** Reads forms of XFA, which viewers build from a template and its data (XFA 3.3). */
import { parseMarkup } from '../../../tasks/formats/markup.ts'

/** A packet of an XFA form: its name, and its XML. */
export interface XfaPacket {
  readonly name: string
  readonly xml: string
}

/** Returns the texts of the template with the values of the fields, one on each line; '' if there are none. */
export function readXfa(packets: readonly XfaPacket[]): string {
  // A form may have a single packet with all parts.
  const find = (name: string): string =>
    packets
      .filter((packet) => packet.name === name || packet.name === '')
      .map(({ xml }) => xml)
      .join('\n') || packets.map(({ xml }) => xml).join('\n')
  const values = readData(find('datasets'))
  const lines: string[] = []
  for (const { text, field } of readTemplate(find('template'))) {
    const value = field === null ? undefined : values.get(field)?.shift()
    const line = [text, value ?? ''].filter((part) => part !== '').join(' ')
    if (line !== '') lines.push(line)
  }
  // Fields that repeat have one place in the template.
  for (const [name, rest] of values) for (const value of rest) lines.push(`${name}: ${value}`)
  return lines.join('\n')
}

const localName = (qualified: string): string => qualified.slice(qualified.indexOf(':') + 1)
const toLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

/** Reads the values of the data by the names of their fields, in order. */
function readData(xml: string): Map<string, string[]> {
  const values = new Map<string, string[]>()
  let data = 0
  let text = ''
  let isLeaf = false
  parseMarkup(xml, 'xml', {
    open(qualified, attributes) {
      if (localName(qualified) === 'data') data++
      text = ''
      isLeaf = !Object.entries(attributes).some(
        ([key, type]) => localName(key) === 'contentType' && type.startsWith('image/'),
      )
    },
    text(piece) {
      text += piece
    },
    close(qualified) {
      const name = localName(qualified)
      const value = toLine(text)
      if (data > 0 && isLeaf && value !== '') {
        const present = values.get(name)
        if (present === undefined) values.set(name, [value])
        else present.push(value)
      }
      isLeaf = false
      text = ''
      if (name === 'data') data--
    },
  })
  return values
}

interface TemplatePart {
  readonly text: string
  /** Name of the field; null for a text of the template. */
  readonly field: string | null
}

const HIDDEN = /^(hidden|invisible|inactive)$/

/** Reads the visible texts and fields of a template, in order. */
function readTemplate(xml: string): TemplatePart[] {
  const parts: TemplatePart[] = []
  const open: { readonly name: string; readonly isHidden: boolean; readonly field: string | null }[] = []
  let template = 0
  let caption = ''
  const isIn = (name: string): boolean => open.some((element) => element.name === name)
  parseMarkup(xml, 'xml', {
    open(qualified, { name = null, presence = '' }) {
      const element = localName(qualified)
      if (element === 'template') template++
      const isHidden = open.at(-1)?.isHidden === true || HIDDEN.test(presence)
      open.push({ name: element, isHidden, field: element === 'field' ? name : null })
      if (element === 'field' || element === 'draw') caption = ''
    },
    text(piece) {
      if (template === 0 || open.at(-1)?.isHidden !== false) return
      if (isIn('value') && !isIn('image') && (isIn('draw') || isIn('caption'))) caption += piece
    },
    close(qualified) {
      const element = localName(qualified)
      const closed = open.pop()
      if (/^(p|text|exData)$/.test(element)) caption += ' '
      if (template > 0 && (element === 'field' || element === 'draw') && closed?.isHidden === false)
        parts.push({ text: toLine(caption), field: closed.field })
      if (element === 'template') template--
    },
  })
  return parts
}
