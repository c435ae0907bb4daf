import { readFileSync } from 'node:fs'
import { crc32, deflateSync } from 'node:zlib'
import type { Bomb } from './bombs.ts'
import { drawingBombs } from './drawing-bombs.ts'
import { buildTnef } from './envelopes.ts'
import {
  createCompound,
  createDoc,
  createOffice,
  createOldDoc,
  createPpt,
  createSheet,
  encryptAgile,
  wordPart,
} from './office.ts'
import { createLock } from './office-locks.ts'
import { buildOutlookFile } from './outlook.ts'
import { deflateRepeat, packRepeat } from './packing.ts'
import { buildRawPdf, buildStreamObject } from './pdfs.ts'
import { createZip } from './zip.ts'

const createRawPdfBomb = (name: string, ...objects: readonly string[]): Bomb =>
  createPdfBomb(name, () => buildRawPdf(objects))
const createPdfBomb = (name: string, make: () => Uint8Array): Bomb => ({
  name,
  fileName: 'bomb.pdf',
  make: () => Buffer.from(make()),
})

/** Creates a PDF page whose content is compressed `times` times. */
function createPageBomb(name: string, unit: string, megabytes: number, times: number): Bomb {
  return createPdfBomb(name, () => {
    let bytes = deflateRepeat(unit, megabytes * 2 ** 20)
    for (let i = 1; i < times; i++) bytes = deflateSync(bytes, { level: 9 })
    return buildRawPdf([
      ...PAGE_TREE_OBJECTS,
      buildStreamObject(bytes, `/Filter [${'/FlateDecode '.repeat(times)}]`),
    ])
  })
}

const PAGE_TREE_OBJECTS = [
  '<< /Type /Catalog /Pages 2 0 R >>',
  '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
  '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << >> >>',
]

/** Returns the objects of a PDF with one page and a wrong page count. */
const createWrongPageCount = (count: number): string[] => [
  '<< /Type /Catalog /Pages 2 0 R >>',
  `<< /Type /Pages /Kids [4 0 R 3 0 R] /Count ${count} >>`,
  '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>',
  `<< /Type /Pages /Parent 2 0 R /Kids [] /Count ${count - 1} >>`,
]

/** Removes the trailer, so that readers have to search for objects. */
function removeTrailer(objects: readonly string[]): Uint8Array {
  const bytes = Buffer.from(buildRawPdf(objects))
  return bytes.subarray(0, bytes.lastIndexOf('xref\n0 '))
}

/** Creates a TIFF whose pages all share one strip of 100 white pixels. */
function createOverlappingTiff(count: number): Buffer {
  const strip = 13
  const size = 2 + 12 * 8 + 4
  const file = Buffer.alloc(8 + strip + count * size)
  file.write('II*\0', 0, 'latin1')
  file.writeUInt32LE(8 + strip, 4)
  for (let n = 0; n < count; n++) {
    let at = 8 + strip + n * size
    const tags = [
      [256, 10],
      [257, 10],
      [258, 1],
      [259, 1],
      [262, 0],
      [273, 8],
      [278, 10],
      [279, strip],
    ] as const
    file.writeUInt16LE(tags.length, at)
    at += 2
    for (const [tag, value] of tags) {
      file.writeUInt16LE(tag, at)
      file.writeUInt16LE(4, at + 2)
      file.writeUInt32LE(1, at + 4)
      file.writeUInt32LE(value, at + 8)
      at += 12
    }
    file.writeUInt32LE(n + 1 < count ? at + 4 : 0, at)
  }
  return file
}

