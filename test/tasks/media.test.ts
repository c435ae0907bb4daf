import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { createCanvas } from '@napi-rs/canvas'
import { type MediaHint, sniffMediaType } from '../../tasks/documents/media.ts'
import { buildTextPdf } from '../pdfs.ts'

const sniff = (head: string | Uint8Array, hint: MediaHint = {}) =>
  sniffMediaType(typeof head === 'string' ? Buffer.from(head) : head, hint)

const WRONG_HINT: MediaHint = { fileName: 'notes.md', mediaType: 'text/markdown' }

test('bytes decide the type, whatever the client says', async () => {
  const canvas = createCanvas(20, 20)
  assert.equal(await sniff(await buildTextPdf(1), WRONG_HINT), 'application/pdf')
  assert.equal(await sniff(canvas.toBuffer('image/png'), WRONG_HINT), 'image/png')
  assert.equal(await sniff(canvas.toBuffer('image/jpeg'), WRONG_HINT), 'image/jpeg')
  assert.equal(await sniff(canvas.toBuffer('image/webp'), WRONG_HINT), 'image/webp')
  assert.equal(await sniff(canvas.toBuffer('image/gif'), WRONG_HINT), 'image/gif')
  assert.equal(await sniff(Buffer.from('49492a00080000000000', 'hex'), WRONG_HINT), 'image/tiff')
  assert.equal(await sniff(Buffer.from('504b0304140000000800', 'hex'), WRONG_HINT), 'application/zip')
})

test('a client cannot turn text into another type', async () => {
  const hint = { fileName: 'page.html', mediaType: 'text/html' }
  assert.equal(await sniff('hello', hint), 'text/plain')
  assert.equal(await sniff('hello', { fileName: 'a.pdf', mediaType: 'application/pdf' }), 'text/plain')
})

test('Markdown is detected by name or type', async () => {
  assert.equal(await sniff('# Title', { fileName: 'README.MD' }), 'text/markdown')
  assert.equal(await sniff('# Title', { mediaType: 'text/markdown; charset=utf-8' }), 'text/markdown')
  assert.equal(await sniff('# Title', { fileName: 'title.txt' }), 'text/plain')
  assert.equal(await sniff('# Title'), 'text/plain')
})

test('text is detected in other encodings', async () => {
  assert.equal(await sniff(Buffer.from('\ufeffhello', 'utf16le')), 'text/plain')
  assert.equal(await sniff(Buffer.from('\ufeffhello', 'utf16le').swap16(), WRONG_HINT), 'text/markdown')
  const western = Buffer.from('Grüße aus Köln', 'latin1')
  assert.equal(await sniff(western, { fileName: 'brief.txt' }), 'text/plain')
  assert.equal(await sniff(western), 'application/octet-stream')
})

test('a character cut at the end of the sample does no harm', async () => {
  const bytes = Buffer.from('日本語'.repeat(10_000))
  assert.equal(await sniff(bytes.subarray(0, 65_536)), 'text/plain')
})

test('NUL and broken bytes are not text', async () => {
  assert.equal(await sniff('a\0b', WRONG_HINT), 'application/octet-stream')
  assert.equal(await sniff(Buffer.from([0xc3, 0x28, 0x01, 0x02]), WRONG_HINT), 'application/octet-stream')
})

test('words that begin like a binary format stay text', async () => {
  for (const text of [
    'BMW builds cars in Munich',
    'MZ was a maker of motorcycles',
    'ID3 tags belong to music',
  ]) {
    assert.equal(await sniff(text), 'text/plain')
  }
})

test('leading comments are skipped in linear time', async () => {
  const comments = '<!---->'.repeat(30)
  const { user, system } = process.cpuUsage()
  assert.equal(await sniff(`${comments}x`), 'text/plain')
  const taken = process.cpuUsage({ user, system })
  assert.ok(taken.user + taken.system < 5_000_000, `${taken.user + taken.system} µs`)
  assert.equal(await sniff(`${comments}<!-- > -- -> --> <html>`), 'text/html')
})

test('a PDF after junk is a PDF, but text about PDF is not', async () => {
  const pdf = Buffer.concat([Buffer.from('\r\n\0junk from a gateway\r\n'), await buildTextPdf(1)])
  assert.equal(await sniff(pdf), 'application/pdf')
  assert.equal(await sniff('Files begin with %PDF-1.4, as everybody knows.'), 'text/plain')
})

test("the demo's sample is detected", async () => {
  const bytes = await readFile(new URL('../data/sample.pdf', import.meta.url))
  assert.equal(await sniff(bytes.subarray(0, 65_536)), 'application/pdf')
})
