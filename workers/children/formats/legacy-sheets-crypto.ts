import { BEGINS, type BiffRecord, BOUND_SHEET, isBiff8, listRecords } from './biff.ts'
import { decryptStream, unlockBlocks } from './legacy-crypto.ts'
import { deriveXorBytes } from './legacy-xor.ts'
import { tryPasswords } from './office-crypto.ts'

/** Decrypts the workbook streams of Excel 5 to 2003 (MS-XLS, 2.2.10). */

const FILE_PASS = 0x2f
// Readers skip this record, which marks the end of a block that has no content.
const INTERFACE_END = 0xe2
// Records whose data are plain: they begin streams, or are needed before the password is known.
const PLAIN_RECORDS: ReadonlySet<number> = new Set([
  ...BEGINS,
  FILE_PASS,
  0xe1,
  0x0138,
  0x0194,
  0x0195,
  0x0196,
])
// The record follows the first one, or a few that protect the file from changes.
const MAX_RECORDS_BEFORE = 10
const BLOCK_BYTES = 1024

/** Finds the record that says how the stream is encrypted; null if it is plain (MS-XLS, 2.4.117). */
function findFilePass(stream: Buffer): BiffRecord | null {
  let n = 0
  for (const record of listRecords(stream)) {
    if (record.type === FILE_PASS) return record
    const isFirst = n++ === 0
    if (isFirst && !BEGINS.has(record.type)) return null
    if (n >= MAX_RECORDS_BEFORE) return null
  }
  return null
}

/**
 * Decrypts a workbook stream; null if it is not encrypted.
 * @throws Locked if the password is missing or wrong, and Unreadable.
 */
export function decryptWorkbook(bytes: Uint8Array, password: string | null): Buffer | null {
  const stream = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = findFilePass(stream)
  if (found === null) return null
  const info = stream.subarray(found.at, found.at + found.size)
  const plain = tryPasswords(password, (candidate) => {
    // Before Excel 97, the record has only the key and the verifier.
    const isOld = !isBiff8(stream)
    if (isOld || info.readUInt16LE(0) === 0) return removeXor(stream, info.subarray(isOld ? 0 : 2), candidate)
    const decrypt = unlockBlocks(info.subarray(2), candidate)
    return decrypt && decryptStream(stream, decrypt, BLOCK_BYTES)
  })
  for (const { type, at, size } of listRecords(stream)) {
    // The place of a sheet is plain, too.
    const plainBytes = PLAIN_RECORDS.has(type) ? size : type === BOUND_SHEET ? 4 : 0
    stream.copy(plain, at - 4, at - 4, at + plainBytes)
  }
  plain.writeUInt16LE(INTERFACE_END, found.at - 4)
  return plain
}

/** Removes XOR obfuscation; null if the password is wrong (MS-OFFCRYPTO, 2.3.7.3). */
function removeXor(stream: Buffer, info: Buffer, password: string): Buffer | null {
  const expected = { key: info.readUInt16LE(0), verifier: info.readUInt16LE(2) }
  const mask = deriveXorBytes(password, expected, 2)
  if (mask === null) return null
  const plain = Buffer.from(stream)
  for (const { at, size } of listRecords(stream)) {
    const end = Math.min(at + size, stream.length)
    for (let n = at; n < end; n++) {
      const byte = stream[n]!
      plain[n] = (((byte << 3) | (byte >>> 5)) & 0xff) ^ mask[(n + size) & 15]!
    }
  }
  return plain
}