/** Creates a grey PNG with `bytes` zeros of pixel data, regardless of its declared size. */
function createPngBomb(name: string, width: number, height: number, bytes: number): Bomb {
  return {
    name,
    fileName: 'bomb.png',
    make: () => {
      const chunk = (kind: string, data: Buffer): Buffer => {
        const body = Buffer.concat([Buffer.from(kind), data])
        const whole = Buffer.alloc(body.length + 8)
        whole.writeUInt32BE(data.length, 0)
        body.copy(whole, 4)
        whole.writeUInt32BE(crc32(body), body.length + 4)
        return whole
      }
      const header = Buffer.alloc(13)
      header.writeUInt32BE(width, 0)
      header.writeUInt32BE(height, 4)
      header[8] = 8
      const pixels = chunk('IDAT', deflateRepeat('\0', bytes))
      const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
      return Buffer.concat([signature, chunk('IHDR', header), pixels, chunk('IEND', Buffer.alloc(0))])
    },
  }
}

/** Creates an animation of `frames` one-pixel frames. */
function createGifBomb(name: string, frames: number): Bomb {
  const head = Buffer.from('GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff', 'latin1')
  const frame = Buffer.from('\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0', 'latin1')
  const make = (): Buffer => Buffer.concat([head, ...Array<Buffer>(frames).fill(frame), Buffer.from(';')])
  return { name, fileName: 'bomb.gif', make }
}

const readData = (name: string): Buffer => readFileSync(new URL(`data/${name}`, import.meta.url))

const createSmallScans = (count: number): Buffer => Buffer.from('P5 1 1 255\n\xff'.repeat(count), 'latin1')

/** Creates a bitmap in which each byte of pixels is alike. */
function createImageOfBits(width: number, height: number, bits: number): Buffer {
  return Buffer.concat([Buffer.from(`P4 ${width} ${height}\n`), Buffer.alloc((width / 8) * height, bits)])
}

const createLongTextBomb = (name: string, unit: string): Bomb => ({
  name: `90 MB of ${name}`,
  fileName: 'bomb.txt',
  make: () => Buffer.alloc(90_000_000, unit),
})

/** Creates a bomb of Latin-1 text. */
const createTextBomb = (name: string, fileName: string, make: () => string): Bomb => ({
  name,
  fileName,
  make: () => Buffer.from(make(), 'latin1'),
})

/** Creates a Word document that repeats `unit` up to an uncompressed size of `megabytes`. */
const createDocxBomb = (name: string, unit: string, megabytes: number): Bomb => ({
  name,
  fileName: 'bomb.docx',
  make: () => {
    const main =
      '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="d.xml"/></Relationships>'
    return createZip([
      ['_rels/.rels', main],
      ['d.xml', packRepeat(unit, megabytes * 1_000_000)],
    ])
  },
})

const MAIL_HEADERS =
  'From: a@example.com\nDate: Sat, 14 Mar 2026 10:00:00 +0000\nContent-Type: multipart/mixed; boundary=b\n\n'

/** Creates an office file. */
const createOfficeBomb = (name: string, fileName: string, make: () => Buffer): Bomb => ({
  name,
  fileName,
  make,
})

/** Overwrites all references of a file's allocation table by one to themselves. */
function createCyclicCompound(): Buffer {
  const bytes = createCompound({ WordDocument: Buffer.alloc(100_000, 1) })
  for (let at = 512; at + 4 <= bytes.length; at += 4)
    if (bytes.readUInt32LE(at) < 1000) bytes.writeUInt32LE(1, at)
  return bytes
}

/** Creates a presentation whose first slide consists of containers in containers. */
function createNestedPpt(levels: number): Buffer {
  const inner = Buffer.alloc(8 * levels)
  for (let n = 0; n < levels; n++) {
    inner.writeUInt16LE(0xf, 8 * n)
    inner.writeUInt16LE(0xf00d, 8 * n + 2)
    inner.writeUInt32LE(8 * (levels - n - 1), 8 * n + 4)
  }
  return createPpt([['a', inner.toString('latin1')]])
}

/** Creates an encrypted presentation whose directory names each byte of a large part. */
function createOverlappingPpt(): Buffer {
  const lock = createLock('/01Hannes Ruescher/01')
  const box = 'x'.repeat(4_000_000)
  return createPpt([['a', box], ...Array.from({ length: 4000 }, () => ['', ''] as const)], {
    ...lock,
    // Headers that claim all bytes up to the end, for each part.
    encrypt: (block, part) =>
      lock.encrypt(block, Buffer.concat([part.subarray(0, 4), Buffer.alloc(4, 0x7f), part.subarray(8)])),
  })
}

