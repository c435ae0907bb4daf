import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createCanvas, type SKRSContext2D } from '@napi-rs/canvas'
import { closeVision, openPages, type PageResult } from '../../workers/children/documents/pages.ts'
import { convertToGrey } from '../../workers/children/images/images.ts'
import { invertPanels } from '../../workers/children/images/panels.ts'
import { drawDotPrint } from '../dot-print.ts'
import { TEST_FONT } from '../fonts.ts'
import { buildRawPdf, buildStreamObject } from '../pdfs.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

async function readFirst(bytes: Uint8Array, mediaType = 'image/png'): Promise<PageResult> {
  const reader = await openPages(bytes, mediaType, { ocrMode: 'local' })
  const page = await reader.read(1)
  await reader.close()
  return page
}

type Draw = (context: SKRSContext2D) => void

function drawPage(draw: Draw, paper: string | null = '#fff') {
  const canvas = createCanvas(1000, 300)
  const context = canvas.getContext('2d')
  if (paper !== null) {
    context.fillStyle = paper
    context.fillRect(0, 0, 1000, 300)
  }
  draw(context)
  return canvas
}

/** Writes a line of text. */
function write(context: SKRSContext2D, text: string, [x, y]: readonly [number, number], ink = '#111'): void {
  context.font = `26px ${TEST_FONT}`
  context.fillStyle = ink
  context.fillText(text, x, y)
}

const HEAD = 'Description of the goods and amount'
const BODY = 'The harbour office received the annual report'

/** Draws a band with a head on a page with a line of text. */
const drawBand = (band: string, ink: string) =>
  drawPage((context) => {
    context.fillStyle = band
    context.fillRect(40, 40, 900, 60)
    write(context, HEAD, [60, 80], ink)
    write(context, BODY, [40, 200])
  })

for (const [band, ink] of [
  ['#1f4e79', '#fff'],
  ['#000', '#fff'],
  ['#4caf50', '#fff'],
  ['#888', '#fff'],
  ['#000', '#ffd800'],
  ['#003399', '#ffcc00'],
] as const)
  test(`print in ${ink} on a band in ${band} is read with the rest of the page`, async () => {
    const page = await readFirst(drawBand(band, ink).toBuffer('image/png'))
    assert.deepEqual(page.text.split(/\n+/), [HEAD, BODY])
  })

test('a band is read on a scanned PDF page', async () => {
  const image = drawBand('#1f4e79', '#fff').toBuffer('image/jpeg', 90)
  const pdf = buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 480 144] /Contents 4 0 R /Resources << /XObject << /Im 5 0 R >> >> >>',
    buildStreamObject('480 0 0 144 0 0 cm /Im Do'),
    buildStreamObject(
      image,
      '/Type /XObject /Subtype /Image /Width 1000 /Height 300 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /DCTDecode',
    ),
  ])
  const page = await readFirst(pdf, 'application/pdf')
  assert.deepEqual(page.text.split(/\n+/), [HEAD, BODY])
})

test('a light box on a dark page keeps its dark print', async () => {
  const canvas = drawPage((context) => {
    write(context, 'Dashboard of the harbour', [40, 50], '#eee')
    context.fillStyle = '#fff'
    context.fillRect(40, 90, 500, 180)
    write(context, 'Amount due 1,284.50 EUR', [60, 140])
    write(context, 'within thirty days', [60, 190])
  }, '#1a1d23')
  const { text } = await readFirst(canvas.toBuffer('image/png'))
  assert.deepEqual(text.split(/\n+/), [
    'Dashboard of the harbour',
    'Amount due 1,284.50 EUR',
    'within thirty days',
  ])
})

test('only panels with light print change', () => {
  const toGrey = (draw: Draw) => {
    const canvas = drawPage(draw)
    const { data } = canvas.getContext('2d').getImageData(0, 0, 1000, 300)
    return convertToGrey({ data, width: 1000, height: 300 })
  }
  const fillBand = (context: SKRSContext2D, style: string): void => {
    context.fillStyle = style
    context.fillRect(40, 40, 900, 60)
  }
  const unchanged: Record<string, Draw> = {
    text: (context) => write(context, BODY, [40, 200]),
    'large bold letters': (context) => {
      context.fillStyle = '#000'
      context.font = `bold 150px ${TEST_FONT}`
      context.fillText('BOB 8', 40, 180)
    },
    'a dark band without print': (context) => fillBand(context, '#000'),
    'a grey band with dark print': (context) => {
      fillBand(context, '#b0b0b0')
      write(context, HEAD, [60, 80], '#000')
    },
    'a thick frame': (context) => {
      context.strokeStyle = '#000'
      context.lineWidth = 24
      context.strokeRect(40, 40, 900, 200)
      write(context, BODY, [80, 140])
    },
  }
  for (const [what, draw] of Object.entries(unchanged)) assert.equal(invertPanels(toGrey(draw)), null, what)
  const grey = toGrey((context) => {
    fillBand(context, '#000')
    write(context, 'No', [60, 80], '#fff')
    write(context, BODY, [40, 200])
  })
  const inverted = invertPanels(grey)
  assert.ok(inverted)
  const rowsBelow = 110 * 1000
  assert.deepEqual(inverted.data.subarray(rowsBelow), grey.data.subarray(rowsBelow))
  assert.equal(inverted.data[50 * 1000 + 800], 255)
})

const TOTAL = ['TOTAL DUE 1,284.50', 'CARD 2840 18.02']

for (const [what, style] of Object.entries({
  'close dots': { pitch: 4, dot: 3 },
  'far dots': { pitch: 10, dot: 5 },
  'touching squares': { pitch: 4, dot: 4 },
  'light dots': { pitch: 8, dot: 6, ink: '#ff3020', paper: '#100808' },
}))
  test(`print of ${what} is read`, async () => {
    const { text } = await readFirst(drawDotPrint(TOTAL, style).toBuffer('image/png'))
    assert.deepEqual(text.replace(/\t/g, ' ').split(/\n+/), TOTAL)
  })

for (const ink of ['#fff', '#ffe080', '#103060'])
  test(`print in ${ink} on a transparent ground is read`, async () => {
    const canvas = drawPage((context) => write(context, BODY, [40, 150], ink), null)
    assert.equal((await readFirst(canvas.toBuffer('image/png'))).text, BODY)
  })

test('a page without text says why', async () => {
  for (const [paper, detail] of [
    ['#fff', 'The page is blank'],
    [null, 'The image is transparent: no part of it is visible'],
  ] as const) {
    const page = await readFirst(drawPage(() => {}, paper).toBuffer('image/png'))
    assert.deepEqual([page.status, page.text, page.detail], ['read', '', detail])
  }
})
