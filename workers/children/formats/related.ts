import { type Archive, keepFirstOfEach, type Relation } from './archive.ts'
import { readChartText } from './charts.ts'
import { extractOfficeText } from './office-text.ts'

/** Reads what a part of an office file shows from other parts: charts, diagrams and embedded files. */

/** Reads the text of an embedded file; '' if its type has no text. `path` tells its type. */
export type ReadEmbedded = (bytes: Uint8Array, path: string) => Promise<string>

// Limit of embedded files per document. Each costs the time of a document of its own.
const MAX_EMBEDDED = 20
const SHOWN_TYPES = /^(chart|chartEx|diagramData|aFChunk|package)$/

/** The charts, diagrams and embedded files of one document. Each part counts once. */
export class RelatedParts {
  readonly #archive: Archive
  readonly #readEmbedded: ReadEmbedded | undefined
  readonly #seen = new Set<string>()
  #embedded = 0

  constructor(archive: Archive, readEmbedded?: ReadEmbedded) {
    this.#archive = archive
    this.#readEmbedded = readEmbedded
  }

  /** Lists the parts that a part shows, except those listed before. */
  async list(path: string): Promise<readonly Relation[]> {
    const shown = (await this.#archive.readRelations(path)).filter(({ type }) => SHOWN_TYPES.test(type))
    return keepFirstOfEach(shown, this.#seen)
  }

  /** Returns the texts of listed parts by relation id. */
  async read(relations: readonly Relation[]): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>()
    for (const { id, type, path } of relations) texts.set(id, await this.#readPart(type, path))
    return texts
  }

  async #readPart(type: string, path: string): Promise<string> {
    if (type === 'aFChunk' || type === 'package') return await this.#readFile(path)
    const xml = (await this.#archive.text(path)) ?? ''
    return type === 'diagramData'
      ? extractOfficeText(xml)
      : `${readChartText(xml)}\n${await this.#readShapes(path)}`.trim()
  }

  async #readFile(path: string): Promise<string> {
    if (this.#readEmbedded === undefined || ++this.#embedded > MAX_EMBEDDED) return ''
    const bytes = await this.#archive.bytes(path)
    return bytes === null ? '' : (await this.#readEmbedded(bytes, path)).trim()
  }

  /** Reads the text boxes that lie on a chart. */
  async #readShapes(chart: string): Promise<string> {
    const shapes = (await this.#archive.readRelations(chart)).find(({ type }) => type === 'chartUserShapes')
    return shapes === undefined ? '' : extractOfficeText((await this.#archive.text(shapes.path)) ?? '')
  }
}
