import { posix } from 'node:path'
import { openZip, type ZipEntry, type ZipRules } from '../../../tasks/formats/zip.ts'
import { decodeXml } from '../documents/texts.ts'
import { Unreadable } from '../images/images.ts'
import type { PagedText, PictureMap } from './texts.ts'
import { parseXml } from './xml.ts'

/** Reads archives of XML parts: office files and electronic books. */

// A sheet with a million rows takes 50 MB. No part of a readable document exceeds this limit.
export const MAX_PART_BYTES = 100_000_000

// Pictures that are read, and drawings that are not.
const PICTURE_PATTERN = /\.(png|jpe?g|gif|bmp|tiff?|webp|avif|heic|pcx|jxl)$/i
const DRAWING_PATTERN = /\.(emf|wmf|svg)$/i
// Previews of the document itself.
const THUMBNAIL_PATTERN = /(^|\/)thumbnails?(\/|\.)/i
const MAX_PICTURES = 200

const ZIP_RULES: ZipRules = {
  createError: (reason, cause) => new Unreadable(`The document cannot be opened: ${reason}`, { cause }),
  isTextOnly: false,
}

/** A reference from a part, or from the file, to another part. */
export interface Relation {
  readonly id: string
  /** Last segment of the type's URI, e.g. `worksheet`. */
  readonly type: string
  readonly path: string
}

export class Archive {
  readonly #entries: ReadonlyMap<string, ZipEntry>
  #pictures: readonly ZipEntry[] | undefined
  // Several readers of a part follow each other. Weak references cost no memory.
  readonly #unpacked = new Map<string, WeakRef<Buffer>>()

  private constructor(entries: readonly ZipEntry[]) {
    // Part names are case-insensitive (ECMA-376, part 2, 6.2.2.3).
    this.#entries = new Map(entries.map((entry) => [entry.path.toLowerCase(), entry]))
  }

