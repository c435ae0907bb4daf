/** Learns from pdfjs what PDFium does not tell of a page, for the few documents where it matters. */
import { inflateSync } from 'node:zlib'
import type { Pdf } from './pdf.ts'
import type { PageFacts } from './pdfium.ts'

/** Returns a function that looks up the facts of a page. */
export function createFactsReader(
  { hasUnits, hasLayers }: Signs,
  openPdf: () => Promise<Pdf>,
): (pageNumber: number) => Promise<PageFacts> {
  if (!hasUnits && !hasLayers) return async () => ({})
  const read = async (pageNumber: number): Promise<PageFacts> => {
    const pdf = await openPdf()
    const page = await pdf.page(pageNumber)
    try {
      const hiddenTexts =
        hasLayers && (await pdf.hidesLayers()) ? await page.hiddenTexts() : new Set<number>()
      return { unit: page.unit, hiddenTexts }
    } finally {
      page.close()
    }
  }
  // A page that pdfjs cannot read is read without these facts.
  return (pageNumber) => read(pageNumber).catch(() => ({}))
}

// Limit of the unpacked object streams. Without it, a bomb would cost as much as in the readers themselves.
const MAX_UNPACKED_BYTES = 64 * 2 ** 20

/** Signs of content that pdfjs reads. There may be a sign where there is no such content. */
export interface Signs {
  readonly hasUnits: boolean
  /** Layers that are off. */
  readonly hasLayers: boolean
  readonly hasFileAnnotations: boolean
}

/** Finds the signs in a file, including its compressed objects. Assumes all of them if the file is encrypted. */
export function findSigns(bytes: Uint8Array): Signs {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let [hasUnits, mayHaveLayers, mayBeOff, hasFileAnnotations] = [false, false, false, false]
  const look = (part: Buffer): void => {
    hasUnits ||= part.includes('/UserUnit')
    mayHaveLayers ||= part.includes('/OCProperties')
    mayBeOff ||= part.includes('/OFF')
    hasFileAnnotations ||= part.includes('/FileAttachment')
  }
  look(file)
  if (file.includes('/ObjStm') && !unpackObjects(file, look))
    return { hasUnits: true, hasLayers: true, hasFileAnnotations: true }
  return { hasUnits, hasLayers: mayHaveLayers && mayBeOff, hasFileAnnotations }
}

/** Calls `look` with the content of each object stream; false if some cannot be unpacked here. */
function unpackObjects(file: Buffer, look: (part: Buffer) => void): boolean {
  if (file.includes('/Encrypt')) return false
  let rest = MAX_UNPACKED_BYTES
  for (let at = file.indexOf('/ObjStm'); at !== -1; at = file.indexOf('/ObjStm', at + 1)) {
    const head = file.lastIndexOf(' obj', at)
    const start = file.indexOf('stream', at)
    if (head === -1 || start === -1) return false
    const dictionary = file.toString('latin1', head, start)
    if (!/\/Filter\s*\[?\s*\/FlateDecode\s*\]?/.test(dictionary) || /\/DecodeParms/.test(dictionary))
      return false
    const data = start + (file[start + 6] === 13 ? 8 : 7)
    const end = file.indexOf('endstream', data)
    try {
      const part = inflateSync(file.subarray(data, end === -1 ? file.length : end), { maxOutputLength: rest })
      rest -= part.length
      look(part)
    } catch {
      return false
    }
    if (rest <= 0) return false
  }
  return true
}
