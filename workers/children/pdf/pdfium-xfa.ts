/** Reads the packets of XFA forms. */
import type { Native } from './pdfium-native.ts'
import type { XfaPacket } from './xfa.ts'

// FPDF_GetFormType: a form that viewers build, and one whose pages may show it.
const FULL_XFA = 2
const XFA_WITH_PAGES = 3
const WIDGET = 20
// Limits of a packet, and of a packet's name.
const MAX_PACKET_BYTES = 32 * 2 ** 20
const MAX_NAME_BYTES = 64

/** Reads the packets of a form that viewers build from its template; none if the pages themselves have its fields. */
export function readXfaPackets(native: Native, document: number): XfaPacket[] {
  const type = native._FPDF_GetFormType(document)
  if (type !== FULL_XFA && (type !== XFA_WITH_PAGES || hasFields(native, document))) return []
  return Array.from({ length: native._FPDF_GetXFAPacketCount(document) }, (_, i) => {
    const name = readBytes(native, MAX_NAME_BYTES, (at, size, lengthAt) => {
      native.HEAPU32[lengthAt >> 2] = native._FPDF_GetXFAPacketName(document, i, at, size)
      return 1
    })
    const xml = readBytes(native, MAX_PACKET_BYTES, (at, size, lengthAt) =>
      native._FPDF_GetXFAPacketContent(document, i, at, size, lengthAt),
    )
    return { name: Buffer.from(name).toString().replace(/\0.*$/s, ''), xml: Buffer.from(xml).toString() }
  })
}

/** True if the first page has form fields. */
function hasFields(native: Native, document: number): boolean {
  const count = native._EPDFPage_GetAnnotCountRaw(document, 0)
  for (let i = 0; i < count; i++) {
    const annotation = native._EPDFPage_GetAnnotRaw(document, 0, i)
    if (annotation === 0) continue
    const isField = native._FPDFAnnot_GetSubtype(annotation) === WIDGET
    native._FPDFPage_CloseAnnot(annotation)
    if (isField) return true
  }
  return false
}

/** Reads bytes: `write` writes them if they fit, and their length; it returns 0 on failure. Empty beyond `limit`. */
function readBytes(
  native: Native,
  limit: number,
  write: (at: number, size: number, lengthAt: number) => number,
): Uint8Array {
  const lengthAt = native.wasmExports.malloc(4)
  if (lengthAt === 0) return new Uint8Array(0)
  try {
    if (write(0, 0, lengthAt) === 0) return new Uint8Array(0)
    const length = native.HEAPU32[lengthAt >> 2]!
    const at = length > 0 && length <= limit ? native.wasmExports.malloc(length) : 0
    if (at === 0) return new Uint8Array(0)
    const isRead = write(at, length, lengthAt) !== 0
    const bytes = isRead ? native.HEAPU8.slice(at, at + length) : new Uint8Array(0)
    native.wasmExports.free(at)
    return bytes
  } finally {
    native.wasmExports.free(lengthAt)
  }
}
