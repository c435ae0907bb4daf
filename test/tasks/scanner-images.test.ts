import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { closeVision, openPages } from '../../workers/children/documents/pages.ts'
import { decodeJpegXl } from '../../workers/children/images/jpeg-xl.ts'
import { parseNetpbm } from '../../workers/children/images/netpbm.ts'
import { parsePcx } from '../../workers/children/images/pcx.ts'
import { parsePsd } from '../../workers/children/images/psd.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'
import { drawSign } from '../sign.ts'

/** Images that scanners and imaging programs write by default. */

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

const WORDS = 'Harbour office, room 12'
const WIDTH = 640
const HEIGHT = 80
const { data: rgba } = drawSign(WORDS, 900, 200).getContext('2d').getImageData(30, 70, WIDTH, HEIGHT)
const PIXELS = WIDTH * HEIGHT
const rgb = Buffer.from(Array.from({ length: 3 * PIXELS }, (_, i) => rgba[4 * Math.floor(i / 3) + (i % 3)]!))
const grey = Buffer.from(Array.from({ length: PIXELS }, (_, i) => rgba[4 * i + 1]!))
const isInk = (x: number, y: number): boolean => x < WIDTH && grey[y * WIDTH + x]! < 128

/** Packs one bit for each pixel, rows of whole bytes. */
function packBits(rowBytes: number, isSet: (x: number, y: number) => boolean): Buffer {
  const bits = Buffer.alloc(rowBytes * HEIGHT)
  for (let y = 0; y < HEIGHT; y++)
    for (let x = 0; x < WIDTH; x++) if (isSet(x, y)) bits[y * rowBytes + (x >> 3)]! |= 128 >> (x & 7)
  return bits
}

function createImage(header: string, samples: Uint8Array | string): Buffer {
  return Buffer.concat([Buffer.from(header), Buffer.from(samples as string)])
}

function toWide(samples: Uint8Array, factor: number): Buffer {
  const wide = Buffer.alloc(2 * samples.length)
  for (const [i, sample] of samples.entries()) wide.writeUInt16BE(sample * factor, 2 * i)
  return wide
}

const SIZE = `${WIDTH} ${HEIGHT}`
const pgm = createImage(`P5\n# SANE data follows\n${SIZE}\n255\n`, grey)
const bits = packBits(Math.ceil(WIDTH / 8), isInk)
const netpbm: Record<string, Buffer> = {
  PBM: createImage(`P4\n${SIZE}\n`, bits),
  PGM: pgm,
  'PGM of 12 bits': createImage(`P5 ${SIZE} 4095\n`, toWide(grey, 16)),
  PPM: createImage(`P6\n${SIZE}\n255\n`, rgb),
  PAM: createImage(
    `P7\nWIDTH ${WIDTH}\nHEIGHT ${HEIGHT}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n`,
    Uint8Array.from(rgba),
  ),
  'plain PBM': createImage(
    `P1\n${SIZE}\n`,
    Array.from({ length: PIXELS }, (_, i) => `${Number(isInk(i % WIDTH, Math.floor(i / WIDTH)))}\n`).join(''),
  ),
  'plain PGM': createImage(`P2\n# a comment\n${SIZE}\n255\n`, grey.join(' ')),
  'plain PPM': createImage(`P3\n${SIZE}\n255\n`, rgb.join('\n')),
}

/** Builds a PCX image from lines of plane bytes. */
function createPcx(bitsPerPixel: number, planes: number, lines: Uint8Array, palette?: Uint8Array): Buffer {
  const head = Buffer.alloc(128)
  head.set([10, 5, 1, bitsPerPixel])
  head.writeUInt16LE(WIDTH - 1, 8)
  head.writeUInt16LE(HEIGHT - 1, 10)
  head[65] = planes
  head.writeUInt16LE(lines.length / planes / HEIGHT, 66)
  const encoded: number[] = []
  for (let at = 0; at < lines.length; ) {
    let count = 1
    while (count < 63 && lines[at + count] === lines[at]) count++
    encoded.push(0xc0 | count, lines[at]!)
    at += count
  }
  return Buffer.concat([head, Buffer.from(encoded), ...(palette ? [Buffer.from([12]), palette] : [])])
}

const planeLines = Buffer.from(
  Array.from({ length: 3 * PIXELS }, (_, i) => {
    const [line, x] = [Math.floor(i / WIDTH), i % WIDTH]
    return rgb[3 * (Math.floor(line / 3) * WIDTH + x) + (line % 3)]!
  }),
)
const pcx: Record<string, Buffer> = {
  'PCX of three planes': createPcx(8, 3, planeLines),
  'PCX with a palette': createPcx(
    ...([8, 1, grey.map((level) => 255 - level)] as const),
    Uint8Array.from({ length: 768 }, (_, i) => 255 - Math.floor(i / 3)),
  ),
  'PCX of two colours': createPcx(
    1,
    1,
    packBits(Math.ceil(WIDTH / 16) * 2, (x, y) => !isInk(x, y)),
  ),
}

