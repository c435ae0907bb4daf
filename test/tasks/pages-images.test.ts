import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createCanvas } from '@napi-rs/canvas'
import { decodeImage, isBlank, scaled, toGrey } from '../../workers/providers/images.ts'
import { closeVision, openPages, type PageResult } from '../../workers/providers/pages.ts'
import { scanImage } from '../pdfs.ts'

after(closeVision)

async function readAll(bytes: Uint8Array, mediaType: string, vision: 'tesseract' | 'none' = 'tesseract') {
  const reader = await openPages(bytes, mediaType, { vision })
  const pages: PageResult[] = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  return pages
}

function sign(text: string, width = 900, height = 200) {
  const canvas = createCanvas(width, height)
  const context = canvas.getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  context.fillStyle = '#123'
  context.font = '48px sans-serif'
  context.fillText(text, 40, 120)
  return canvas
}

test('PNG, JPEG, WebP and GIF are read by the model', async () => {
  const canvas = sign('Harbour office, room 12')
  const files = {
    'image/png': canvas.toBuffer('image/png'),
    'image/jpeg': canvas.toBuffer('image/jpeg'),
    'image/webp': canvas.toBuffer('image/webp'),
    'image/gif': canvas.toBuffer('image/gif'),
  }
  for (const [type, bytes] of Object.entries(files)) {
    const [page] = await readAll(bytes, type)
    assert.deepEqual(
      [page!.status, page!.method, page!.model, page!.text],
      ['read', 'vision', 'tesseract/eng', 'Harbour office, room 12'],
      type,
    )
    assert.deepEqual([page!.image!.width, page!.image!.height], [900, 200])
  }
})

test('an image without a vision provider is unread, and keeps its page image', async () => {
  const [page] = await readAll(sign('words').toBuffer('image/png'), 'image/png', 'none')
  assert.deepEqual([page!.status, page!.method, page!.text], ['unread', 'none', ''])
  assert.equal(page!.image!.width, 900)
})

test('a photograph is turned upright by its EXIF tag', async () => {
  const turned = createCanvas(200, 900)
  const context = turned.getContext('2d')
  context.rotate(-Math.PI / 2)
  context.drawImage(sign('Written on its side'), -900, 0)
  const jpeg = turned.toBuffer('image/jpeg', 95)
  // An APP1 segment with one tag: orientation 6, to be turned right by a quarter
  const exif = '457869660000' + '4d4d002a00000008' + '0001' + '011200030000000100060000' + '00000000'
  const segment = Buffer.from(`ffe1${(exif.length / 2 + 2).toString(16).padStart(4, '0')}${exif}`, 'hex')
  const [page] = await readAll(Buffer.concat([jpeg.subarray(0, 2), segment, jpeg.subarray(2)]), 'image/jpeg')
  assert.equal(page!.text, 'Written on its side')
  assert.deepEqual([page!.image!.width, page!.image!.height], [900, 200])
})

test('transparent pictures lie on white', async () => {
  const canvas = createCanvas(900, 200)
  const context = canvas.getContext('2d')
  context.font = '48px sans-serif'
  context.fillText('Black upon nothing', 40, 120)
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.equal(page!.text, 'Black upon nothing')
})

test('a large photograph is stored smaller, with its proportions', async () => {
  const [page] = await readAll(sign('x', 6000, 4000).toBuffer('image/jpeg'), 'image/jpeg', 'none')
  const { width, height } = page!.image!
  assert.ok(width * height <= 4_360_000)
  assert.ok(Math.abs(width / height - 1.5) < 0.01)
})

test('small type is doubled for the model', async () => {
  const canvas = createCanvas(600, 120)
  const context = canvas.getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, 600, 120)
  context.fillStyle = '#333'
  context.font = '11px sans-serif'
  const line = 'The committee met on Tuesday and approved the budget for the new harbour'
  context.fillText(line, 20, 60)
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.equal(page!.text, line)
})

