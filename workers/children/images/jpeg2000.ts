import { Unreadable } from './images.ts'

// OCR draws pages at 250 dpi. At this size, each pixel of the image becomes one pixel of the drawing.
const POINTS_PER_PIXEL = 72 / 250

/** Wraps a JPEG 2000 image in a one-page PDF, because the PDF readers can decode it. @throws Unreadable. */
export function wrapJpeg2000InPdf(bytes: Uint8Array): Uint8Array {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const { width, height } = readSize(file)
  const [across, up] = [width * POINTS_PER_PIXEL, height * POINTS_PER_PIXEL]
  const content = `${across} 0 0 ${up} 0 0 cm /P Do`
  const stream = (dictionary: string, data: Uint8Array | string): Buffer[] => [
    Buffer.from(`<< ${dictionary} /Length ${data.length} >>\nstream\n`),
    Buffer.from(data),
    Buffer.from('\nendstream'),
  ]
  const objects: Buffer[][] = [
    [Buffer.from('<< /Type /Catalog /Pages 2 0 R >>')],
    [Buffer.from('<< /Type /Pages /Kids [3 0 R] /Count 1 >>')],
    [
      Buffer.from(
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${across} ${up}] /Contents 4 0 R /Resources << /XObject << /P 5 0 R >> >> >>`,
      ),
    ],
    stream('', content),
    stream(`/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /Filter /JPXDecode`, file),
  ]
  return assemblePdf(objects)
}

const CODESTREAM_START = Buffer.from('ff4fff51', 'hex')

/** Reads the size of an image, or of a codestream without a file around it. @throws Unreadable. */
function readSize(file: Buffer): { width: number; height: number } {
  if (file.subarray(0, 4).equals(CODESTREAM_START)) {
    if (file.length < 24) throw new Unreadable('The image is damaged')
    // ISO/IEC 15444-1, A.5.1: the size of the reference grid, and the offset of the image in it.
    const [right, bottom, left, top] = [8, 12, 16, 20].map((at) => file.readUInt32BE(at)) as never as number[]
    if (right! <= left! || bottom! <= top!) throw new Unreadable('The image is damaged')
    return { width: right! - left!, height: bottom! - top! }
  }
  // ISO/IEC 15444-1, I.5.3.1: height and width follow the box name. The box is near the start of the file.
  const header = file.subarray(0, 1024).indexOf('ihdr')
  if (header < 0 || header + 12 > file.length) throw new Unreadable('The image is damaged')
  return { width: file.readUInt32BE(header + 8), height: file.readUInt32BE(header + 4) }
}

/** Assembles a PDF from its objects and adds the cross-reference table. */
function assemblePdf(objects: readonly (readonly Buffer[])[]): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n')]
  let at = parts[0]!.length
  const starts = objects.map((object, n) => {
    const start = at
    const all = [Buffer.from(`${n + 1} 0 obj\n`), ...object, Buffer.from('\nendobj\n')]
    at += all.reduce((sum, { length }) => sum + length, 0)
    parts.push(...all)
    return start
  })
  const table = [
    '0000000000 65535 f ',
    ...starts.map((start) => `${String(start).padStart(10, '0')} 00000 n `),
  ]
  const trailer = `trailer << /Root 1 0 R /Size ${table.length} >>\nstartxref\n${at}\n%%EOF\n`
  return Buffer.concat([...parts, Buffer.from(`xref\n0 ${table.length}\n${table.join('\n')}\n${trailer}`)])
}
