import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import { closeVision, openPages, type PageResult } from '../../workers/children/documents/pages.ts'
import { canvasToGrey, drawScaled, isBlank } from '../../workers/children/images/images.ts'
import { TEST_FONT } from '../fonts.ts'
import { renderScan } from '../pdfs.ts'
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

test('PNG, JPEG, WebP and GIF are read by the model', async () => {
  const canvas = drawSign('Harbour office, room 12')
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
  const [page] = await readAll(drawSign('words').toBuffer('image/png'), 'image/png', 'none')
  assert.deepEqual([page!.status, page!.method, page!.text], ['unread', 'none', ''])
  assert.equal(page!.image!.width, 900)
})

test('a photograph is rotated by its EXIF tag', async () => {
  const turned = createCanvas(200, 900)
  const context = turned.getContext('2d')
  context.rotate(-Math.PI / 2)
  context.drawImage(drawSign('Written on its side'), -900, 0)
  const jpeg = turned.toBuffer('image/jpeg', 95)
  // An APP1 segment with one tag: orientation 6, which is a quarter turn to the right.
  const exif = '457869660000' + '4d4d002a00000008' + '0001' + '011200030000000100060000' + '00000000'
  const segment = Buffer.from(`ffe1${(exif.length / 2 + 2).toString(16).padStart(4, '0')}${exif}`, 'hex')
  const [page] = await readAll(Buffer.concat([jpeg.subarray(0, 2), segment, jpeg.subarray(2)]), 'image/jpeg')
  assert.equal(page!.text, 'Written on its side')
  assert.deepEqual([page!.image!.width, page!.image!.height], [900, 200])
})

test('transparent pictures get a white background', async () => {
  const canvas = createCanvas(900, 200)
  const context = canvas.getContext('2d')
  context.font = `48px ${TEST_FONT}`
  context.fillText('Black upon nothing', 40, 120)
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.equal(page!.text, 'Black upon nothing')
})

test('a large photograph is stored smaller, with its proportions', async () => {
  const [page] = await readAll(drawSign('x', 3000, 2000).toBuffer('image/jpeg'), 'image/jpeg', 'none')
  const { width, height } = page!.image!
  assert.ok(width * height <= 4_360_000)
  assert.ok(Math.abs(width / height - 1.5) < 0.01)
  assert.equal(page!.image!.png, null)
})

/** Draws lines of text at the given positions. */
function drawLines(
  [width, height]: readonly [number, number],
  { paper = '#fff', ink = '#333', size }: { paper?: string; ink?: string; size: number },
  lines: readonly (readonly [text: string, x: number, y: number])[],
) {
  const canvas = createCanvas(width, height)
  const context = canvas.getContext('2d')
  context.fillStyle = paper
  context.fillRect(0, 0, width, height)
  context.fillStyle = ink
  context.font = `${size}px ${TEST_FONT}`
  for (const line of lines) context.fillText(...line)
  return canvas.toBuffer('image/png')
}

test('small type is doubled for the engine', async () => {
  const line = 'The committee met on Tuesday and approved the budget for the new harbour'
  const [page] = await readAll(drawLines([600, 120], { size: 11 }, [[line, 20, 60]]), 'image/png')
  assert.equal(page!.text, line)
})

for (const size of [30, 14])
  test(`light text of ${size} pixels on a dark page is read`, async () => {
    const lines = ['The committee met on Tuesday', 'and approved the budget']
    const placed = lines.map((line, i) => [line, 20, 70 + 2 * size * i] as const)
    const [page] = await readAll(
      drawLines([700, 200], { paper: '#123', ink: '#eee', size }, placed),
      'image/png',
    )
    assert.equal(page!.text, lines.join('\n'))
  })

test('two columns in a picture are read one after the other', async () => {
  const placed = Array.from({ length: 4 }, (_, i) => i + 1).flatMap((n) => [
    [`Line ${n} of the left column is about boats`, 40, 10 + 42 * n] as const,
    [`Line ${n} of the right column is about harbours`, 760, 10 + 42 * n] as const,
  ])
  const [page] = await readAll(drawLines([1400, 220], { ink: '#222', size: 26 }, placed), 'image/png')
  const sides = page!.text.match(/left|right/g)
  assert.deepEqual(sides, [...Array(4).fill('left'), ...Array(4).fill('right')])
})

