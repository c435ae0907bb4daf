import { randomFillSync } from 'node:crypto'

const randomPool = Buffer.alloc(16 * 256)
let usedBytes = randomPool.length

/**
 * Returns a UUID version 7 (RFC 9562): 48 bits of milliseconds, then random bits. Later ids sort later, so indexes on
 * them grow at one end.
 */
export function uuidv7(now = Date.now()): string {
  if (usedBytes === randomPool.length) {
    randomFillSync(randomPool)
    usedBytes = 0
  }
  const bytes = randomPool.subarray(usedBytes, usedBytes + 16)
  usedBytes += 16
  bytes.writeUIntBE(now, 0, 6)
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The id of nothing. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Returns true if a text is a UUID in its canonical lower-case form. */
export function isUuid(text: string): boolean {
  return UUID_PATTERN.test(text)
}
