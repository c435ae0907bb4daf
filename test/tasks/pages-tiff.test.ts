import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { closeVision, openPages, type PageResult } from '../../workers/children/documents/pages.ts'
import { canvasToGrey } from '../../workers/children/images/images.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'
import { drawSign } from '../sign.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

async function readAll(bytes: Uint8Array, mediaType: string, ocrMode: 'local' | 'none' = 'local') {
  const reader = await openPages(bytes, mediaType, { ocrMode: ocrMode })
  const pages: PageResult[] = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  return pages
}

/** Builds a TIFF of uncompressed grey pages, in either byte order, classic or BigTIFF. */
function createTiff(
  pages: readonly ReturnType<typeof canvasToGrey>[],
  little = true,
  big = false,
): Uint8Array {
  const word = big ? 8 : 4
  const step = big ? 20 : 12
  const head = big ? 16 : 8
  const directory = (big ? 8 : 2) + 9 * step + word
  const file = Buffer.alloc(head + pages.reduce((sum, page) => sum + page.data.length + directory, 0))
  const view = new DataView(file.buffer, file.byteOffset)
  const put = (at: number, value: number) =>
    big ? view.setBigUint64(at, BigInt(value), little) : view.setUint32(at, value, little)
  file.write(little ? 'II' : 'MM')
  view.setUint16(2, big ? 43 : 42, little)
  if (big) view.setUint16(4, 8, little)
  let link = big ? 8 : 4
  let at = head
  for (const { data, width, height } of pages) {
    file.set(data, at)
    const start = at + data.length
    put(link, start)
    if (big) put(start, 9)
    else view.setUint16(start, 9, little)
    const tags = [
      256,
      width,
      257,
      height,
      258,
      8,
      259,
      1,
      262,
      1,
      273,
      at,
      277,
      1,
      278,
      height,
      279,
      data.length,
    ]
    for (let i = 0; i < 9; i++) {
      const entry = start + (big ? 8 : 2) + i * step
      view.setUint16(entry, tags[2 * i]!, little)
      view.setUint16(entry + 2, big ? 16 : 4, little)
      put(entry + 4, 1)
      put(entry + 4 + word, tags[2 * i + 1]!)
    }
    link = start + directory - word
    at = start + directory
  }
  return file
}

test('reads every page of a TIFF, in both byte orders, classic and BigTIFF', async () => {
  const words = ['First of the pages', 'Second of the pages']
  const pages = words.map((text) => canvasToGrey(drawSign(text)))
  for (const [little, big] of [
    [true, false],
    [false, false],
    [true, true],
  ]) {
    const read = await readAll(createTiff(pages, little, big), 'image/tiff')
    assert.deepEqual(
      read.map((page) => page.text),
      words,
    )
    assert.deepEqual([read[1]!.image!.width, read[1]!.image!.height], [900, 200])
  }
})

test('keeps the image of a TIFF page without a vision provider, and stops at an invalid offset', async () => {
  const bytes = createTiff([canvasToGrey(drawSign('one')), canvasToGrey(drawSign('two'))])
  const [first, second] = await readAll(bytes.slice(0, bytes.length - 50), 'image/tiff', 'none')
  assert.deepEqual([first!.status, first!.image!.width, second], ['unread', 900, undefined])
})

test('stops at a cyclic or too large TIFF', async () => {
  const circular = Buffer.from(createTiff([canvasToGrey(drawSign('round'))]))
  circular.writeUInt32LE(circular.readUInt32LE(4), circular.length - 4)
  assert.equal((await readAll(circular, 'image/tiff')).length, 1)
  const bomb = Buffer.from(createTiff([canvasToGrey(drawSign('bomb'))]))
  const directory = bomb.readUInt32LE(4)
  bomb.writeUInt32LE(60_000, directory + 2 + 8)
  bomb.writeUInt32LE(60_000, directory + 2 + 12 + 8)
  const [page] = await readAll(bomb, 'image/tiff')
  assert.equal(page!.detail, 'The image is too large to be decoded (60000 x 60000 pixels)')
})

test('names an unsupported compression', async () => {
  const bytes = Buffer.from(createTiff([canvasToGrey(drawSign('coded'))]))
  for (const coding of [6, 50_000]) {
    bytes.writeUInt32LE(coding, bytes.readUInt32LE(4) + 2 + 3 * 12 + 8)
    const [page] = await readAll(bytes, 'image/tiff')
    const detail = coding === 6 ? 'The image format is not supported' : 'The image is damaged'
    assert.equal(page!.detail, detail)
  }
})

