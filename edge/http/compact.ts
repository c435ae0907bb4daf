const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20

/**
 * JSON text without the white space between its parts, as JSON.stringify writes it: PostgreSQL puts spaces and line ends
 * there. Some 2 ns for each byte: what is read in lists of many kB is compact already where it is stored.
 */
export function compact(text: string): string {
  const bytes = Buffer.from(text)
  const { length } = bytes
  let to = 0
  let inString = false
  for (let from = 0; from < length; from++) {
    const byte = bytes[from]!
    if (byte <= SPACE && !inString) continue
    bytes[to++] = byte
    if (byte === QUOTE) inString = !inString
    else if (byte === BACKSLASH) bytes[to++] = bytes[++from]!
  }
  return bytes.toString('utf8', 0, to)
}