const jxl = await readFile(new URL('../data/words.jxl', import.meta.url))
const box = (type: string, content: Uint8Array): Buffer => {
  const head = Buffer.from(`....${type}`)
  head.writeUInt32BE(8 + content.length)
  return Buffer.concat([head, content])
}
const boxed = Buffer.concat([
  box('JXL ', Buffer.from('0d0a870a', 'hex')),
  box('ftyp', Buffer.from('jxl \0\0\0\0jxl ')),
  box('jxlc', jxl),
])

/** Builds the file of a flattened image from the lines of its channels. */
function createPsd(
  mode: number,
  lines: readonly Uint8Array[],
  { depth = 8, palette = Buffer.alloc(0), isPacked = false, isLarge = false } = {},
): Buffer {
  const uint32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  const head = Buffer.alloc(26)
  head.write('8BPS')
  head.writeUInt16BE(isLarge ? 2 : 1, 4)
  head.writeUInt16BE(lines.length / HEIGHT, 12)
  head.writeUInt32BE(HEIGHT, 14)
  head.writeUInt32BE(WIDTH, 18)
  head.writeUInt16BE(depth, 22)
  head.writeUInt16BE(mode, 24)
  const packed = isPacked ? lines.map(packLine) : lines
  const sizes = packed.map(({ length }) => uint32(length).subarray(isLarge ? 0 : 2))
  return Buffer.concat([
    head,
    uint32(palette.length),
    palette,
    uint32(4),
    Buffer.from('8BIM'),
    Buffer.alloc(isLarge ? 8 : 4),
    Buffer.from([0, Number(isPacked)]),
    ...(isPacked ? sizes : []),
    ...packed,
  ])
}

/** Packs a line as PackBits, in runs and single bytes. */
function packLine(line: Uint8Array): Buffer {
  const packed: number[] = []
  for (let at = 0; at < line.length; ) {
    let count = 1
    while (count < 128 && at + count < line.length && line[at + count] === line[at]) count++
    packed.push(count === 1 ? 0 : 257 - count, line[at]!)
    at += count
  }
  return Buffer.from(packed)
}

const cutLines = (samples: Uint8Array, bytes: number): Uint8Array[] =>
  Array.from({ length: samples.length / bytes }, (_, n) => samples.subarray(n * bytes, (n + 1) * bytes))
const channel = (n: number): Uint8Array[] =>
  cutLines(
    Uint8Array.from({ length: PIXELS }, (_, i) => rgb[3 * i + n]!),
    WIDTH,
  )
const greyLines = cutLines(grey, WIDTH)
const white = cutLines(new Uint8Array(PIXELS).fill(255), WIDTH)
const colours = [0, 1, 2].flatMap(channel)
const psd: Record<string, Buffer> = {
  'PSD of colours, with a mask': createPsd(3, [...colours, ...white]),
  'PSD in packed lines': createPsd(3, colours, { isPacked: true }),
  'PSB in packed lines': createPsd(3, colours, { isPacked: true, isLarge: true }),
  'PSD of inks': createPsd(4, [...white, ...white, ...white, ...greyLines]),
  'PSD of 16 bits': createPsd(1, cutLines(toWide(grey, 257), 2 * WIDTH), { depth: 16 }),
  'PSD with a palette': createPsd(
    2,
    cutLines(
      grey.map((level) => 255 - level),
      WIDTH,
    ),
    {
      palette: Buffer.from(Array.from({ length: 768 }, (_, i) => 255 - (i % 256))),
    },
  ),
  'PSD of two colours': createPsd(0, cutLines(bits, WIDTH / 8), { depth: 1 }),
}

/** Builds a TIFF of 12-bit levels in 16 bits: its white is 4080. */
function createTiff12(): Buffer {
  const tags = [
    ...[256, WIDTH, 257, HEIGHT, 258, 16, 259, 1, 262, 1, 273, 8, 277, 1, 278, HEIGHT],
    ...[279, 2 * PIXELS],
  ]
  const directory = Buffer.alloc(2 + 6 * tags.length + 4)
  directory.writeUInt16BE(tags.length / 2)
  for (let i = 0; i < tags.length / 2; i++) {
    directory.writeUInt16BE(tags[2 * i]!, 2 + 12 * i)
    directory.writeUInt16BE(4, 4 + 12 * i)
    directory.writeUInt32BE(1, 6 + 12 * i)
    directory.writeUInt32BE(tags[2 * i + 1]!, 10 + 12 * i)
  }
  const head = Buffer.from('MM\0*....')
  head.writeUInt32BE(8 + 2 * PIXELS, 4)
  return Buffer.concat([head, toWide(grey, 16), directory])
}