test('scanner noise is blank, but one small number is not', async () => {
  const canvas = drawSign('', 1000, 1400)
  const context = canvas.getContext('2d')
  for (let i = 0; i < 5000; i++) {
    context.fillStyle = i % 2 ? '#f4f4f4' : '#fff'
    context.fillRect((i * 7919) % 1000, (i * 104_729) % 1400, 2, 2)
  }
  assert.equal(isBlank(canvasToGrey(canvas)), true)
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.deepEqual([page!.status, page!.method, page!.text], ['read', 'vision', ''])
  context.fillStyle = '#000'
  context.font = `18px ${TEST_FONT}`
  context.fillText('7', 500, 1300)
  assert.equal(isBlank(canvasToGrey(canvas)), false)
})

test('a picture without words is unread', async () => {
  const canvas = drawSign('', 800, 600)
  const context = canvas.getContext('2d')
  for (let i = 0; i < 300; i++) {
    context.fillStyle = `hsl(${i * 37} 60% 50%)`
    context.beginPath()
    context.arc((i * 7919) % 800, (i * 104_729) % 600, (i * 31) % 100, 0, 7)
    context.fill()
  }
  const [page] = await readAll(canvas.toBuffer('image/png'), 'image/png')
  assert.equal(page!.status, 'unread')
  assert.equal(page!.detail, 'No words were found in the page image')
  assert.ok(page!.image)
})

/** Joins GIFs of one frame into an animated GIF with these disposal methods. */
function joinGifs(pictures: readonly Uint8Array[], disposals: readonly number[]): Uint8Array {
  const head = (gif: Uint8Array) => 13 + (gif[10]! & 0x80 ? 3 * 2 ** ((gif[10]! & 7) + 1) : 0)
  const frames = pictures.flatMap((gif, i) => {
    const image = gif.indexOf(0x2c, head(gif))
    const table = gif.subarray(13, head(gif))
    const descriptor = Buffer.from(gif.subarray(image, image + 10))
    const data = gif.subarray(
      image + 10 + (descriptor[9]! & 0x80 ? 3 * 2 ** ((descriptor[9]! & 7) + 1) : 0),
      -1,
    )
    const own = descriptor[9]! & 0x80 ? gif.subarray(image + 10, gif.length - 1 - data.length) : table
    descriptor[9] = 0x80 | (Math.log2(own.length / 3) - 1)
    const control = Buffer.from([0x21, 0xf9, 4, disposals[i]! << 2, 0, 0, 0, 0])
    return [control, descriptor, own, data]
  })
  const screen = Buffer.from(pictures[0]!.subarray(0, 13))
  screen[10] = 0
  return Buffer.concat([screen, ...frames, Buffer.from([0x3b])])
}

test('every frame of a GIF is a page as displayed', async () => {
  const words = ['First of the frames', 'Second of the frames', 'Third of the frames']
  const gifs = words.map((text) => drawSign(text).toBuffer('image/gif'))
  const gif = joinGifs(gifs, [1, 2, 1])
  const read = await readAll(gif, 'image/gif')
  assert.deepEqual(
    read.map((page) => page.text),
    words,
  )
  assert.deepEqual([read[2]!.image!.width, read[2]!.image!.height], [900, 200])
  const cut = await readAll(gif.subarray(0, gif.length - 30), 'image/gif')
  assert.deepEqual(
    cut.map(({ status }) => status),
    ['read', 'read', 'read'],
  )
})

test('a GIF frame covers only its area, and is disposed of as declared', async () => {
  const [large, small] = [drawSign('', 200, 100), drawSign('', 50, 40)]
  small.getContext('2d').fillRect(0, 0, 50, 40)
  const pictures = [large, small, small].map((canvas) => canvas.toBuffer('image/gif'))
  const readDarkPixels = async (disposal: number) => {
    const reader = await openPages(joinGifs(pictures, [1, disposal, 1]), 'image/gif', { ocrMode: 'none' })
    const dark = []
    for (const n of [1, 2, 3]) {
      const { png } = (await reader.draw(n))!
      const grey = canvasToGrey(await drawScaled(await loadImage(Buffer.from(png)), 1))
      dark.push([grey.width, grey.data.filter((level) => level < 128).length])
    }
    return dark
  }
  for (const disposal of [1, 2, 3])
    assert.deepEqual(await readDarkPixels(disposal), [
      [200, 0],
      [200, 2000],
      [200, 2000],
    ])
})

test('a scan at 300 dpi is stored below its size', async () => {
  const picture = await loadImage(Buffer.from(renderScan(['Some words'], 300).bytes))
  assert.deepEqual([picture.width, picture.height], [2480, 3508])
  const half = await drawScaled(picture, 0.5)
  assert.deepEqual([half.width, half.height], [1240, 1754])
})
