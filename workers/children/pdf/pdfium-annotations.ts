/** Reads the texts of annotations: values of form fields, free text and remarks (ISO 32000-2, 12.5 and 12.7). */
import { parseMarkup } from '../../../tasks/formats/markup.ts'
import type { Piece } from './layout.ts'
import type { Native } from './pdfium-native.ts'
import { readEntry, readUtf16, withUtf8 } from './pdfium-strings.ts'

// Subtypes of annotations (FPDF_ANNOT_…), annotation flags (table 167) and field flags (table 231).
const LINK = 2
const FREE_TEXT = 3
const POPUP = 16
const WIDGET = 20
const NOT_REMARKS = new Set([LINK, FREE_TEXT, POPUP, WIDGET])
const HIDDEN = 2
const NO_VIEW = 32
const PASSWORD = 1 << 13

// Types of fields (FPDF_FORMFIELD_…).
const CHECK_BOX = 2
const RADIO_BUTTON = 3
const COMBO_BOX = 4
const LIST_BOX = 5
const TEXT_FIELD = 6

// Font size in points that viewers use without one in the file.
const FONT_SIZE = 12
// Limit of the options that are compared with a value.
const MAX_OPTIONS = 10_000

/** A rectangle in page coordinates, in points. */
export interface Box {
  readonly left: number
  readonly bottom: number
  readonly right: number
  readonly top: number
}

/** Text that viewers show in the rectangle of an annotation, even if the file does not draw it. */
export interface ShownText {
  readonly box: Box
  readonly text: string
}

/** The handle for reading form fields, created on demand; 0 without memory. */
interface FormReader {
  readonly form: number
}

/** Calls `use` with each annotation of a page. */
function forEachAnnotation(native: Native, page: number, use: (annotation: number) => void): void {
  const count = native._FPDFPage_GetAnnotCount(page)
  for (let i = 0; i < count; i++) {
    const annotation = native._FPDFPage_GetAnnot(page, i)
    if (annotation === 0) continue
    use(annotation)
    native._FPDFPage_CloseAnnot(annotation)
  }
}

/**
 * Reads the form fields and free texts of a page, except passwords and hidden ones. Also hides annotations that only
 * printers show, so that flattening the page skips them.
 */
export function readShownTexts(native: Native, page: number, fields: FormReader): ShownText[] {
  const shown: ShownText[] = []
  forEachAnnotation(native, page, (annotation) => {
    const flags = native._FPDFAnnot_GetFlags(annotation)
    if ((flags & NO_VIEW) !== 0) native._FPDFAnnot_SetFlags(annotation, flags | HIDDEN)
    if ((flags & (HIDDEN | NO_VIEW)) !== 0) return
    const text = readShownText(native, annotation, fields).trim()
    const box = text === '' ? null : readBox(native, annotation)
    if (box !== null) shown.push({ box, text })
  })
  return shown
}

function readShownText(native: Native, annotation: number, fields: FormReader): string {
  const subtype = native._FPDFAnnot_GetSubtype(annotation)
  if (subtype === FREE_TEXT) return readContents(native, annotation)
  return subtype === WIDGET && fields.form !== 0 ? readValue(native, annotation, fields.form) : ''
}

/** Reads the value of a field as viewers show it, which it may inherit. */
function readValue(native: Native, annotation: number, form: number): string {
  const type = native._FPDFAnnot_GetFormFieldType(form, annotation)
  const value = (): string =>
    readUtf16(native, (at, size) => native._FPDFAnnot_GetFormFieldValue(form, annotation, at, size))
  if (type === TEXT_FIELD)
    return (native._FPDFAnnot_GetFormFieldFlags(form, annotation) & PASSWORD) === 0 ? value() : ''
  if (type === LIST_BOX) return readChosen(native, annotation, form).join('\n') || value()
  if (type === COMBO_BOX) return readChosen(native, annotation, form)[0] ?? value()
  const isOn = type === CHECK_BOX || type === RADIO_BUTTON ? isTicked(native, annotation, form) : false
  if (!isOn) return ''
  return type === CHECK_BOX ? '☑' : '◉'
}

/** Reads the labels of the chosen options of a choice field: their values are not shown. */
function readChosen(native: Native, annotation: number, form: number): string[] {
  const count = Math.min(native._FPDFAnnot_GetOptionCount(form, annotation), MAX_OPTIONS)
  const chosen: string[] = []
  for (let i = 0; i < count; i++) {
    if (native._FPDFAnnot_IsOptionSelected(form, annotation, i) === 0) continue
    chosen.push(
      readUtf16(native, (at, size) => native._FPDFAnnot_GetOptionLabel(form, annotation, i, at, size)),
    )
  }
  return chosen
}

/** True if a check box or radio button is on. Its appearance state decides, which every button with states has. */
function isTicked(native: Native, annotation: number, form: number): boolean {
  const state = readEntry(native, annotation, 'AS') || readEntry(native, annotation, 'V')
  return state === '' ? native._FPDFAnnot_IsChecked(form, annotation) !== 0 : state !== 'Off'
}