async function read(bytes: Buffer) {
  const mediaType = await sniffMediaType(bytes.subarray(0, 65_536), {})
  const reader = await openPages(new Uint8Array(bytes), mediaType, { ocrMode: 'local' })
  const pages = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  return { mediaType, pages, texts: pages.map(({ text }) => text) }
}

for (const [mediaType, images] of [
  ['image/x-portable-anymap', netpbm],
  ['image/vnd.zbrush.pcx', pcx],
  ['image/vnd.adobe.photoshop', psd],
  ['image/jxl', { 'JPEG XL': jxl, 'JPEG XL in a container': boxed }],
  ['image/tiff', { 'TIFF of 12 bits': createTiff12() }],
] as const)
  for (const [name, bytes] of Object.entries(images))
    test(`${name} is read`, async () => {
      const { mediaType: sniffed, texts } = await read(bytes)
      assert.deepEqual([sniffed, texts], [mediaType, [WORDS]])
    })

test('each image of a Netpbm file is a page', async () => {
  assert.deepEqual((await read(Buffer.concat([pgm, netpbm.PPM!]))).texts, [WORDS, WORDS])
})

test('a codestream of JPEG 2000 is read', async () => {
  const file = await readFile(new URL('../data/photo.jp2', import.meta.url))
  const { mediaType, texts } = await read(file.subarray(file.indexOf('ff4fff51', 0, 'hex')))
  assert.deepEqual([mediaType, texts], ['image/j2c', ['Photo of the harbour']])
})

test('a cut image is read as far as it goes, and says so', async () => {
  for (const bytes of [pgm, pcx['PCX of three planes']!, psd['PSD in packed lines']!]) {
    const { pages } = await read(bytes.subarray(0, bytes.length - 2000))
    assert.deepEqual(
      [pages[0]!.status, pages[0]!.detail],
      ['read', 'The image is damaged: part of it is missing'],
    )
  }
})

test('a false size is refused', () => {
  const large = pcx['PCX of two colours']!.subarray()
  const claim = Buffer.from(large)
  claim.writeUInt16LE(65_000, 8)
  claim.writeUInt16LE(65_000, 10)
  for (const [parse, message] of [
    [() => parseNetpbm(Buffer.from('P5 60000 60000 255\n1')), /too large/],
    [() => parseNetpbm(Buffer.from('P6 8000 8000 255\n1'))[0]!(), /damaged/],
    [() => parseNetpbm(Buffer.from('P1 8000 8000 1'))[0]!(), /damaged/],
    [() => parseNetpbm(Buffer.from('P5 0 10 255\n1')), /damaged/],
    [() => parseNetpbm(Buffer.from('P7\nWIDTH 1\nHEIGHT 1\nDEPTH 9\nMAXVAL 255\nENDHDR\n1')), /damaged/],
    [() => parsePcx(claim), /damaged|too large/],
    [() => parsePcx(large.subarray(0, 100)), /damaged/],
    [() => parsePsd(psd['PSD of 16 bits']!.subarray(0, 30)), /damaged/],
    [() => parsePsd(claimPsd(9000, 9000)), /too large/],
    [() => parsePsd(claimPsd(7000, 7000)), /damaged/],
  ] as const)
    assert.throws(parse, message)
})

const claimPsd = (width: number, height: number): Buffer => {
  const file = Buffer.from(
    createPsd(
      3,
      colours.map(() => Buffer.alloc(1)),
    ),
  )
  file.writeUInt32BE(height, 14)
  file.writeUInt32BE(width, 18)
  return file
}

test('a JPEG XL that is damaged or too large says so', async () => {
  const decoded = (bytes: Uint8Array) => decodeJpegXl(new Uint8Array(bytes))
  await assert.rejects(decoded(jxl.subarray(0, 40)), { name: 'Unreadable', message: 'The image is damaged' })
  await assert.rejects(decoded(Buffer.from('0000000c4a584c200d0a870a', 'hex')), /damaged/)
  // 8 * 32 by a ratio of 1:1 is small; 2^18 rows by a ratio of 2:1 are not.
  await assert.rejects(decoded(Buffer.from('ff0a3f00', 'hex')), /damaged/)
  await assert.rejects(decoded(Buffer.from('ff0afcffffffffffff', 'hex')), /too large/)
})

test('texts that begin like an image stay texts', async () => {
  for (const text of ['P1 is the first of 12 points', 'P5 10 20 30\nnotes', 'P6\n'])
    assert.equal(await sniffMediaType(Buffer.from(text), {}), 'text/plain', text)
})
