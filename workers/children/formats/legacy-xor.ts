/** Removes the XOR obfuscation of Office 4 to 2003 (MS-OFFCRYPTO, 2.3.7). */

const INITIAL_CODES = [
  0xe1f0, 0x1d0f, 0xcc9c, 0x84c0, 0x110c, 0x0e10, 0xf1ce, 0x313e, 0x1872, 0xe139, 0xd40f, 0x84f9, 0x280c,
  0xa96a, 0x4ec3,
]
const PADDING = Buffer.from('bbffffbaffffb98000be0f00bf0f00', 'hex')
const MAX_LENGTH = 15

export interface XorKey {
  readonly key: number
  readonly verifier: number
}

/**
 * Returns the 16 bytes that obfuscate the file; null if the password is wrong. Excel rotates them by two bits, Word by
 * seven.
 */
export function deriveXorBytes(password: string, expected: XorKey, rotation: 2 | 7): Buffer | null {
  const letters = Buffer.from(
    Array.from(password.slice(0, MAX_LENGTH), (letter) => {
      const code = letter.charCodeAt(0)
      return (code & 0xff) === 0 ? code >>> 8 : code & 0xff
    }),
  )
  const key = deriveKey(letters)
  if (key !== expected.key || deriveVerifier(letters) !== expected.verifier) return null
  return Buffer.from(Buffer.concat([letters, PADDING]).subarray(0, 16)).map((byte, n) => {
    const mixed = byte ^ ((n & 1) === 0 ? key & 0xff : key >>> 8)
    return ((mixed << rotation) | (mixed >>> (8 - rotation))) & 0xff
  }) as Buffer
}

/** Derives the key (MS-OFFCRYPTO, 2.3.7.2). The matrix of the specification holds the states of a shift register. */
function deriveKey(letters: Buffer): number {
  let key = INITIAL_CODES[letters.length - 1] ?? 0
  let state = 0x1021
  for (const letter of letters.toReversed())
    for (let bit = 0; bit < 8; bit++) {
      if (bit < 7 && ((letter >>> bit) & 1) === 1) key ^= state
      state = ((state << 1) & 0xffff) ^ ((state & 0x8000) === 0 ? 0 : 0x1021)
    }
  return key
}

/** Derives the value that proves a password (MS-OFFCRYPTO, 2.3.7.1). */
function deriveVerifier(letters: Buffer): number {
  let verifier = 0
  for (const byte of [...letters.toReversed(), letters.length])
    verifier = (((verifier >>> 14) & 1) | ((verifier << 1) & 0x7fff)) ^ byte
  return verifier ^ 0xce4b
}