function readBox(native: Native, annotation: number): Box | null {
  const at = native.wasmExports.malloc(16)
  if (at === 0) return null
  try {
    if (native._FPDFAnnot_GetRect(annotation, at) === 0) return null
    const [left, top, right, bottom] = native.HEAPF32.slice(at >> 2, (at >> 2) + 4) as never as number[]
    return {
      left: Math.min(left!, right!),
      right: Math.max(left!, right!),
      bottom: Math.min(top!, bottom!),
      top: Math.max(top!, bottom!),
    }
  } finally {
    native.wasmExports.free(at)
  }
}

/** Reads the plain text of an annotation, or else its formatted text. */
function readContents(native: Native, annotation: number): string {
  const plain = readEntry(native, annotation, 'Contents').trim()
  if (plain !== '') return plain.replace(/\r\n?/g, '\n')
  const rich = readUtf16(native, (at, size) => native._EPDFAnnot_GetRichContent(annotation, at, size))
  let text = ''
  parseMarkup(rich, 'xml', {
    text: (data) => {
      text += data
    },
    close: (name) => {
      if (/(^|:)(p|br)$/.test(name)) text += '\n'
    },
  })
  return text.trim()
}

interface Remark {
  readonly number: number
  /** Number of the remark that this one replies to; 0 if none. */
  readonly replyTo: number
  readonly text: string
}

/** Returns the remarks of a page, counted from 0: sticky notes, and notes on marks; each before its replies. */
export function readRemarks(native: Native, document: number, index: number): string[] {
  const remarks: Remark[] = []
  const count = native._EPDFPage_GetAnnotCountRaw(document, index)
  for (let i = 0; i < count; i++) {
    const annotation = native._EPDFPage_GetAnnotRaw(document, index, i)
    if (annotation === 0) continue
    const remark = readRemark(native, annotation)
    native._FPDFPage_CloseAnnot(annotation)
    if (remark !== null) remarks.push(remark)
  }
  return orderReplies(remarks)
}

function readRemark(native: Native, annotation: number): Remark | null {
  if (NOT_REMARKS.has(native._FPDFAnnot_GetSubtype(annotation))) return null
  if ((native._FPDFAnnot_GetFlags(annotation) & (HIDDEN | NO_VIEW)) !== 0) return null
  const text = readContents(native, annotation)
  if (text === '') return null
  const repliedTo = withUtf8(native, 'IRT', 0, (key) => native._FPDFAnnot_GetLinkedAnnot(annotation, key))
  const replyTo = repliedTo === 0 ? 0 : native._EPDFAnnot_GetObjectNumber(repliedTo)
  if (repliedTo !== 0) native._FPDFPage_CloseAnnot(repliedTo)
  return { number: native._EPDFAnnot_GetObjectNumber(annotation), replyTo, text }
}

/** Puts each reply behind the remark that it replies to. Replies to anything else, or in a circle, come last. */
function orderReplies(remarks: readonly Remark[]): string[] {
  const replies = Map.groupBy(remarks, ({ replyTo }) => replyTo)
  const ordered = new Set<Remark>()
  const waiting = [...(replies.get(0) ?? [])].reverse()
  while (waiting.length > 0) {
    const remark = waiting.pop()!
    if (ordered.has(remark)) continue
    ordered.add(remark)
    if (remark.number !== 0) waiting.push(...(replies.get(remark.number) ?? []).toReversed())
  }
  return [...new Set([...ordered, ...remarks])].map(({ text }) => text)
}

/** Converts texts in rectangles to pieces on a page that is displayed `turn` radians clockwise. */
export function placeShownTexts(texts: readonly ShownText[], turn: number): Piece[] {
  return texts.flatMap(({ box, text }) => {
    const { start, end, low, high } = turnBox(box, turn)
    const lines = text.split(/\r\n?|\n/)
    const size = Math.min(FONT_SIZE, high - low) || FONT_SIZE
    // A single line is in the middle of its rectangle; several begin at its top.
    const first = lines.length === 1 ? (low + high) / 2 - 0.35 * size : high - size
    return lines.map((line, i) => ({
      text: line,
      angle: turn,
      start,
      end,
      base: first - i * size,
      size,
      endsLine: true,
      ignoresGap: false,
    }))
  })
}

/** Returns the texts whose rectangle holds none of the drawn pieces. */
export function findUndrawn(texts: readonly ShownText[], drawn: readonly Piece[]): ShownText[] {
  const middles = drawn.map(({ angle, start, end, base, size }) => {
    const [along, across] = [(start + end) / 2, base + 0.3 * size]
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
    return { x: along * cos - across * sin, y: along * sin + across * cos }
  })
  const isWithin = ({ left, right, bottom, top }: Box): boolean =>
    middles.some(({ x, y }) => x >= left && x <= right && y >= bottom && y <= top)
  return texts.filter(({ box }) => !isWithin(box))
}

/** Turns a rectangle into the frame of pieces at an angle. */
function turnBox({ left, right, bottom, top }: Box, angle: number) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
  const along = [left, right].flatMap((x) => [bottom, top].map((y) => x * cos + y * sin))
  const across = [left, right].flatMap((x) => [bottom, top].map((y) => y * cos - x * sin))
  return {
    start: Math.min(...along),
    end: Math.max(...along),
    low: Math.min(...across),
    high: Math.max(...across),
  }
}
