import { posix } from 'node:path'
import { readMarkup } from '../../../../tasks/markup.ts'
import { openZip, type ZipEntry, type ZipRules } from '../../../../tasks/zip.ts'
import { Unreadable } from '../images.ts'
import { decodeXml } from '../texts.ts'

/** Archives of XML parts: office files and electronic books. */

// A sheet of a million rows has 50 MB; what is larger is no document that somebody reads.
const MAX_PART_BYTES = 100_000_000

const RULES: ZipRules = {
  createError: (reason, cause) => new Unreadable(`The document cannot be opened: ${reason}`, { cause }),
  isTextOnly: false,
}

/** What a part refers to. */
export interface Relation {
  readonly id: string
  /** The last part of its type's name, e.g. `worksheet`. */
  readonly type: string
  readonly path: string
}

export class Archive {
  readonly #entries: ReadonlyMap<string, ZipEntry>

  private constructor(entries: readonly ZipEntry[]) {
    // The names of parts are equal in any case (ECMA-376, part 2, 6.2.2.3).
    this.#entries = new Map(entries.map((entry) => [entry.path.toLowerCase(), entry]))
  }

  /** @throws Unreadable for what is no archive, a damaged or an encrypted one. */
  static async open(bytes: Uint8Array): Promise<Archive> {
    return new Archive(await openZip(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), RULES))
  }

  /** The size of all its parts, unpacked. */
  get unpackedBytes(): number {
    return [...this.#entries.values()].reduce((sum, { size }) => sum + size, 0)
  }

  /** The text of a part; null when there is none. @throws Unreadable when it is damaged, or too large. */
  async text(path: string): Promise<string | null> {
    const entry = this.#entries.get(path.toLowerCase())
    if (entry === undefined) return null
    const bytes = await entry.read(MAX_PART_BYTES)
    if (bytes === null)
      throw new Unreadable(`The document has a part of more than ${MAX_PART_BYTES / 1_000_000} MB`)
    return decodeXml(bytes)
  }

  /** The text of a part that the document can't be without. */
  async needed(path: string): Promise<string> {
    const text = await this.text(path)
    if (text === null) throw new Unreadable(`The document is damaged: it has no part ${path.slice(0, 200)}`)
    return text
  }

  /** What a part of an Office Open XML file refers to, or with '' the whole file (ECMA-376, part 2, 6.5). */
  async relations(path: string): Promise<readonly Relation[]> {
    const folder = posix.dirname(path)
    const xml = await this.text(posix.join(folder, '_rels', `${posix.basename(path)}.rels`))
    const relations: Relation[] = []
    readMarkup(xml ?? '', 'xml', {
      open: (name, { Id: id = '', Type = '', Target = '', TargetMode }) => {
        if (localName(name) !== 'Relationship' || TargetMode === 'External') return
        const type = Type.slice(Type.lastIndexOf('/') + 1)
        relations.push({ id, type, path: posix.resolve('/', folder, Target).slice(1) })
      },
    })
    return relations
  }

  /** The part with which an Office Open XML file begins. */
  async mainPart(): Promise<string> {
    const main = (await this.relations('')).find(({ type }) => type === 'officeDocument')
    if (main === undefined) throw new Unreadable('The document is damaged: nothing says where it begins')
    return main.path
  }
}

/** The first relation to each part: a part counts once, however often it is named, in whatever case. */
export function firstOfEach<T extends { readonly path: string }>(
  named: readonly T[],
  seen = new Set<string>(),
): T[] {
  return named.filter(({ path }) => {
    const key = path.toLowerCase()
    return !seen.has(key) && seen.add(key)
  })
}

/** The name of an element or attribute without its prefix, which writers choose. */
export const localName = (name: string): string => name.slice(name.indexOf(':') + 1)
