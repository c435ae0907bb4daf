/** Builds PDFs for tests in memory. Equal arguments give equal bytes. */
import { createHash } from 'node:crypto'
import { createCanvas } from '@napi-rs/canvas'
import { TEST_FONT } from './fonts.ts'

const A4_POINTS: [number, number] = [595.28, 841.89]

/** Returns numbered sentences of common words. The numbers let tests notice lost or repeated sentences. */
export function createSentences(count: number, from = 1): string[] {
  const subjects = ['The harbour office', 'A careful reader', 'The second committee', 'Our northern branch']
  const verbs = ['received', 'answered', 'recorded', 'delivered', 'examined']
  const objects = ['a letter about the winter supplies', 'the annual report', 'several orders from the coast']
  return Array.from({ length: count }, (_, i) => {
    const n = from + i
    const pick = (list: string[]) => list[n % list.length]!
    return `${pick(subjects)} ${pick(verbs)} ${pick(objects)} on day ${n}.`
  })
}

/** Colours of a scanned page. */
export interface Colours {
  /** Text colours; lines alternate between them. */
  readonly inks: readonly string[]
  readonly paper: string
}

/** Options of `buildTextPdf` and `buildScanPdf`: an extra line for each page, the number of sentences, and a scan's colours. */
export interface PdfOptions {
  readonly line?: ((pageNumber: number) => string) | undefined
  readonly sentences?: number | undefined
  readonly colours?: Colours | undefined
}

/** Returns the lines of a page of `buildTextPdf` and `buildScanPdf`: `Page N of M`, then sentences. */
export function createPageLines(pageNumber: number, pages: number, options: PdfOptions = {}): string[] {
  const count = options.sentences ?? 5
  const own = options.line ? [options.line(pageNumber)] : []
  return [`Page ${pageNumber} of ${pages}`, ...own, ...createSentences(count, (pageNumber - 1) * count + 1)]
}

/** Builds A4 pages with a text layer: `Page N of M`, then sentences. */
export function buildTextPdf(pages: number, options: PdfOptions = {}): Promise<Uint8Array> {
  return buildMixedPdf(pages, [], options)
}

/** Builds A4 pages that each consist of one image (JPEG at 200 dpi) with the lines of `buildTextPdf`. */
export function buildScanPdf(pages = 1, options: PdfOptions = {}): Promise<Uint8Array> {
  return buildMixedPdf(
    pages,
    Array.from({ length: pages }, (_, i) => i + 1),
    options,
  )
}

/** Builds text pages, except that the pages numbered in `scans` are images. */
export async function buildMixedPdf(
  pages: number,
  scans: readonly number[],
  options: PdfOptions = {},
): Promise<Uint8Array> {
  return buildPagesPdf(
    Array.from({ length: pages }, (_, i) => {
      const lines = createPageLines(i + 1, pages, options)
      if (!scans.includes(i + 1)) return { content: buildTextContent(lines) }
      return {
        content: `${A4_POINTS[0]} 0 0 ${A4_POINTS[1]} 0 0 cm /Im Do`,
        image: renderScan(lines, 200, 60, options.colours),
      }
    }),
  )
}

/** Builds an empty A4 page. */
export async function buildBlankPdf(): Promise<Uint8Array> {
  return buildPagesPdf([{ content: '' }])
}

/** Builds one page of 100,000 x 100,000 points, with a text layer if `text` is given. */
export async function buildHugePagePdf(text?: string): Promise<Uint8Array> {
  const content = text ? `BT /F1 24 Tf 100 100 Td (${text}) Tj ET` : '0 0 90000 90000 re f'
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100000 100000] /Contents 4 0 R' +
      ` /Resources << ${FONT_RESOURCE} >> >>`,
    buildStreamObject(content),
  ])
}

