/** Finds the pictures in office files and electronic books, which are zip archives. */
import { sniffMediaType } from '../../../tasks/documents/media.ts'
import { openZip, type ZipEntry } from '../../../tasks/formats/zip.ts'
import type { GreyImage } from '../images/grey.ts'
import { DECODERS } from '../images/image-pages.ts'
import { convertToGrey, Unreadable } from '../images/images.ts'
import type { Picture } from '../ocr/pictures.ts'

const PICTURE_PATTERN = /\.(png|jpe?g|gif|bmp|tiff?|webp|avif|heic|pcx)$/i
// Previews of the document itself.
const THUMBNAIL_PATTERN = /(^|\/)thumbnails?(\/|\.)/i
const ZIP_TYPE_PATTERN =
  /^application\/(epub\+zip$|vnd\.(openxmlformats-officedocument|oasis\.opendocument|ms-word|ms-powerpoint|ms-excel)\.)/
const MAX_PICTURES = 200
const MAX_PICTURE_BYTES = 50_000_000
const SNIFFED_BYTES = 65_536
// Sizes in pixels: below them are icons, bullets and lines.
const MIN_WIDTH = 100
const MIN_HEIGHT = 24
const MIN_PIXELS = 8000

/** Returns the pictures of a file, in the order of their names; none for files that are no archives. @throws Unreadable. */
export async function findArchivePictures(bytes: Uint8Array, mediaType: string): Promise<readonly Picture[]> {
  // An encrypted office file is no archive.
  const isArchive = bytes[0] === 0x50 && bytes[1] === 0x4b
  if (!isArchive || !ZIP_TYPE_PATTERN.test(mediaType)) return []
  const entries = await openZip(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
    createError: (reason, cause) => new Unreadable(`The document cannot be opened: ${reason}`, { cause }),
    isTextOnly: false,
  })
  const pictures = entries
    .filter(({ path, size }) => size > 0 && PICTURE_PATTERN.test(path) && !THUMBNAIL_PATTERN.test(path))
    .toSorted((a, b) => a.path.localeCompare(b.path, 'en', { numeric: true }))
  return keepDistinct(pictures).slice(0, MAX_PICTURES).map(createPicture)
}

/** Keeps one of the entries with the same path: archives may repeat it. */
function keepDistinct(entries: readonly ZipEntry[]): ZipEntry[] {
  return [...new Map(entries.map((entry) => [entry.path.toLowerCase(), entry])).values()]
}

const createPicture = (entry: ZipEntry): Picture => ({
  key: entry.path,
  async load() {
    const bytes = await entry.read(MAX_PICTURE_BYTES)
    return bytes && decode(new Uint8Array(bytes))
  },
})

async function decode(bytes: Uint8Array): Promise<GreyImage | null> {
  const open = DECODERS[await sniffMediaType(bytes.subarray(0, SNIFFED_BYTES), {})]
  if (open === undefined) return null
  const image = await open(bytes)
  try {
    const { pixels } = await image.page(1)
    const { width, height } = pixels
    const isSmall = width < MIN_WIDTH || height < MIN_HEIGHT || width * height < MIN_PIXELS
    return isSmall ? null : convertToGrey(pixels)
  } finally {
    image.close?.()
  }
}
