import { Unreadable } from '../images/images.ts'
import { hash, UNKNOWN_ENCRYPTION, uint32 } from './office-crypto.ts'

/**
 * Decrypts RC4 as files of Office 97 to 2003 use it (MS-OFFCRYPTO, 2.3.5 and 2.3.6). OpenSSL 3 has no RC4 without its
 * legacy provider.
 */

/** Decrypts the bytes of a block, which has its own key. */
export type DecryptBlock = (block: number, bytes: Uint8Array) => Buffer

// Places in an encryption header and its verifier, from the version on.
const HEADER_SIZE_AT = 8
const HEADER_AT = 12
const ALGORITHM_AT = 8
const KEY_BITS_AT = 16
const RC4_ALGORITHMS = [0, 0x6801]
const VERIFIER_BYTES = 16
const WEAK_KEY_BYTES = 5

/**
 * Returns the function that decrypts blocks; null if the password is wrong. `info` begins with the version of the
 * encryption. @throws Unreadable for other encryptions.
 */
export function unlockBlocks(info: Buffer, password: string): DecryptBlock | null {
  const [major, minor] = [info.readUInt16LE(0), info.readUInt16LE(2)]
  if (major === 1 && minor === 1) return unlockWeak(info.subarray(4), password)
  if (minor === 2 && major >= 2 && major <= 4) return unlockCryptoApi(info, password)
  throw new Unreadable(UNKNOWN_ENCRYPTION)
}

/** Keys of 40 bits (MS-OFFCRYPTO, 2.3.6.2). */
function unlockWeak(info: Buffer, password: string): DecryptBlock | null {
  const salt = info.subarray(0, 16)
  const first = hash('md5', Buffer.from(password, 'utf16le')).subarray(0, WEAK_KEY_BYTES)
  const salted = Buffer.concat(Array.from({ length: 16 }, () => Buffer.concat([first, salt])))
  const secret = hash('md5', salted).subarray(0, WEAK_KEY_BYTES)
  const decrypt: DecryptBlock = (block, bytes) => applyRc4(hash('md5', secret, uint32(block)), bytes)
  return isVerified('md5', decrypt(0, info.subarray(16, 48))) ? decrypt : null
}

/** Keys of 40 to 128 bits (MS-OFFCRYPTO, 2.3.5.2). */
function unlockCryptoApi(info: Buffer, password: string): DecryptBlock | null {
  const header = info.subarray(HEADER_AT)
  if (!RC4_ALGORITHMS.includes(header.readUInt32LE(ALGORITHM_AT))) throw new Unreadable(UNKNOWN_ENCRYPTION)
  const keyBytes = (header.readUInt32LE(KEY_BITS_AT) || 40) / 8
  const verifier = header.subarray(info.readUInt32LE(HEADER_SIZE_AT))
  const secret = hash('sha1', verifier.subarray(4, 20), Buffer.from(password, 'utf16le'))
  const decrypt: DecryptBlock = (block, bytes) => {
    const key = hash('sha1', secret, uint32(block)).subarray(0, keyBytes)
    return applyRc4(keyBytes === WEAK_KEY_BYTES ? Buffer.concat([key, Buffer.alloc(11)]) : key, bytes)
  }
  const checked = Buffer.concat([verifier.subarray(20, 36), verifier.subarray(40, 60)])
  return isVerified('sha1', decrypt(0, checked)) ? decrypt : null
}

/** True if the bytes are a random value and its hash. */
const isVerified = (algorithm: string, bytes: Buffer): boolean =>
  hash(algorithm, bytes.subarray(0, VERIFIER_BYTES)).equals(bytes.subarray(VERIFIER_BYTES))

/** Decrypts a stream in blocks of the same size. The first bytes of a stream may be plain. */
export function decryptStream(
  stream: Buffer,
  decrypt: DecryptBlock,
  blockBytes: number,
  plainBytes = 0,
): Buffer {
  const blocks: Buffer[] = []
  for (let n = 0; n * blockBytes < stream.length; n++)
    blocks.push(decrypt(n, stream.subarray(n * blockBytes, (n + 1) * blockBytes)))
  const plain = Buffer.concat(blocks)
  stream.copy(plain, 0, 0, plainBytes)
  return plain
}

/** Encrypts or decrypts bytes with RC4. */
function applyRc4(key: Buffer, bytes: Uint8Array): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, n) => n)
  for (let i = 0, j = 0; i < 256; i++) {
    j = (j + state[i]! + key[i % key.length]!) & 255
    ;[state[i], state[j]] = [state[j]!, state[i]!]
  }
  const out = Buffer.allocUnsafe(bytes.length)
  for (let n = 0, i = 0, j = 0; n < bytes.length; n++) {
    i = (i + 1) & 255
    const a = state[i]!
    j = (j + a) & 255
    const b = state[j]!
    state[i] = b
    state[j] = a
    out[n] = bytes[n]! ^ state[(a + b) & 255]!
  }
  return out
}