/** Builds a PDF with `depth` nested arrays in place of the pages or the content, or with a page tree of that depth. */
export function buildDeepPdf(kind: 'arrays' | 'content' | 'tree' = 'arrays', depth = 200_000): Uint8Array {
  const nest = '['.repeat(depth) + ']'.repeat(depth)
  const page = '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R >>'
  const catalog = '<< /Type /Catalog /Pages 2 0 R >>'
  if (kind === 'arrays') return buildRawPdf([catalog, `<< /Type /Pages /Kids ${nest} /Count 1 >>`])
  if (kind === 'content') {
    return buildRawPdf([
      catalog,
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      page,
      buildStreamObject(`${nest} TJ`),
    ])
  }
  const tree = Array.from({ length: depth }, (_, i) => `<< /Type /Pages /Kids [${i + 3} 0 R] /Count 1 >>`)
  return buildRawPdf([catalog, ...tree, page])
}

/** Returns the first `share` of the bytes of a text PDF, which then lacks its cross-reference table and catalogue. */
export async function buildTruncatedPdf(share = 0.5): Promise<Uint8Array> {
  const bytes = await buildTextPdf(4)
  return bytes.slice(0, Math.floor(bytes.length * share))
}

/**
 * Builds a one-page PDF with `text`, encrypted with RC4 and a 40-bit key. Opening it requires `password`, unless that
 * is ''.
 */
export function buildEncryptedPdf(password = 'secret', text = 'Only for those who know'): Uint8Array {
  const id = md5(Buffer.from('identifier'))
  const permissions = -4
  const owner = rc4(md5(padPassword('owner')).subarray(0, 5), padPassword(password))
  const flags = Buffer.alloc(4)
  flags.writeInt32LE(permissions)
  const key = md5(Buffer.concat([padPassword(password), owner, flags, id])).subarray(0, 5)
  const user = rc4(key, PADDING)
  const content = Buffer.from(`BT /F1 18 Tf 50 100 Td (${text}) Tj ET`)
  const objectKey = md5(Buffer.concat([key, Buffer.from([4, 0, 0, 0, 0])])).subarray(0, 10)
  const hex = (bytes: Buffer) => `<${bytes.toString('hex')}>`
  return buildRawPdf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << ${FONT_RESOURCE} >> >>`,
      buildStreamObject(rc4(objectKey, content)),
      `<< /Filter /Standard /V 1 /R 2 /O ${hex(owner)} /U ${hex(user)} /P ${permissions} >>`,
    ],
    `/Encrypt 5 0 R /ID [${hex(id)} ${hex(id)}]`,
  )
}

/** Builds a PDF from these objects, which are numbered from 1. The catalogue comes first. */
export function buildRawPdf(objects: readonly (string | Uint8Array)[], trailer = ''): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from('%PDF-1.4\n')]
  const offsets: number[] = []
  let length = parts[0]!.length
  const add = (part: Uint8Array) => {
    parts.push(part)
    length += part.length
  }
  for (const [i, object] of objects.entries()) {
    offsets.push(length)
    const [head, foot] = [`${i + 1} 0 obj\n`, '\nendobj\n']
    if (typeof object === 'string') add(Buffer.from(head + object + foot))
    else for (const part of [Buffer.from(head), object, Buffer.from(foot)]) add(part)
  }
  const start = length
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  add(Buffer.from(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`))
  add(
    Buffer.from(
      `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`,
    ),
  )
  return new Uint8Array(Buffer.concat(parts))
}

/** Builds a page in Helvetica, whose ToUnicode table maps the character codes from 0x41 on to `letters`. */
export function buildMappedPdf(letters: readonly string[], content: string): Uint8Array {
  const map = letters.map((letter, i) => {
    const units = Array.from({ length: letter.length }, (_, n) => letter.charCodeAt(n))
    const hex = units.map((unit) => unit.toString(16).padStart(4, '0')).join('')
    return `<${(0x41 + i).toString(16)}> <${hex}>`
  })
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    buildStreamObject(content),
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>',
    buildStreamObject(
      '/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /M def /CMapType 2 def' +
        ` 1 begincodespacerange <00> <ff> endcodespacerange ${map.length} beginbfchar\n${map.join('\n')}\n` +
        'endbfchar endcmap end end',
    ),
  ])
}

