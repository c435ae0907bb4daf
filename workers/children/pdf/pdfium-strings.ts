/** Reads strings from PDFium. */
import type { Native } from './pdfium-native.ts'

// Longer strings are cut off: no value of a field or remark is longer.
const MAX_STRING_BYTES = 2 ** 20
const USUAL_STRING_BYTES = 1024

/** Reads a zero-terminated UTF-16 string: `write` writes it if it fits, and returns the bytes needed. */
export function readUtf16(native: Native, write: (at: number, size: number) => number): string {
  const attempt = (size: number): { text: string; needed: number } => {
    const at = native.wasmExports.malloc(size)
    if (at === 0) return { text: '', needed: 0 }
    try {
      const needed = write(at, size)
      if (needed <= 2 || needed > size) return { text: '', needed }
      return {
        text: Buffer.from(native.HEAPU8.subarray(at, at + needed - 2)).toString('utf16le'),
        needed,
      }
    } finally {
      native.wasmExports.free(at)
    }
  }
  const { text, needed } = attempt(USUAL_STRING_BYTES)
  return needed > USUAL_STRING_BYTES && needed <= MAX_STRING_BYTES ? attempt(needed).text : text
}

/** Calls `use` with the address of a zero-terminated copy of `text` in UTF-8. Returns `missing` without memory. */
export function withUtf8<T>(native: Native, text: string, missing: T, use: (at: number) => T): T {
  const characters = Buffer.from(`${text}\0`)
  const at = native.wasmExports.malloc(characters.length)
  if (at === 0) return missing
  native.HEAPU8.set(characters, at)
  try {
    return use(at)
  } finally {
    // The text may be a password.
    native.HEAPU8.fill(0, at, at + characters.length)
    native.wasmExports.free(at)
  }
}

/** Reads a string or a name of an annotation's own dictionary; '' if there is none. */
export const readEntry = (native: Native, annotation: number, key: string): string =>
  withUtf8(native, key, '', (name) =>
    readUtf16(native, (at, size) => native._FPDFAnnot_GetStringValue(annotation, name, at, size)),
  )
