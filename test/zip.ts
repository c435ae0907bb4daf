import { crc32, deflateRawSync } from 'node:zlib'
import type { Packed } from './packing.ts'

const UTF8_NAMES_FLAG = 0x800

/** Builds a zip archive. */
export function createZip(
  files: readonly (readonly [path: string, text: string | Uint8Array | Packed])[],
): Buffer {
  const known = new Map<string | Uint8Array, Buffer>()
  return buildRawZip(
    files.map(([name, text]) => {
      if (isPacked(text)) return { name, data: text }
      const data = known.get(text) ?? Buffer.from(text as string)
      known.set(text, data)
      return { name, data }
    }),
  )
}

const isPacked = (text: string | Uint8Array | Packed): text is Packed =>
  typeof text === 'object' && 'packed' in text

/** A file in an archive, optionally with false headers. */
export interface RawEntry {
  readonly name: string
  readonly data: Buffer | Packed
  readonly flags?: number
  readonly method?: number
  readonly attributes?: number
  /**
   * Overrides of the true sizes and checksum in the central directory. `localOverrides` changes them in the local
   * header.
   */
  readonly centralOverrides?: Partial<EntrySizes>
  readonly localOverrides?: Partial<EntrySizes>
  readonly localName?: string
  /** Bytes of the name in both headers, in an encoding other than UTF-8. */
  readonly nameBytes?: Buffer
  /**
   * Offset to write to the central directory instead of the true one. The archive then contains no data for this entry.
   */
  readonly dataOffset?: number
}

interface EntrySizes {
  readonly packed: number
  readonly unpacked: number
  readonly crc: number
}

/** Builds an archive byte by byte, valid or not. Compresses a buffer only once, even if several entries share it. */
export function buildRawZip(entries: readonly RawEntry[], count = entries.length): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  const known = new Map<Buffer, Packed>()
  const deflated = (data: Buffer): Packed => {
    const made = known.get(data) ?? { ...createStoredEntry(data), packed: deflateRawSync(data) }
    known.set(data, made)
    return made
  }
  let offset = 0
  for (const entry of entries) {
    const { name, data, flags = UTF8_NAMES_FLAG, method = 8, attributes = 0 } = entry
    const made = isPacked(data) ? data : method === 8 ? deflated(data) : createStoredEntry(data)
    const { packed } = made
    const truth = { ...made, packed: packed.length }
    const fields = ({ packed, unpacked, crc }: EntrySizes, nameLength: number): Buffer => {
      const head = Buffer.alloc(26)
      head.writeUInt16LE(20, 0)
      head.writeUInt16LE(flags, 2)
      head.writeUInt16LE(method, 4)
      head.writeUInt16LE(0x21, 8)
      head.writeUInt32LE(crc, 10)
      head.writeUInt32LE(packed, 14)
      head.writeUInt32LE(unpacked, 18)
      head.writeUInt16LE(nameLength, 22)
      return head
    }
    const centralName = entry.nameBytes ?? Buffer.from(name)
    const localName = entry.nameBytes ?? Buffer.from(entry.localName ?? name)
    const local = Buffer.concat([
      Buffer.from('PK\x03\x04'),
      fields({ ...truth, ...entry.localOverrides }, localName.length),
      localName,
    ])
    const at = entry.dataOffset ?? offset
    if (entry.dataOffset === undefined) {
      parts.push(local, packed)
      offset += local.length + packed.length
    }
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(attributes, 6)
    tail.writeUInt32LE(at, 10)
    directory.push(
      Buffer.from('PK\x01\x02\x14\x03', 'latin1'),
      fields({ ...truth, ...entry.centralOverrides }, centralName.length),
      tail,
      centralName,
    )
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  const many = Math.min(count, 0xffff)
  for (const [value, at, width] of [
    [many, 8, 2],
    [many, 10, 2],
    [size, 12, 4],
    [offset, 16, 4],
  ] as const)
    end.writeUIntLE(value, at, width)
  const large = count > 0xffff ? createZip64Records(count, size, offset) : Buffer.alloc(0)
  return Buffer.concat([...parts, ...directory, large, end])
}

const createStoredEntry = (data: Buffer): Packed => ({
  packed: data,
  unpacked: data.length,
  crc: crc32(data),
})

/** Builds the two zip64 records, which an archive needs if its entry count exceeds two bytes. */
function createZip64Records(count: number, size: number, offset: number): Buffer {
  const record = Buffer.alloc(76)
  record.write('PK\x06\x06', 'latin1')
  record.writeUInt32LE(44, 4)
  for (const [value, at] of [
    [count, 24],
    [count, 32],
    [size, 40],
    [offset, 48],
  ] as const)
    record.writeBigUInt64LE(BigInt(value), at)
  record.write('PK\x06\x07', 56, 'latin1')
  record.writeBigUInt64LE(BigInt(offset + size), 64)
  record.writeUInt32LE(1, 72)
  return record
}