/** Builds a TIFF of one page, 900 x 200, from its tags and its strips or tiles. */
function encodeTiff(
  tags: Readonly<Record<number, readonly number[]>>,
  chunks: readonly Uint8Array[],
): Buffer {
  const [offsets, counts] = 322 in tags ? [324, 325] : [273, 279]
  const start = 8 + chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  const all: [number, readonly number[]][] = Object.entries({
    256: [900],
    257: [200],
    ...tags,
    [offsets!]: chunks.map((_, i) => 8 + chunks.slice(0, i).reduce((sum, { length }) => sum + length, 0)),
    [counts!]: chunks.map((chunk) => chunk.length),
  }).map(([tag, values]) => [Number(tag), values])
  const head = Buffer.from('II*\0....', 'latin1')
  head.writeUInt32LE(start, 4)
  const directory = Buffer.alloc(2 + 12 * all.length + 4)
  const large: Buffer[] = []
  let free = start + directory.length
  directory.writeUInt16LE(all.length)
  for (const [i, [tag, values]] of all.entries()) {
    // JPEG tables are of type BYTE; all other values are of type LONG.
    const data = Buffer.from(
      tag === 347 ? Uint8Array.from(values) : new Uint8Array(Uint32Array.from(values).buffer),
    )
    const entry = 2 + 12 * i
    directory.writeUInt16LE(tag, entry)
    directory.writeUInt16LE(tag === 347 ? 7 : 4, entry + 2)
    directory.writeUInt32LE(values.length, entry + 4)
    if (data.length <= 4) directory.set(data, entry + 8)
    else {
      directory.writeUInt32LE(free, entry + 8)
      large.push(data)
      free += data.length
    }
  }
  return Buffer.concat([head, ...chunks, directory, ...large])
}

test('reads Deflate strips with predictors and tiles, and rejects bombs', async () => {
  const { data } = canvasToGrey(drawSign('Deflated strips of grey'))
  const rows = (top: number, count: number) => Buffer.from(data.subarray(900 * top, 900 * (top + count)))
  const subtractNeighbours = (strip: Buffer): Buffer => {
    for (let at = strip.length - 1; at >= 0; at--) if (at % 900 !== 0) strip[at] = strip[at]! - strip[at - 1]!
    return strip
  }
  const grey = { 258: [8], 262: [1], 277: [1] }
  const strips = [0, 60, 120, 180].map((top) =>
    deflateSync(subtractNeighbours(rows(top, Math.min(60, 200 - top)))),
  )
  const bytes = encodeTiff({ ...grey, 259: [8], 278: [60], 317: [2] }, strips)
  assert.equal((await readAll(bytes, 'image/tiff'))[0]!.text, 'Deflated strips of grey')

  const tiles = [0, 1].flatMap((down) =>
    [0, 1].map((across) => {
      const tile = Buffer.alloc(464 * 112, 255)
      for (let y = 0; y < 112 && 112 * down + y < 200; y++)
        tile.set(
          data.subarray(900 * (112 * down + y) + 464 * across, 900 * (112 * down + y) + (across ? 900 : 464)),
          464 * y,
        )
      return deflateSync(tile)
    }),
  )
  const tiled = encodeTiff({ ...grey, 259: [32_946], 322: [464], 323: [112] }, tiles)
  assert.equal((await readAll(tiled, 'image/tiff'))[0]!.text, 'Deflated strips of grey')

  const lzw = encodeTiff({ ...grey, 259: [5], 322: [464], 323: [112] }, tiles)
  const [unknown] = await readAll(lzw, 'image/tiff')
  assert.equal(unknown!.detail, 'The image is damaged')

  const bomb = encodeTiff({ ...grey, 259: [8], 278: [60] }, [deflateSync(Buffer.alloc(10_000_000))])
  assert.equal((await readAll(bomb, 'image/tiff'))[0]!.detail, 'The image is damaged')
  const floats = encodeTiff({ ...grey, 258: [32], 259: [8], 278: [200], 317: [3] }, strips)
  const [page] = await readAll(floats, 'image/tiff')
  assert.equal(page!.detail, 'The image is damaged')
})

test('reads complete JPEGs in TIFF, and JPEGs with separate tables', async () => {
  const jpeg = drawSign('Strips of JPEG').toBuffer('image/jpeg', 95)
  const colours = { 258: [8, 8, 8], 259: [7], 262: [6], 277: [3], 278: [200] }
  assert.equal((await readAll(encodeTiff(colours, [jpeg]), 'image/tiff'))[0]!.text, 'Strips of JPEG')
  const tables: Uint8Array[] = []
  const rest: Uint8Array[] = []
  let at = 2
  for (; jpeg[at + 1] !== 0xda; at += 2 + jpeg.readUInt16BE(at + 2))
    (jpeg[at + 1] === 0xc4 || jpeg[at + 1] === 0xdb ? tables : rest).push(
      jpeg.subarray(at, at + 2 + jpeg.readUInt16BE(at + 2)),
    )
  const ends = [Buffer.from('ffd8', 'hex'), Buffer.from('ffd9', 'hex')] as const
  const apart = encodeTiff({ ...colours, 347: [...Buffer.concat([ends[0], ...tables, ends[1]])] }, [
    Buffer.concat([ends[0], ...rest, jpeg.subarray(at)]),
  ])
  assert.equal((await readAll(apart, 'image/tiff'))[0]!.text, 'Strips of JPEG')
  const [damaged] = await readAll(encodeTiff(colours, [jpeg.subarray(0, 40)]), 'image/tiff')
  assert.deepEqual([damaged!.status, damaged!.detail], ['unread', 'The image is damaged'])
})
