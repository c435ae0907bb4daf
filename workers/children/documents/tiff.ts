/** TIFF files: their pages, each as a file or as pictures that something else can decode. */
import { SOURCE_PIXELS, Unreadable } from './images.ts'
import { jpegsOf, uncoded } from './tiff-codings.ts'
import { type Directory, directories, Tag } from './tiff-directories.ts'

/** One page of a TIFF file, for a decoder of one-page files or of JPEGs. Both throw `Unreadable`. */
export interface TiffPage {
  readonly width: number
  readonly height: number
  /** A file whose first page it is, in a compression that the vision engine supports; null for JPEG pages. */
  file(): Uint8Array | null
  /** The JPEGs that a JPEG page is made of, and where each is to be drawn. */
  jpegs(): { readonly bytes: Uint8Array; readonly x: number; readonly y: number }[]
}

// What the libtiff inside the vision engine was built with: no compression, fax (three kinds), LZW, PackBits.
const ENGINE_CODINGS = new Set([1, 2, 3, 4, 5, 32_773])
const DEFLATE = new Set([8, 32_946])
const JPEG = 7
const MOST_PAGES = 100_000

/**
 * The pages of a TIFF (classic or BigTIFF), found by walking its directories, at most 100,000.
 * A page that is too large or in an unsupported compression is an `Unreadable` in its place. Throws `Unreadable` if
 * there are no pages, or if they overlap.
 */
export function tiffPages(bytes: Uint8Array): (TiffPage | Unreadable)[] {
  const pages: (TiffPage | Unreadable)[] = []
  let claimed = 0
  const begun = new Set<number>()
  try {
    for (const directory of directories(bytes)) {
      if (pages.length >= MOST_PAGES) break
      const [start] = [Tag.stripOffsets, Tag.tileOffsets].flatMap((tag) => directory.values(tag, 1))
      claimed += bytesOf(directory)
      // A bomb makes thousands of pages of one picture.
      if (claimed > bytes.length || (start !== undefined && begun.has(start)))
        throw new Unreadable('The image is damaged: its pages overlap')
      if (start !== undefined) begun.add(start)
      pages.push(tiffPage(bytes, directory))
    }
  } catch (error) {
    // A chain that leads outside the file: the pages before it are good.
    if (!(error instanceof RangeError)) throw error
  }
  if (pages.length === 0) throw new Unreadable('The image is damaged')
  return pages
}

function tiffPage(bytes: Uint8Array, directory: Directory): TiffPage | Unreadable {
  const [width, height, coding] = [
    directory.first(Tag.width, 0),
    directory.first(Tag.height, 0),
    directory.first(Tag.coding, 1),
  ]
  if (width * height > SOURCE_PIXELS) {
    return new Unreadable(`The image is too large to be decoded (${width} x ${height} pixels)`)
  }
  if (!(ENGINE_CODINGS.has(coding) || DEFLATE.has(coding) || coding === JPEG)) {
    const name = coding === 6 ? 'old JPEG' : coding
    return new Unreadable(`TIFF images with ${name} compression cannot be decoded`)
  }
  const tiled = directory.fields.has(Tag.tileOffsets)
  if (tiled && coding !== 1 && ENGINE_CODINGS.has(coding))
    return new Unreadable('Tiled TIFF images with this compression cannot be decoded')
  return {
    width,
    height,
    file: () => {
      if (coding === JPEG) return null
      if (ENGINE_CODINGS.has(coding) && !tiled) return startingAt(bytes, directory.offset)
      return careful(() => uncoded(bytes, directory))
    },
    jpegs: () => careful(() => jpegsOf(bytes, directory, width)),
  }
}

/** How many bytes of the file a page claims for itself. */
function bytesOf(directory: Directory): number {
  return [Tag.stripCounts, Tag.tileCounts]
    .flatMap((tag) => directory.values(tag))
    .reduce((sum, count) => sum + count, 0)
}

function careful<T>(work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw cause instanceof Unreadable ? cause : new Unreadable('The image is damaged', { cause })
  }
}

function startingAt(bytes: Uint8Array, offset: number): Uint8Array {
  const copy = bytes.slice()
  const view = new DataView(copy.buffer)
  const little = view.getUint16(0) === 0x4949
  if (view.getUint16(2, little) === 43) view.setBigUint64(8, BigInt(offset), little)
  else view.setUint32(4, offset, little)
  return copy
}