/** Builds a stream object for `buildRawPdf`. */
export function buildStreamObject(content: string | Uint8Array, dictionary = ''): Uint8Array {
  const bytes = Buffer.from(content as string)
  const head = Buffer.from(`<< /Length ${bytes.length} ${dictionary} >>\nstream\n`)
  return Buffer.concat([head, bytes, Buffer.from('\nendstream')])
}

/** A JPEG image and its size in pixels. */
export interface Jpeg {
  readonly bytes: Uint8Array
  readonly width: number
  readonly height: number
}

/** Renders an A4 page with these lines in 11 points as JPEG. */
export function renderScan(
  lines: readonly string[],
  dpi = 200,
  quality = 60,
  { inks, paper }: Colours = { inks: ['#222'], paper: '#fff' },
): Jpeg {
  const scale = dpi / 72
  const canvas = createCanvas(Math.round(A4_POINTS[0] * scale), Math.round(A4_POINTS[1] * scale))
  const context = canvas.getContext('2d')
  context.fillStyle = paper
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.font = `${11 * scale}px ${TEST_FONT}`
  for (const [i, line] of lines.entries()) {
    context.fillStyle = inks[i % inks.length]!
    context.fillText(line, 60 * scale, (80 + 18 * i) * scale)
  }
  const { width, height } = canvas
  const bytes = new Uint8Array(canvas.toBuffer('image/jpeg', quality))
  // Frees the pixels. They live outside the heap, so garbage collection would let gigabytes of them accumulate.
  canvas.width = 0
  return { bytes, width, height }
}

const FONT_RESOURCE = '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'

function buildTextContent(lines: readonly string[]): string {
  const shown = lines.map((line) => `(${line.replace(/[()\\]/g, '\\$&')}) Tj T*`)
  return `BT /F1 11 Tf 18 TL 60 770 Td ${shown.join('\n')} ET`
}

// Builds a PDF of these pages. The catalogue and the page tree are followed by three objects per page: page, content,
// and image or null.
function buildPagesPdf(pages: readonly { content: string; image?: Jpeg }[]): Uint8Array {
  const kids = pages.map((_, i) => `${3 + 3 * i} 0 R`).join(' ')
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    ...pages.flatMap(({ content, image }, i) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${A4_POINTS.join(' ')}] /Contents ${4 + 3 * i} 0 R` +
        ` /Resources << ${FONT_RESOURCE} /XObject << /Im ${5 + 3 * i} 0 R >> >> >>`,
      buildStreamObject(content),
      image ? buildStreamObject(image.bytes, buildImageDictionary(image)) : 'null',
    ]),
  ])
}

function buildImageDictionary({ width, height }: Jpeg): string {
  const size = `/Width ${width} /Height ${height} /BitsPerComponent 8`
  return `/Type /XObject /Subtype /Image ${size} /ColorSpace /DeviceRGB /Filter /DCTDecode`
}

// Padding of passwords in the standard security handler, revision 2 (ISO 32000-1, 7.6.3).
const PADDING = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex')

const padPassword = (password: string) =>
  Buffer.concat([Buffer.from(password, 'latin1'), PADDING]).subarray(0, 32)

const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest()

// Implements RC4, which OpenSSL 3 no longer provides.
function rc4(key: Uint8Array, bytes: Uint8Array): Buffer {
  const box = Uint8Array.from({ length: 256 }, (_, i) => i)
  const swap = (i: number, j: number) => ([box[i], box[j]] = [box[j]!, box[i]!])
  for (let i = 0, j = 0; i < 256; i++) {
    j = (j + box[i]! + key[i % key.length]!) & 255
    swap(i, j)
  }
  let i = 0
  let j = 0
  return Buffer.from(bytes).map((byte) => {
    i = (i + 1) & 255
    j = (j + box[i]!) & 255
    swap(i, j)
    return byte ^ box[(box[i]! + box[j]!) & 255]!
  }) as Buffer
}
