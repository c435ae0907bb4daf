import type { Bomb } from './bombs.ts'
import { createToneWav } from './recordings.ts'

/** Small hostile recordings: deep, endless, numerous, and with false counts. */

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

const box = (name: string, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts)
  return Buffer.concat([u32(8 + body.length), Buffer.from(name), body])
}

const FTYP = box('ftyp', Buffer.from('M4A '), u32(0), Buffer.from('M4A mp42'))

/** Returns an MP4 file whose only track has a table of samples. */
function createMp4(sampleTable: Buffer): Buffer {
  const mdhd = box('mdhd', u32(0), u32(0), u32(0), u32(48_000), u32(0xffff_ffff), u32(0x55c40000))
  const hdlr = box('hdlr', u32(0), u32(0), Buffer.from('soun'), Buffer.alloc(13))
  const entry = box(
    'ulaw',
    ...[Buffer.alloc(6), Buffer.from([0, 1]), Buffer.alloc(8), Buffer.from([0, 1, 0, 16, 0, 0, 0, 0])],
    u32(48_000 * 65_536),
  )
  const stsd = box('stsd', u32(0), u32(1), entry)
  const stbl = box('stbl', stsd, sampleTable)
  const tkhd = box('tkhd', u32(0), u32(0), u32(0), u32(1), Buffer.alloc(68))
  const trak = box('trak', tkhd, box('mdia', mdhd, hdlr, box('minf', stbl)))
  const mvhd = box('mvhd', u32(0), u32(0), u32(0), u32(1000), u32(0xffff_ffff), Buffer.alloc(80))
  return Buffer.concat([FTYP, box('moov', mvhd, trak), box('mdat', Buffer.alloc(1000))])
}

const FALSE_COUNT = u32(0xffff_fff0)
const SAMPLE_TABLE = Buffer.concat([
  box('stts', u32(0), u32(1), FALSE_COUNT, u32(1)),
  box('stsz', u32(0), u32(1), FALSE_COUNT),
  box('stsc', u32(0), u32(1), u32(1), FALSE_COUNT, u32(1)),
  box('stco', u32(0), u32(1), u32(1000)),
])

/** Returns boxes within boxes. */
function nest(depth: number): Buffer {
  const heads = Buffer.alloc(depth * 8)
  for (let n = 0; n < depth; n++) {
    heads.writeUInt32BE((depth - n) * 8, n * 8)
    heads.write('moov', n * 8 + 4)
  }
  return heads
}

const EBML = Buffer.from('1a45dfa3874282847765626d', 'hex')

/** Returns pages of Ogg without sound. */
function createOggPages(count: number): Buffer {
  const page = Buffer.alloc(28)
  page.write('OggS')
  page[26] = 1
  return Buffer.concat(Array.from({ length: count }, () => page))
}

/** Returns a WAV file that claims to have far more sound. */
function createLyingWav(): Buffer {
  const wav = createToneWav(1, [])
  wav.writeUInt32LE(0xffff_ffff, 4)
  wav.writeUInt32LE(0xffff_fff0, 40)
  return wav
}

const createBomb = (name: string, make: () => Buffer): Bomb => ({ name, fileName: 'bomb', make })

export const recordingBombs: readonly Bomb[] = [
  createBomb('four thousand million samples', () => createMp4(SAMPLE_TABLE)),
  createBomb('tables of samples with false counts', () =>
    createMp4(
      Buffer.concat(
        ['stts', 'stsz', 'stsc', 'stco', 'ctts', 'stss'].map((name) =>
          box(name, u32(0), FALSE_COUNT, FALSE_COUNT),
        ),
      ),
    ),
  ),
  createBomb('100,000 boxes in boxes', () => Buffer.concat([FTYP, nest(100_000)])),
  createBomb('boxes of size 0', () => Buffer.concat([FTYP, Buffer.alloc(5_000_000)])),
  createBomb('elements of unknown size in each other', () =>
    Buffer.concat([EBML, Buffer.alloc(5_000_000, Buffer.from('18538067ff', 'hex'))]),
  ),
  createBomb('2 million blocks without sound', () =>
    Buffer.concat([
      EBML,
      Buffer.from('18538067ff1f43b675ff', 'hex'),
      Buffer.alloc(12_000_000, Buffer.from('a38481000080', 'hex')),
    ]),
  ),
  createBomb('a million pages without sound', () => createOggPages(1_000_000)),
  createBomb('a sound that is longer than its file', createLyingWav),
  createBomb('20 million starts of frames', () => Buffer.alloc(20_000_000, Buffer.from('fffb', 'hex'))),
  createBomb('a million frames of the smallest size', () =>
    Buffer.alloc(24_000_000, Buffer.concat([Buffer.from('fff314c4', 'hex'), Buffer.alloc(20)])),
  ),
  createBomb('a header of FLAC and zeros', () =>
    Buffer.concat([Buffer.from('fLaC\0\0\0\x22', 'latin1'), Buffer.alloc(20_000_000)]),
  ),
  createBomb('a million tags', () => Buffer.alloc(10_000_000, Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1'))),
]
