import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { closeVision, openPages } from '../../workers/children/documents/pages.ts'
import { buildScanPdf, createPageLines, renderScan } from '../pdfs.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

const lines = createPageLines(1, 1, { sentences: 3 })

async function measureWordShare(bytes: Uint8Array, mediaType: string): Promise<number> {
  const reader = await openPages(bytes, mediaType, { ocrMode: 'local' })
  const { text } = await reader.read(1)
  await reader.close()
  const words = lines.join(' ').split(' ')
  const read = new Set(text.split(/\s+/))
  return words.filter((word) => read.has(word)).length / words.length
}

for (const [what, colours] of Object.entries({
  'light blue next to black': { inks: ['#222', '#70c8ff'], paper: '#fff' },
  'black and blue on yellow': { inks: ['#222', '#0050a0'], paper: '#ffe600' },
  'white on blue': { inks: ['#fff'], paper: '#0050a0' },
})) {
  test(`${what} is read from a picture and from a PDF page`, async (t) => {
    const picture = await measureWordShare(renderScan(lines, 200, 80, colours).bytes, 'image/jpeg')
    const page = await measureWordShare(await buildScanPdf(1, { sentences: 3, colours }), 'application/pdf')
    t.diagnostic(`${picture} and ${page} of the words`)
    assert.ok(picture >= 0.95 && page >= 0.95, `${picture} and ${page} of the words`)
  })
}
