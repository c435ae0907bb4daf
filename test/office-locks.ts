import { createHash, randomBytes } from 'node:crypto'

/** Encrypts streams as Office 97 to 2003 does (MS-OFFCRYPTO, 2.3.5 and 2.3.6). */

export interface Lock {
  /** Begins with the version of the encryption. */
  readonly info: Buffer
  readonly encrypt: (block: number, bytes: Buffer) => Buffer
}

const hash = (name: string, ...parts: readonly Buffer[]): Buffer =>
  createHash(name).update(Buffer.concat(parts)).digest()

const uint32s = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [n, value] of values.entries()) bytes.writeUInt32LE(value, 4 * n)
  return bytes
}

/** Creates a lock. `bits` is the length of keys of the CryptoAPI; without it, the encryption is that of Office 97. */
export function createLock(password: string, bits?: 40 | 128): Lock {
  const [salt, value] = [randomBytes(16), randomBytes(16)]
  const words = Buffer.from(password, 'utf16le')
  if (bits === undefined) {
    const first = hash('md5', words).subarray(0, 5)
    const secret = hash('md5', ...Array(16).fill([first, salt]).flat()).subarray(0, 5)
    const encrypt = (block: number, bytes: Buffer): Buffer =>
      applyRc4(hash('md5', secret, uint32s(block)), bytes)
    const verifier = encrypt(0, Buffer.concat([value, hash('md5', value)]))
    return { info: Buffer.concat([Buffer.from([1, 0, 1, 0]), salt, verifier]), encrypt }
  }
  const secret = hash('sha1', salt, words)
  const encrypt = (block: number, bytes: Buffer): Buffer => {
    const key = hash('sha1', secret, uint32s(block)).subarray(0, bits / 8)
    return applyRc4(Buffer.concat([key, Buffer.alloc(bits === 40 ? 11 : 0)]), bytes)
  }
  const verifier = encrypt(0, Buffer.concat([value, hash('sha1', value)]))
  const header = uint32s(4, 0, 0x6801, 0x8004, bits, 1, 0, 0)
  const info = Buffer.concat([
    Buffer.from([4, 0, 2, 0]),
    uint32s(4, header.length),
    header,
    uint32s(16),
    salt,
    verifier.subarray(0, 16),
    uint32s(20),
    verifier.subarray(16),
  ])
  return { info, encrypt }
}

/** Encrypts a stream in blocks. Its first bytes stay plain. */
export function lockStream(stream: Buffer, { encrypt }: Lock, blockBytes: number, plainBytes = 0): Buffer {
  const blocks: Buffer[] = []
  for (let n = 0; n * blockBytes < stream.length; n++)
    blocks.push(encrypt(n, stream.subarray(n * blockBytes, (n + 1) * blockBytes)))
  return Buffer.concat([stream.subarray(0, plainBytes), Buffer.concat(blocks).subarray(plainBytes)])
}

/** Encrypts a workbook stream. `info` is the content of the record that says so. */
export function lockWorkbook(
  stream: Buffer,
  info: Buffer,
  encrypt: (all: Buffer, at: number, size: number) => Buffer,
): Buffer {
  const begin = 4 + stream.readUInt16LE(2)
  const head = Buffer.alloc(4)
  head.writeUInt16LE(0x2f, 0)
  head.writeUInt16LE(info.length, 2)
  const all = Buffer.concat([stream.subarray(0, begin), head, info, stream.subarray(begin)])
  const out = Buffer.from(all)
  for (let at = 0; at + 4 <= all.length; ) {
    const [type, size] = [all.readUInt16LE(at), all.readUInt16LE(at + 2)]
    at += 4
    // The record was inserted before the sheets.
    if (type === 0x85) all.writeUInt32LE(all.readUInt32LE(at) + head.length + info.length, at)
    const plain = [0x0809, 0x2f].includes(type) ? size : type === 0x85 ? 4 : 0
    all.copy(out, at, at, at + plain)
    encrypt(all, at, size).copy(out, at + plain, plain)
    at += size
  }
  return out
}

function applyRc4(key: Buffer, bytes: Buffer): Buffer {
  const state = Array.from({ length: 256 }, (_, n) => n)
  const swap = (a: number, b: number): void => {
    ;[state[a], state[b]] = [state[b]!, state[a]!]
  }
  let [i, j] = [0, 0]
  for (let n = 0; n < 256; n++) {
    j = (j + state[n]! + key[n % key.length]!) % 256
    swap(n, j)
  }
  j = 0
  return Buffer.from(
    bytes.map((byte) => {
      i = (i + 1) % 256
      j = (j + state[i]!) % 256
      swap(i, j)
      return byte ^ state[(state[i]! + state[j]!) % 256]!
    }),
  )
}