const FORMATS_10000 = `<cellXfs>${'<xf numFmtId="200"/>'.repeat(10_000)}</cellXfs>`

/** Office files whose parts refer to each other, or claim more than they have. */
const officeBombs: readonly Bomb[] = [
  createOfficeBomb('a compound file of cycles', 'bomb.doc', createCyclicCompound),
  createOfficeBomb('a document of two million fields in fields', 'bomb.doc', () =>
    createDoc({ body: '\x13'.repeat(2_000_000) }),
  ),
  createOfficeBomb('a document of Word 95 of twenty million cells', 'bomb.doc', () =>
    createOldDoc(Buffer.alloc(20_000_000, 7), { isInPieces: true }),
  ),
  createOfficeBomb('a workbook of ten million empty records', 'bomb.xls', () =>
    createCompound({
      Workbook: Buffer.concat([
        Buffer.from('09081000000605000000000000000000', 'hex'),
        Buffer.alloc(40_000_004),
      ]),
    }),
  ),
  createOfficeBomb('200,000 containers in containers', 'bomb.ppt', () => createNestedPpt(200_000)),
  createOfficeBomb('an encrypted presentation of overlapping parts', 'bomb.ppt', createOverlappingPpt),
  createOfficeBomb('a password of ten million rounds', 'bomb.docx', () =>
    encryptAgile(createOffice('docx', wordPart('')), 'x', 10_000_000),
  ),
  createOfficeBomb('300,000 cells of a long number format', 'bomb.xlsx', () =>
    createSheet(`<row>${'<c s="1"><v>1234567.891</v></c>'.repeat(300_000)}</row>`, {
      formats: `<numFmts><numFmt numFmtId="200" formatCode="${'#,##0.00_);'.repeat(23)}"/></numFmts>${FORMATS_10000}`,
    }),
  ),
  createOfficeBomb('100,000 copies of a shared formula', 'bomb.xlsx', () =>
    createSheet(
      `<row><c><f t="shared" si="0">${'A1+'.repeat(10_000)}1</f></c>${'<c><f t="shared" si="0"/></c>'.repeat(100_000)}</row>`,
    ),
  ),
  createOfficeBomb('a million namespaces in namespaces', 'bomb.docx', () =>
    createOffice('docx', Array.from({ length: 1_000_000 }, (_, n) => `<a xmlns:n${n}="u">`).join('')),
  ),
  createOfficeBomb('a million parts in a flat package', 'bomb.xml', () =>
    Buffer.from(
      `<?xml version="1.0"?><k:package xmlns:k="http://schemas.microsoft.com/office/2006/xmlPackage">${'<k:part k:name="/a"><k:xmlData><a/></k:xmlData></k:part>'.repeat(1_000_000)}`,
    ),
  ),
  createOfficeBomb('three million notes', 'bomb.rtf', () =>
    Buffer.from(`{\\rtf1 ${'{\\footnote a}\\page'.repeat(3_000_000)}`),
  ),
  createOfficeBomb('binary data that is not there', 'bomb.rtf', () =>
    Buffer.from(`{\\rtf1 ${'\\bin9999999999 '.repeat(9)}`),
  ),
]

