import { decryptStream, unlockBlocks } from './legacy-crypto.ts'
import type { WordStreams } from './legacy-word.ts'
import { OLD_IDENTIFIER } from './legacy-word-old.ts'
import { deriveXorBytes } from './legacy-xor.ts'
import { tryPasswords } from './office-crypto.ts'

/** Decrypts files of Word 6 to 2003 (MS-DOC, 2.2.6). */

const FLAGS_AT = 0x0a
const KEY_AT = 0x0e
const HAS_TABLE_1 = 0x0200
const IS_ENCRYPTED = 0x0100
const IS_OBFUSCATED = 0x8000
// The first bytes of the main stream are plain.
const PLAIN_BYTES = 0x44
const OLD_PLAIN_BYTES = 0x34
const BLOCK_BYTES = 512

/**
 * Decrypts the streams of a document; returns plain ones unchanged.
 * @throws Locked if the password is missing or wrong, and Unreadable.
 */
export function decryptWord(streams: WordStreams, password: string | null): WordStreams {
  const main = Buffer.from(streams.main)
  if (main.length < PLAIN_BYTES) return streams
  const flags = main.readUInt16LE(FLAGS_AT)
  if ((flags & IS_ENCRYPTED) === 0) return streams
  const name = (flags & HAS_TABLE_1) === 0 ? 'table0' : 'table1'
  const table = Buffer.from(streams[name] ?? [])
  const isOld = main.readUInt16LE(0) === OLD_IDENTIFIER
  const unlock = isOld || (flags & IS_OBFUSCATED) !== 0 ? unlockXor : unlockStreams
  return tryPasswords(password, (candidate) => {
    const decrypt = unlock(main, candidate, table)
    const plainBytes = isOld ? OLD_PLAIN_BYTES : PLAIN_BYTES
    return decrypt && { ...streams, main: decrypt(main, plainBytes), [name]: decrypt(table, 0) }
  })
}

type DecryptStream = (stream: Buffer, plainBytes: number) => Buffer

/** The encryption header begins the table stream. */
function unlockStreams(main: Buffer, password: string, table: Buffer): DecryptStream | null {
  const decrypt = unlockBlocks(table.subarray(0, main.readUInt32LE(KEY_AT)), password)
  return decrypt && ((stream, plainBytes) => decryptStream(stream, decrypt, BLOCK_BYTES, plainBytes))
}

function unlockXor(main: Buffer, password: string): DecryptStream | null {
  const expected = { key: main.readUInt16LE(KEY_AT + 2), verifier: main.readUInt16LE(KEY_AT) }
  const mask = deriveXorBytes(password, expected, 7)
  // Zeros, and bytes that would become zeros, stay as they are.
  return (
    mask &&
    ((stream, plainBytes) =>
      Buffer.from(
        stream.map((byte, n) => (n < plainBytes || byte === 0 ? byte : byte ^ mask[n & 15]! || byte)),
      ))
  )
}
