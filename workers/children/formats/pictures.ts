/** Decodes the pictures in office files and electronic books, which are zip archives. */
import { sniffMediaType } from '../../../tasks/documents/media.ts'
import type { ZipEntry } from '../../../tasks/formats/zip.ts'
import type { GreyImage } from '../images/grey.ts'
import { DECODERS } from '../images/image-pages.ts'
import { convertToGrey } from '../images/images.ts'
import type { Picture } from '../ocr/pictures.ts'

const MAX_PICTURE_BYTES = 50_000_000
const SNIFFED_BYTES = 65_536
// Sizes in pixels: below them are icons, bullets and lines.
const MIN_WIDTH = 100
const MIN_HEIGHT = 24
const MIN_PIXELS = 8000

/** Returns a picture that is decoded on demand. */
export const createPicture = (entry: ZipEntry): Picture => ({
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