/** Documents that decompress to a huge size, never end, or have false headers. */
export const documentBombs: readonly Bomb[] = [
  ...officeBombs,
  ...drawingBombs,
  createPdfBomb('two thousand million pages, without a trailer', () =>
    removeTrailer(createWrongPageCount(2_147_483_647)),
  ),
  createPdfBomb('50 million pages, without a trailer', () => removeTrailer(createWrongPageCount(50_000_000))),
  createRawPdfBomb('a million pages', ...createWrongPageCount(1_000_000)),
  createRawPdfBomb('fewer than no pages', ...createWrongPageCount(-5)),
  createRawPdfBomb(
    'pages that hold themselves',
    PAGE_TREE_OBJECTS[0]!,
    '<< /Type /Pages /Kids [2 0 R] /Count 9 >>',
  ),
  createPageBomb('a page that saves and restores 60 million times', 'q Q ', 240, 2),
  createPageBomb('a page of 200 MB of text', 'BT (a) Tj ET ', 200, 2),
  createPageBomb('a page of brackets', '[', 60, 1),
  createPageBomb('zeros that are packed five times', '\0', 1000, 5),
  createRawPdfBomb('arrays in arrays', ...PAGE_TREE_OBJECTS, '['.repeat(200_000)),
  createPdfBomb('a page that carries a file of 1 GB', () =>
    buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R /Names << /EmbeddedFiles << /Names [(a) 4 0 R] >> >> >>',
      ...PAGE_TREE_OBJECTS.slice(1, 3),
      '<< /Type /Filespec /F (a) /EF << /F 5 0 R >> >>',
      buildStreamObject(deflateRepeat('\0', 2 ** 30), '/Filter /FlateDecode'),
    ]),
  ),
  createPdfBomb('a page of 20,000 fields on one line', () => {
    const field = '<< /Type /Annot /Subtype /Widget /FT /Tx /T (a) /V (value) /Rect [9 9 99 20] /F 4 >>'
    const fields = Array.from({ length: 20_000 }, (_, i) => `${4 + i} 0 R`).join(' ')
    return buildRawPdf([
      `<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [${fields}] >> >>`,
      PAGE_TREE_OBJECTS[1]!,
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [${fields}] >>`,
      ...Array<string>(20_000).fill(field),
    ])
  }),
  { name: '10,000 pages of one strip', fileName: 'bomb.tif', make: () => createOverlappingTiff(10_000) },
  createPngBomb('a picture of 4 thousand million pixels', 65_535, 65_535, 100),
  createPngBomb('a picture of 64 million pixels, all alike', 8_000, 8_000, 8_000 * 8_001),
  createGifBomb('20,000 frames', 20_000),
  { name: '1,000 scans of one pixel', fileName: 'bomb.pgm', make: () => createSmallScans(100_000) },
  {
    name: 'a panel of 60 million points',
    fileName: 'bomb.pbm',
    make: () => createImageOfBits(8000, 7500, 0xdd),
  },
  { name: 'a JPEG XL of nine megapixels in 2 KB', fileName: 'bomb.jxl', make: () => readData('white.jxl') },
  createDocxBomb('a document of 90 MB of paragraphs', '<p><t>a</t></p>', 90),
  createDocxBomb('a document of 90 MB of elements in elements', '<p>', 90),
  createDocxBomb('a document of 400 MB', 'a', 400),
  createDocxBomb('a document of 90 MB of empty cells', '<tbl><tr><tc/><tc/></tr></tbl>', 90),
  createDocxBomb('a document of 90 MB of cells in cells', '<tbl><tr><tc><p><t>a</t></p>', 90),
  createTextBomb(
    'HTML of tables in tables, with cells over many rows and columns',
    'bomb.html',
    () => `<html>${'<table><tr><td rowspan=100 colspan=100>a<td>b<tr><td>c'.repeat(500_000)}`,
  ),
  createTextBomb(
    'HTML of a table with cells over many rows and columns',
    'bomb.html',
    () => `<html><table>${'<tr><td rowspan=100 colspan=100>'.repeat(900_000)}`,
  ),
  createTextBomb('HTML of lists in lists', 'bomb.html', () => `<html>${'<ol><li>a<li>b'.repeat(1_500_000)}`),
  createTextBomb('HTML of 7 million line breaks', 'bomb.html', () => `<html>a${'<br>'.repeat(7_000_000)}`),
  createTextBomb('HTML of marks', 'bomb.html', () => `<html><h1>${'*_`~]('.repeat(5_000_000)}`),
  createTextBomb(
    '3 million elements in elements',
    'bomb.xml',
    () => `<?xml version="1.0"?>${'<a b="c">d'.repeat(3_000_000)}`,
  ),
  createTextBomb('entities of entities', 'bomb.xml', () => {
    const entities = Array.from({ length: 30 }, (_, n) => `<!ENTITY e${n + 1} "&e${n};&e${n};">`)
    return `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "lol">${entities.join('')}]><a>&e30;</a>`
  }),
  createTextBomb('30 million groups in groups', 'bomb.rtf', () => `{\\rtf1 ${'{a'.repeat(30_000_000)}`),
  createTextBomb(
    'HTML of 3 million elements in elements',
    'bomb.html',
    () => `<html>${'<div>a'.repeat(3_000_000)}`,
  ),
  createTextBomb(
    'a mail of half a million parts',
    'bomb.eml',
    () => MAIL_HEADERS + '--b\nContent-Disposition: attachment\n\na\n'.repeat(500_000),
  ),
  createTextBomb(
    'mails in mails',
    'bomb.eml',
    () =>
      MAIL_HEADERS +
      Array.from(
        { length: 100_000 },
        (_, n) => `--b${n}\nContent-Type: multipart/mixed; boundary=b${n + 1}\n\n`,
      ).join(''),
  ),
  createTextBomb('20 million form feeds', 'bomb.txt', () => 'a\f'.repeat(20_000_000)),
  createTextBomb(
    'a drawing of 3 million elements in elements',
    'bomb.svg',
    () => `<svg>${'<text>a'.repeat(3_000_000)}`,
  ),
  createTextBomb(
    'an address card of 8 million lines in one',
    'bomb.vcf',
    () => `BEGIN:VCARD\nNOTE;QUOTED-PRINTABLE:${'=41=\n'.repeat(8_000_000)}`,
  ),
  createTextBomb(
    'a card of 2 million marks',
    'bomb.vcf',
    () => `BEGIN:VCARD\n${';QUOTED-PRINTABLE'.repeat(2_000_000)}`,
  ),
  createTextBomb('HTML of unfinished declarations', 'bomb.html', () => `<html>${'<meta '.repeat(1_000_000)}`),
  createTextBomb(
    'HTML of 5 million skipped elements',
    'bomb.html',
    () => `<html>${'<RT>a<rt>b</RT>'.repeat(2_500_000)}`,
  ),
  createTextBomb('HTML of unfinished comments', 'bomb.html', () => `<html>${'<!--'.repeat(1_000_000)}`),
  createLongTextBomb('letters of no encoding', '\xff\x81a'),
  createTextBomb('an mbox of a million mails', 'bomb.mbox', () =>
    'From a Sat Mar 14 10:00:00 2026\nFrom: a@example.com\n\na\n\n'.repeat(1_000_000),
  ),
  createTextBomb(
    'lines that almost separate mails',
    'bomb.mbox',
    () => `From a Sat Mar 14 10:00:00 2026\n\n${`\nFrom ${'Sat Mar '.repeat(30)}\n`.repeat(100_000)}`,
  ),
  createTextBomb(
    'signed mails in signed mails',
    'bomb.eml',
    () => `${MAIL_HEADERS}--b\nContent-Type: application/pkcs7-mime\n\n${'0\x80'.repeat(20_000_000)}`,
  ),
  {
    name: 'TNEF of two million attachments',
    fileName: 'winmail.dat',
    make: () => buildTnef(Array.from({ length: 2_000_000 }, () => [0x00069002, new Uint8Array()] as const)),
  },
  {
    name: 'TNEF properties of four thousand million values',
    fileName: 'winmail.dat',
    make: () => buildTnef([[0x00069003, Buffer.from('ffffffff1e100010ffffffff', 'hex')]]),
  },
  {
    name: 'RTF of two thousand million bytes in an Outlook mail',
    fileName: 'bomb.msg',
    make: () =>
      buildOutlookFile({
        properties: {
          '0037001F': 'x',
          '10090102': Buffer.from(`ffffff7fffffff7f${'4c5a4675'}00000000`, 'hex'),
        },
      }),
  },
  createLongTextBomb('newlines', '\n'),
  createLongTextBomb('one letter', 'a'),
]
