import { createDecipheriv, createHash } from 'node:crypto'
import { Locked, Unreadable } from '../images/images.ts'
import { parseXml } from './xml.ts'

/** Decrypts Office Open XML files (MS-OFFCRYPTO, 2.3.4: standard and agile encryption). */

// The most iterations that agile encryption allows.
const MAX_SPINS = 10_000_000
const STANDARD_SPINS = 50_000
const SEGMENT_BYTES = 4096

/** Office encrypts read-only files by these passwords, so that they open without one. */
const DEFAULT_PASSWORD = 'VelvetSweatshop'
export const SLIDES_DEFAULT_PASSWORD = '/01Hannes Ruescher/01'

export const UNKNOWN_ENCRYPTION =
  'The document is encrypted in a way that cannot be read, even with its password'

/** Decrypts the streams of an encrypted file. @throws Locked if the password is missing or wrong, and Unreadable. */
export function decryptPackage(info: Uint8Array, content: Uint8Array, password: string | null): Buffer {
  const data = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  return tryPasswords(password, (candidate) => {
    const decrypt = unlock(Buffer.from(info), candidate)
    return decrypt === null ? null : decrypt(data.subarray(8)).subarray(0, Number(data.readBigUInt64LE(0)))
  })
}

/**
 * Opens a file with its password, or else with the default one. `open` returns null for a wrong password.
 * @throws Locked if the password is missing or wrong, and Unreadable.
 */
export function tryPasswords<T>(
  password: string | null,
  open: (candidate: string) => T | null,
  byDefault = DEFAULT_PASSWORD,
): T {
  try {
    for (const candidate of new Set([password ?? byDefault, byDefault])) {
      const opened = open(candidate)
      if (opened !== null) return opened
    }
  } catch (error) {
    if (error instanceof Unreadable) throw error
    throw new Unreadable('The encryption of the document is damaged', { cause: error })
  }
  throw new Locked(password !== null)
}

type Decrypt = (data: Buffer) => Buffer

/** Returns the function that decrypts the file; null if the password is wrong. */
function unlock(info: Buffer, password: string): Decrypt | null {
  const [major, minor] = [info.readUInt16LE(0), info.readUInt16LE(2)]
  if (minor === 2 && major >= 2 && major <= 4) return unlockStandard(info.subarray(8), password)
  if (minor === 4 && major === 4) return unlockAgile(info.toString('utf8', 8), password)
  throw new Unreadable(UNKNOWN_ENCRYPTION)
}

/** Hashes the parts as one. */
export function hash(algorithm: string, ...parts: readonly Buffer[]): Buffer {
  const sum = createHash(algorithm)
  for (const part of parts) sum.update(part)
  return sum.digest()
}

/** Encodes a number in four bytes, little-endian. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function hashPassword(algorithm: string, salt: Buffer, password: string, spins: number): Buffer {
  let sum = hash(algorithm, salt, Buffer.from(password, 'utf16le'))
  for (let n = 0; n < spins; n++) sum = hash(algorithm, uint32(n), sum)
  return sum
}

/** Decrypts whole blocks; the end of a file may lack some bytes. */
function decipher(name: string, key: Buffer, iv: Buffer | null, data: Buffer): Buffer {
  const whole = data.subarray(0, data.length - (data.length % 16))
  const cipher = createDecipheriv(name, key, iv).setAutoPadding(false)
  return Buffer.concat([cipher.update(whole), cipher.final()])
}

