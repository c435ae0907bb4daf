/** Joins MP3 files to one stream: removes tags, and frames that describe the size of a single file. */

// ID3v2: "ID3", version, flags, and a size of four bytes with seven bits each.
const ID3_HEADER_BYTES = 10
const ID3_FOOTER_FLAG = 0x10
// ID3v1 is at the end of a file.
const ID3V1_BYTES = 128
// The largest frame of layer 3, with the headers of the one after it.
const MAX_HEAD_BYTES = 4096

/** Yields the frames of an MP3 file that arrives in pieces. Other bytes pass unchanged. */
export async function* stripTags(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pending: Buffer = Buffer.alloc(0)
  let isStarted = false
  for await (const piece of pieces) {
    pending = Buffer.concat([pending, piece])
    if (!isStarted) {
      const start = findStart(pending)
      if (start === null) continue
      isStarted = true
      pending = pending.subarray(start)
    }
    // The last bytes may be a tag.
    if (pending.length <= ID3V1_BYTES) continue
    yield pending.subarray(0, pending.length - ID3V1_BYTES)
    pending = pending.subarray(pending.length - ID3V1_BYTES)
  }
  if (!isStarted) pending = pending.subarray(findStart(pending, true)!)
  const hasTag =
    pending.length >= ID3V1_BYTES &&
    pending.toString('latin1', pending.length - ID3V1_BYTES).startsWith('TAG')
  const rest = hasTag ? pending.subarray(0, pending.length - ID3V1_BYTES) : pending
  if (rest.length > 0) yield rest
}

/** Returns the offset of the first frame with sound; null if more bytes are needed to know. */
function findStart(bytes: Buffer, isWhole = false): number | null {
  let start = 0
  while (bytes.toString('latin1', start, start + 3) === 'ID3') {
    if (bytes.length < start + ID3_HEADER_BYTES) return isWhole ? start : null
    const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + (bytes[start + at]! & 0x7f), 0)
    const footer = (bytes[start + 5]! & ID3_FOOTER_FLAG) === 0 ? 0 : ID3_HEADER_BYTES
    start += ID3_HEADER_BYTES + size + footer
    if (bytes.length < start) return isWhole ? bytes.length : null
  }
  if (bytes.length < start + MAX_HEAD_BYTES && !isWhole) return null
  const frame = measureFrame(bytes, start)
  if (frame === null) return start
  const head = bytes.toString('latin1', start, start + frame)
  return /Xing|Info|VBRI/.test(head.slice(0, 64)) ? start + frame : start
}

const RATES = [44_100, 48_000, 32_000] as const
const KBITS_1 = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320] as const
const KBITS_2 = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160] as const

/** Returns the size of the frame of layer 3 at an offset; null if there is none (ISO 11172-3, 2.4.1.3). */
function measureFrame(bytes: Buffer, at: number): number | null {
  if (bytes.length < at + 4 || bytes[at] !== 0xff || (bytes[at + 1]! & 0xe6) !== 0xe2) return null
  const version = (bytes[at + 1]! >> 3) & 3
  const kbits = (version === 3 ? KBITS_1 : KBITS_2)[(bytes[at + 2]! >> 4) - 1]
  const rate = RATES[(bytes[at + 2]! >> 2) & 3]
  if (version === 1 || kbits === undefined || rate === undefined) return null
  const [divisor, samples] = [version === 3 ? 1 : version === 2 ? 2 : 4, version === 3 ? 144 : 72]
  return Math.floor((samples * kbits * 1000) / (rate / divisor)) + ((bytes[at + 2]! >> 1) & 1)
}