  /**
   * Opens an archive.
   * @throws Unreadable if the bytes are not an archive, or a damaged or encrypted one.
   */
  static async open(bytes: Uint8Array): Promise<Archive> {
    return new Archive(
      await openZip(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), ZIP_RULES),
    )
  }

  /** Wraps parts that are already unpacked, as those of a flat file. */
  static of(parts: ReadonlyMap<string, Buffer>): Archive {
    return new Archive(
      [...parts].map(([path, bytes]) => ({
        path,
        size: bytes.length,
        read: async (max) => (bytes.length > max ? null : bytes),
      })),
    )
  }

  /**
   * Returns what the pages of a document have in common. Pictures without a page in `pageOf`, by their path in lower
   * case, belong to the last one.
   */
  describePages(
    pageCount: number,
    pageOf: PictureMap = new Map(),
  ): Required<Pick<PagedText, 'unpackedBytes' | 'hasPictures' | 'pictures'>> {
    this.#pictures ??= this.#listPictures()
    const pictures = Map.groupBy(this.#pictures, ({ path }) => pageOf.get(path.toLowerCase()) ?? pageCount)
    return {
      unpackedBytes: [...this.#entries.values()].reduce((sum, { size }) => sum + size, 0),
      hasPictures: this.paths.some((path) => PICTURE_PATTERN.test(path) || DRAWING_PATTERN.test(path)),
      pictures: (page) => pictures.get(page) ?? [],
    }
  }

  /** Returns the pictures that can be read, in the order of their names. */
  #listPictures(): readonly ZipEntry[] {
    return [...this.#entries.values()]
      .filter(({ path, size }) => size > 0 && PICTURE_PATTERN.test(path) && !THUMBNAIL_PATTERN.test(path))
      .toSorted((a, b) => a.path.localeCompare(b.path, 'en', { numeric: true }))
      .slice(0, MAX_PICTURES)
  }

  /** Finds the first page of each picture by the parts of the pages of an Office Open XML file. */
  async placePictures(pages: readonly (readonly { readonly path: string }[])[]): Promise<PictureMap> {
    const pageOf = new Map<string, number>()
    for (const [n, parts] of pages.entries())
      for (const { path } of parts)
        for (const { type, path: picture } of await this.readRelations(path)) {
          const key = picture.toLowerCase()
          if (type === 'image' && !pageOf.has(key)) pageOf.set(key, n + 1)
        }
    return pageOf
  }

  /** Names of all parts, in lower case. */
  get paths(): readonly string[] {
    return [...this.#entries.keys()]
  }

  /** Returns the unpacked size of a part; 0 if it does not exist. */
  size(path: string): number {
    return this.#entries.get(path.toLowerCase())?.size ?? 0
  }

  /** Reads a part; null if it does not exist. @throws Unreadable if it is damaged or too large. */
  async bytes(path: string): Promise<Buffer | null> {
    const key = path.toLowerCase()
    const entry = this.#entries.get(key)
    if (entry === undefined) return null
    const known = this.#unpacked.get(key)?.deref()
    if (known !== undefined) return known
    const bytes = await entry.read(MAX_PART_BYTES)
    if (bytes === null)
      throw new Unreadable(`A part of the document exceeds ${MAX_PART_BYTES / 1_000_000} MB`)
    this.#unpacked.set(key, new WeakRef(bytes))
    return bytes
  }

  /** Reads the text of a part; null if it does not exist. @throws Unreadable if it is damaged or too large. */
  async text(path: string): Promise<string | null> {
    const bytes = await this.bytes(path)
    return bytes === null ? null : decodeXml(bytes)
  }

  /** Reads the text of a required part. @throws Unreadable if it is missing, damaged or too large. */
  async readRequired(path: string): Promise<string> {
    const text = await this.text(path)
    if (text === null)
      throw new Unreadable(`The document is damaged: it lacks the part ${path.slice(0, 200)}`)
    return text
  }

  /**
   * Reads the internal relations of an Office Open XML part, or of the whole file if `path` is '' (ECMA-376, part 2,
   * 6.5).
   */
  async readRelations(path: string): Promise<readonly Relation[]> {
    const folder = posix.dirname(path)
    const xml = await this.text(posix.join(folder, '_rels', `${posix.basename(path)}.rels`))
    const relations: Relation[] = []
    parseXml(xml ?? '', {
      open: (name, { Id: id = '', Type = '', Target = '', TargetMode }) => {
        if (name !== 'Relationship' || TargetMode === 'External') return
        const type = Type.slice(Type.lastIndexOf('/') + 1)
        relations.push({ id, type, path: posix.resolve('/', folder, Target).slice(1) })
      },
    })
    return relations
  }

  /** Lists the parts whose declared content type matches. */
  async listParts(pattern: RegExp): Promise<readonly string[]> {
    const found: string[] = []
    parseXml((await this.text('[Content_Types].xml')) ?? '', {
      open: (name, { PartName = '', ContentType = '' }) => {
        if (name === 'Override' && pattern.test(ContentType)) found.push(PartName.replace(/^\//, ''))
      },
    })
    return found
  }

  /** Returns the content type of a part, as `[Content_Types].xml` declares it; '' if it has none of its own. */
  async contentType(path: string): Promise<string> {
    let found = ''
    parseXml((await this.text('[Content_Types].xml')) ?? '', {
      open: (name, { PartName = '', ContentType = '' }) => {
        if (name === 'Override' && PartName.toLowerCase() === `/${path.toLowerCase()}`) found = ContentType
      },
    })
    return found
  }

  /** Returns the path of the main part of an Office Open XML file. @throws Unreadable if there is none. */
  async findMainPart(): Promise<string> {
    // Visio calls its main part otherwise.
    const main = (await this.readRelations('')).find(({ type }) => /^(officeDocument|document)$/.test(type))
    if (main === undefined) throw new Unreadable('The document is damaged: it declares no main part')
    return main.path
  }
}

/** Keeps the first reference to each path, ignoring case. Adds these paths to `seen`, and skips paths already in it. */
export function keepFirstOfEach<T extends { readonly path: string }>(
  named: readonly T[],
  seen = new Set<string>(),
): T[] {
  return named.filter(({ path }) => {
    const key = path.toLowerCase()
    return !seen.has(key) && seen.add(key)
  })
}
