const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20

/**
 * Removes the whitespace that PostgreSQL adds to JSON, which gives the output of JSON.stringify. Takes about 2 ns per
 * byte, so data that is read in lists of many kB should be stored compact instead.
 */
export function compactJson(text: string): string {
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
