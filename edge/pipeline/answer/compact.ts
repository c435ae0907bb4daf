const QUOTE_BYTE = 0x22
const BACKSLASH_BYTE = 0x5c
const SPACE_BYTE = 0x20

/**
 * Removes the whitespace that PostgreSQL adds to JSON, so that the result equals the output of JSON.stringify. This
 * takes about 2 ns per byte, so large data that appears in lists should be stored in compact form.
 */
export function compactJson(text: string): string {
  const bytes = Buffer.from(text)
  const { length } = bytes
  let to = 0
  let inString = false
  for (let from = 0; from < length; from++) {
    const byte = bytes[from]!
    if (byte <= SPACE_BYTE && !inString) continue
    bytes[to++] = byte
    if (byte === QUOTE_BYTE) inString = !inString
    else if (byte === BACKSLASH_BYTE) bytes[to++] = bytes[++from]!
  }
  return bytes.toString('utf8', 0, to)
}
