import { decodeAs, decodeText } from '../../../tasks/formats/decode.ts'
import { findDeclaredEncoding, resolveEncoding } from '../../../tasks/formats/encodings.ts'

/** Decodes the texts of mails. A mail is read in any case, so a text of no known encoding counts as windows-1252. */

/** Decodes a text of a mail. `declared` is a label of an encoding that the bytes need not be in. */
export function decodeMailText(bytes: Uint8Array, declared?: string): string {
  const hint = declared === undefined ? null : resolveEncoding(declared)
  const { text } = decodeText(bytes, { declared: hint }) ?? decodeAs(bytes, 'windows-1252')
  return text.replace(/\r\n?/g, '\n')
}

/** Decodes an HTML body by its own declaration, else as `declared`. */
export const decodeMailHtml = (bytes: Uint8Array, declared?: string): string =>
  decodeMailText(bytes, findDeclaredEncoding(bytes) ?? declared)

/** Returns the bytes before the first NUL, which ends a text in properties. */
export function cutAtNulByte(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(0)
  return end === -1 ? bytes : bytes.subarray(0, end)
}
