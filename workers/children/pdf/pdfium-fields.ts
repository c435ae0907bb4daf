/** Reads the values of PDF form fields that lack an appearance stream: viewers draw these values themselves. */
import type { Piece } from './layout.ts'
import type { Native } from './pdfium-native.ts'

// FPDF_ANNOT_WIDGET, annotation flags (ISO 32000-1, table 165) and text field flags (table 228).
const WIDGET_SUBTYPE = 20
const HIDDEN_FLAGS = 2 | 32
const PASSWORD_FLAG = 1 << 13

const MAX_VALUE_BYTES = 8192
// Font size in points that viewers use in a field.
const FIELD_FONT_SIZE = 12

/** Returns the values of a page's text and choice fields, except hidden fields and passwords. */
export function readFields(native: Native, page: number): Piece[] {
  const at = native.wasmExports.malloc(MAX_VALUE_BYTES + 32)
  if (at === 0) return []
  const fields: Piece[] = []
  try {
    for (let i = 0; i < native._FPDFPage_GetAnnotCount(page); i++) {
      const annotation = native._FPDFPage_GetAnnot(page, i)
      if (annotation === 0) continue
      const field = readField(native, annotation, at)
      native._FPDFPage_CloseAnnot(annotation)
      if (field !== null) fields.push(field)
    }
  } finally {
    native.wasmExports.free(at)
  }
  return fields
}

function readField(native: Native, annotation: number, at: number): Piece | null {
  if (native._FPDFAnnot_GetSubtype(annotation) !== WIDGET_SUBTYPE) return null
  if ((native._FPDFAnnot_GetFlags(annotation) & HIDDEN_FLAGS) !== 0) return null
  const kind = readString(native, annotation, 'FT', at)
  if (kind !== 'Tx' && kind !== 'Ch') return null
  if ((readNumber(native, annotation, 'Ff', at) & PASSWORD_FLAG) !== 0) return null
  const text = readString(native, annotation, 'V', at).trim()
  if (text === '' || native._FPDFAnnot_GetRect(annotation, at) === 0) return null
  const [left, top, right, bottom] = native.HEAPF32.subarray(at >> 2, (at >> 2) + 4) as never as number[]
  const size = Math.min(FIELD_FONT_SIZE, Math.abs(top! - bottom!)) || FIELD_FONT_SIZE
  return { text, angle: 0, start: left!, end: right!, base: bottom!, size, endsLine: true, ignoresGap: false }
}

function readString(native: Native, annotation: number, key: string, at: number): string {
  const bytes = native._FPDFAnnot_GetStringValue(
    annotation,
    writeKey(native, key, at),
    at + 32,
    MAX_VALUE_BYTES,
  )
  if (bytes < 2 || bytes > MAX_VALUE_BYTES) return ''
  return Buffer.from(native.HEAPU8.slice(at + 32, at + 30 + bytes)).toString('utf16le')
}

function readNumber(native: Native, annotation: number, key: string, at: number): number {
  const known = native._FPDFAnnot_GetNumberValue(annotation, writeKey(native, key, at), at + 32)
  return known === 0 ? 0 : native.HEAPF32[(at + 32) >> 2]!
}

function writeKey(native: Native, key: string, at: number): number {
  native.HEAPU8.set(Buffer.from(`${key}\0`), at)
  return at
}

/** Appends the field values that the page's text does not already contain. */
export function appendFields(pieces: readonly Piece[], fields: readonly Piece[]): readonly Piece[] {
  if (fields.length === 0) return pieces
  const bare = (text: string): string => text.replace(/\s+/g, '')
  const page = bare(pieces.map(({ text }) => text).join(''))
  return [...pieces, ...fields.filter(({ text }) => !page.includes(bare(text)))]
}