test('blank, with the noise of a scanner, and not blank, with one small number', async () => {
  const canvas = sign('', 1000, 1400)
  const context = canvas.getContext('2d')
  for (let i = 0; i < 5000; i++) {
    context.fillStyle = i % 2 ? '#f4f4f4' : '#fff'
    context.fillRect((i * 7919) % 1000, (i * 104_729) % 1400, 2, 2)
  }
  assert.equal(isBlank(toGrey(canvas)), true)
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.deepEqual([page!.status, page!.method, page!.text], ['read', 'vision', ''])
  context.fillStyle = '#000'
  context.font = '18px sans-serif'
  context.fillText('7', 500, 1300)
  assert.equal(isBlank(toGrey(canvas)), false)
})

test('a picture without words is unread', async () => {
  const canvas = sign('', 800, 600)
  const context = canvas.getContext('2d')
  for (let i = 0; i < 300; i++) {
    context.fillStyle = `hsl(${i * 37} 60% 50%)`
    context.beginPath()
    context.arc((i * 7919) % 800, (i * 104_729) % 600, (i * 31) % 100, 0, 7)
    context.fill()
  }
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.equal(page!.status, 'unread')
  assert.equal(page!.detail, 'No words were found in the image of the page')
  assert.ok(page!.image)
})

/** A TIFF of uncompressed grey pages, in either byte order, classic or BigTIFF. */
function tiff(pages: readonly ReturnType<typeof toGrey>[], little = true, big = false): Uint8Array {
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

test('every page of a TIFF, in both byte orders, classic and BigTIFF', async () => {
  const words = ['First of the pages', 'Second of the pages']
  const pages = words.map((text) => toGrey(sign(text)))
  for (const [little, big] of [
    [true, false],
    [false, false],
    [true, true],
  ]) {
    const read = await readAll(tiff(pages, little, big), 'image/tiff')
    assert.deepEqual(
      read.map((page) => page.text),
      words,
    )
    assert.deepEqual([read[1]!.image!.width, read[1]!.image!.height], [900, 200])
  }
})

test('a TIFF page without a vision provider has its image; a chain that leaves the file ends there', async () => {
  const bytes = tiff([toGrey(sign('one')), toGrey(sign('two'))])
  const [first, second] = await readAll(bytes.slice(0, bytes.length - 50), 'image/tiff', 'none')
  assert.deepEqual([first!.status, first!.image!.width, second], ['unread', 900, undefined])
})

test('a TIFF that bites its tail, or is too large, is cut off', async () => {
  const circular = Buffer.from(tiff([toGrey(sign('round'))]))
  circular.writeUInt32LE(circular.readUInt32LE(4), circular.length - 4)
  assert.equal((await readAll(circular, 'image/tiff')).length, 1)
  const bomb = Buffer.from(tiff([toGrey(sign('bomb'))]))
  const directory = bomb.readUInt32LE(4)
  bomb.writeUInt32LE(60_000, directory + 2 + 8)
  bomb.writeUInt32LE(60_000, directory + 2 + 12 + 8)
  const [page] = await readAll(bomb, 'image/tiff')
  assert.equal(page!.detail, 'The image is too large to be decoded (60000 x 60000 pixels)')
})

test('a TIFF in a coding that nobody here knows says which', async () => {
  const bytes = Buffer.from(tiff([toGrey(sign('coded'))]))
  bytes.writeUInt32LE(8, bytes.readUInt32LE(4) + 2 + 3 * 12 + 8)
  const [page] = await readAll(bytes, 'image/tiff')
  assert.equal(page!.detail, 'TIFF images with Deflate compression cannot be decoded')
})

test('a scan at 300 dpi is stored below its size', async () => {
  const picture = await decodeImage(scanImage(['Some words'], 300).bytes)
  assert.deepEqual([picture.width, picture.height], [2480, 3508])
  const half = await scaled(picture, 0.5)
  assert.deepEqual([half.width, half.height], [1240, 1754])
})
