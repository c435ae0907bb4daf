import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { createCanvas } from '@napi-rs/canvas'
import { encode } from 'iconv-lite'
import { chooseMediaType, type MediaHint, sniffMediaType, ZIP_TYPES } from '../../tasks/documents/media.ts'
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
  assert.equal(await sniff(western), 'text/plain')
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

test('text is detected by its bytes, whatever its name', async () => {
  for (const fileName of [
    'a.ini',
    'b.tex',
    'c.conf',
    'd.sql',
    'e.bib',
    'f.yaml',
    'g.rst',
    'h.properties',
    'i',
    'j.bin',
  ])
    assert.equal(
      await sniff(encode('name=Müller\nort=Köln\n', 'latin1'), { fileName }),
      'text/plain',
      fileName,
    )
  const russian = encode('Договор поставки товара между Поставщиком и Покупателем заключён.', 'windows-1251')
  assert.equal(await sniff(russian), 'text/plain')
  assert.equal(await sniff(russian.subarray(0, 7), { fileName: 'a.txt' }), 'text/plain')
  assert.equal(
    await sniff(encode(`BMW ${'строит автомобили в Баварии. '.repeat(4)}`, 'koi8-r')),
    'text/plain',
  )
  assert.equal(await sniff('a line of a log\0\0 and more\nnext line\n'), 'text/plain')
  assert.equal(await sniff('the end of a DOS file\r\n\x1a'), 'text/plain')
  assert.equal(await sniff(`${'a line\n'.repeat(50)}\x07`), 'text/plain')
  assert.equal(
    await sniff(Uint8Array.from({ length: 4096 }, (_, i) => (i * 7919 + ((i * i) >> 3)) & 0xff)),
    'application/octet-stream',
  )
})

test('UTF-16 needs no mark, whatever is written in it', async () => {
  for (const [text, type] of [
    ['Name;Betrag\r\nWalrus;12,50\r\n', 'text/plain'],
    ['品名,数量\r\nりんご,12\r\n', 'text/plain'],
    ['<html><body>12</body></html>', 'text/html'],
    ['<?xml version="1.0"?><a>1</a>', 'application/xml'],
    ['BEGIN:VCARD\r\nVERSION:3.0\r\nEND:VCARD\r\n', 'text/vcard'],
    ['From: a@example.org\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\n\r\nx', 'message/rfc822'],
  ] as const) {
    const bytes = Buffer.from(text, 'utf16le')
    assert.equal(await sniff(bytes), type, text)
    assert.equal(await sniff(bytes.swap16()), type, text)
  }
})

test('everything that a browser shows as a page is HTML', async () => {
  for (const page of [
    '<table border=1><tr><td>12,50</td></tr></table>',
    '<p>Hello</p>',
    '\n <div class="a">x</div>',
    '<meta charset=koi8-r><title>x</title>',
    '<h1>Title</h1>',
    '<!-- by a shop --><table><tr><td>x</td></tr></table>',
    '<style>td { color: red }</style><table><tr><td>1</table>',
    '\ufeff<TABLE><TR><TD>1</TD></TR></TABLE>',
  ])
    assert.equal(await sniff(page, { fileName: 'export.xls' }), 'text/html', page)
  for (const [text, fileName, type] of [
    ['<div align="center">\n\n# Title\n</div>', 'README.md', 'text/markdown'],
    ['<script setup>\nlet a = 1\n</script>', 'App.vue', 'text/plain'],
    ['<p is a sign and no element', 'a.dat', 'text/plain'],
    ['<body>x', 'a.md', 'text/html'],
    ['a < b and <table>', 'a.dat', 'text/plain'],
  ] as const)
    assert.equal(await sniff(text, { fileName }), type, text)
})

test('the first words of other texts show their type', async () => {
  for (const [text, type] of [
    ['\n\nBEGIN:VCALENDAR\nEND:VCALENDAR\n', 'text/calendar'],
    ['begin:vcard\nEND:VCARD\n', 'text/vcard'],
    ['\ufeffWEBVTT\n', 'text/vtt'],
    [' {\\rtf1 x}', 'application/rtf'],
    ['<svg xmlns="http://www.w3.org/2000/svg"><text>a</text></svg>', 'image/svg+xml'],
    ['<?xml version="1.0"?>\n<!-- x --><s:svg xmlns:s="http://www.w3.org/2000/svg"/>', 'image/svg+xml'],
    ['<?xml version="1.0"?><!DOCTYPE svg PUBLIC "x" "y"><svg/>', 'image/svg+xml'],
    ['<?xml version="1.0"?><table><p>1</p></table>', 'application/xml'],
  ] as const)
    assert.equal(await sniff(text, { fileName: 'a.txt' }), type, text)
})

test('a later look at the same bytes corrects a type, but never with a generic one', () => {
  for (const [known, sniffed, chosen] of [
    ['application/octet-stream', 'text/plain', 'text/plain'],
    ['application/zip', ZIP_TYPES.docx, ZIP_TYPES.docx],
    [ZIP_TYPES.docx, 'application/zip', ZIP_TYPES.docx],
    ['text/plain', 'text/markdown', 'text/markdown'],
    ['text/markdown', 'text/plain', 'text/markdown'],
    ['application/pdf', 'application/octet-stream', 'application/pdf'],
  ] as const)
    assert.equal(chooseMediaType(known!, sniffed!), chosen, `${known} ${sniffed}`)
})