function unlockStandard(info: Buffer, password: string): Decrypt | null {
  const headerSize = info.readUInt32LE(0)
  const keyBytes = info.readUInt32LE(4 + 16) / 8
  const verifier = info.subarray(4 + headerSize)
  const salt = verifier.subarray(4, 20)
  const sum = hash('sha1', hashPassword('sha1', salt, password, STANDARD_SPINS), uint32(0))
  const derive = (pad: number): Buffer =>
    hash('sha1', Buffer.alloc(64, pad).map((byte, n) => byte ^ (sum[n] ?? 0)) as Buffer)
  const key = Buffer.concat([derive(0x36), derive(0x5c)]).subarray(0, keyBytes)
  const decrypt: Decrypt = (data) => decipher(`aes-${keyBytes * 8}-ecb`, key, null, data)
  const word = decrypt(verifier.subarray(20, 36))
  return decrypt(verifier.subarray(40, 72)).subarray(0, 20).equals(hash('sha1', word)) ? decrypt : null
}

// Keys of the values that agile encryption derives from a password (MS-OFFCRYPTO, 2.3.4.13).
const VERIFIER_INPUT = Buffer.from('fea7d2763b4b9e79', 'hex')
const VERIFIER_HASH = Buffer.from('d7aa0f6d3061344e', 'hex')
const KEY_VALUE = Buffer.from('146e0be7abacd0d6', 'hex')

function unlockAgile(xml: string, password: string): Decrypt | null {
  const data = findAttributes(xml, 'keyData')
  const key = findAttributes(xml, 'encryptedKey')
  const spins = Number(key.spinCount)
  if (!(spins <= MAX_SPINS)) throw new Unreadable('The encryption of the document is damaged')
  const salt = Buffer.from(key.saltValue!, 'base64')
  const algorithm = nameHash(key.hashAlgorithm)
  const sum = hashPassword(algorithm, salt, password, spins)
  const open = (block: Buffer, value: string | undefined): Buffer => {
    const derived = fit(hash(algorithm, sum, block), Number(key.keyBits) / 8)
    return decipher(nameCipher(key), derived, fit(salt, Number(key.blockSize)), Buffer.from(value!, 'base64'))
  }
  const input = open(VERIFIER_INPUT, key.encryptedVerifierHashInput).subarray(0, Number(key.saltSize))
  const expected = hash(algorithm, input)
  if (!open(VERIFIER_HASH, key.encryptedVerifierHashValue).subarray(0, expected.length).equals(expected))
    return null
  const secret = open(KEY_VALUE, key.encryptedKeyValue).subarray(0, Number(data.keyBits) / 8)
  return (content) => decryptSegments(content, data, secret)
}

function decryptSegments(content: Buffer, data: Readonly<Record<string, string>>, key: Buffer): Buffer {
  const salt = Buffer.from(data.saltValue!, 'base64')
  const segments: Buffer[] = []
  for (let n = 0; n * SEGMENT_BYTES < content.length; n++) {
    const iv = fit(hash(nameHash(data.hashAlgorithm), salt, uint32(n)), Number(data.blockSize))
    const segment = content.subarray(n * SEGMENT_BYTES, (n + 1) * SEGMENT_BYTES)
    segments.push(decipher(nameCipher(data), key, iv, segment))
  }
  return Buffer.concat(segments)
}

const nameHash = (name = ''): string => name.toLowerCase().replace('-', '')

function nameCipher({
  cipherAlgorithm,
  cipherChaining = '',
  keyBits,
}: Readonly<Record<string, string>>): string {
  if (cipherAlgorithm !== 'AES') throw new Unreadable(UNKNOWN_ENCRYPTION)
  return `aes-${keyBits}-${cipherChaining === 'ChainingModeCFB' ? 'cfb' : 'cbc'}`
}

/** Truncates or pads a value (MS-OFFCRYPTO, 2.3.4.11). */
const fit = (bytes: Buffer, length: number): Buffer =>
  bytes.length >= length
    ? bytes.subarray(0, length)
    : Buffer.concat([bytes, Buffer.alloc(length - bytes.length, 0x36)])

function findAttributes(xml: string, wanted: string): Readonly<Record<string, string>> {
  let found: Readonly<Record<string, string>> = {}
  parseXml(xml, {
    open: (name, attributes) => {
      if (name === wanted) found = attributes
    },
  })
  return found
}
