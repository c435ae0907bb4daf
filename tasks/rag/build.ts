import { fail } from '../../sql/errors.ts'
import {
  addFiles,
  dropMade,
  dropOtherBuilds,
  type KnownFile,
  knownFiles,
  type NewFile,
  swapBuild,
  VACUUMS,
} from '../../sql/rag.ts'
import type { TaskContext } from '../context.ts'
import { ANALYSIS } from './analyze.ts'
import { embedBuild } from './embed-build.ts'
import type { IndexResult } from './index-result.ts'
import type { Skipped } from './walk.ts'

/** What a run makes of a collection: new rows beside those that are searched, until it swaps them in. */

/** Collections are searched in memory, where half a million chunks take about a gigabyte. */
const MAX_CHUNKS = 500_000
// How much one transaction stores: enough to make its cost small, and little enough to hold in memory.
const CHUNKS_AT_ONCE = 500
const MAX_REPORTED = 100

/** A collection that a job indexes. */
export interface Indexed {
  readonly id: number
  readonly name: string
}

/** The new rows of a job, and what it has seen of the old ones. */
export class Build {
  /** What is part of the collection, by source. */
  readonly known: ReadonlyMap<string, KnownFile>
  /** The sources that will be in the collection. */
  readonly present = new Set<string>()
  readonly #ctx: TaskContext
  readonly #collection: Indexed
  readonly #startedAt: number
  /** What an earlier attempt of the job has stored and this one has not met yet. */
  readonly #made: Map<string, KnownFile>
  readonly #skipped: Skipped[] = []
  #waiting: NewFile[] = []
  #waitingChunks = 0
  #added = 0
  #unchanged = 0
  #chunks = 0

  private constructor(
    ctx: TaskContext,
    collection: Indexed,
    startedAt: number,
    rows: { known: readonly KnownFile[]; made: readonly KnownFile[] },
  ) {
    this.#ctx = ctx
    this.#collection = collection
    this.#startedAt = startedAt
    this.known = bySource(rows.known)
    this.#made = bySource(rows.made)
  }

  /** Begins one, or continues that of the job's earlier attempt. */
  static async open(
    ctx: TaskContext,
    collection: Indexed,
    startedAt: number = performance.now(),
  ): Promise<Build> {
    await ctx.fenced((tx) => tx.run(dropOtherBuilds(collection.id, ctx.job.id)))
    const known = await ctx.db.any(knownFiles(collection.id, null))
    const made = await ctx.db.any(knownFiles(collection.id, ctx.job.id))
    return new Build(ctx, collection, startedAt, { known, made })
  }

  /** Whether there is anything to swap in. */
  get isNew(): boolean {
    return this.#added > 0
  }

  /**
   * Whether a source is indexed with this digest (in hex) already, and then counts it.
   * @throws fail('rag.too_many_chunks').
   */
  has(source: string, digest: string): boolean {
    const isSame = (file: KnownFile | undefined): file is KnownFile =>
      file?.sha256 === digest && file.analysis === ANALYSIS
    const [known, made] = [this.known.get(source), this.#made.get(source)]
    if (isSame(known)) {
      this.#unchanged++
      this.#count(source, known.chunk_count)
      return true
    }
    if (!isSame(made)) return false
    this.#made.delete(source)
    this.#added++
    this.#count(source, made.chunk_count)
    return true
  }

  /** Adds one to the build, with others. @throws fail('rag.too_many_chunks'). */
  async add(file: NewFile): Promise<void> {
    // Storing it replaces that.
    this.#made.delete(file.source)
    this.#added++
    this.#count(file.source, file.chunks.length)
    this.#waiting.push(file)
    this.#waitingChunks += file.chunks.length
    if (this.#waitingChunks >= CHUNKS_AT_ONCE) await this.#store()
  }

  /** Notes why something that was requested will not be in the collection. */
  skip(...skipped: readonly Skipped[]): void {
    this.#skipped.push(...skipped)
  }

  /**
   * Makes the vectors and swaps the build in.
   * @param gone what leaves the collection.
   * @param request what the run was requested with.
   * @throws fail('rag.deleted') when the collection was deleted meanwhile.
   */
  async finish(gone: readonly number[], request: object): Promise<IndexResult> {
    await this.#store()
    await this.#dropStale()
    const ctx = this.#ctx
    const swap = { collection: this.#collection.id, build: ctx.job.id, gone }
    const model = await embedBuild(ctx, swap)
    ctx.progress('Swapping the index', this.present.size, this.present.size)
    ctx.signal.throwIfAborted()
    const [swapped] = await ctx.fenced((tx) => tx.any(swapBuild({ ...swap, request, model })))
    if (swapped === undefined) throw fail('rag.deleted')
    await giveBack(ctx, this.#added + gone.length)
    return {
      collection_name: this.#collection.name,
      documents_added: this.#added,
      total_documents: swapped.document_count,
      duration_ms: Math.round(performance.now() - this.#startedAt),
      documents_unchanged: this.#unchanged,
      documents_removed: gone.length,
      total_chunks: swapped.chunk_count,
      embedding_model: model,
      skipped: this.#skipped.slice(0, MAX_REPORTED),
      skipped_total: this.#skipped.length,
    }
  }

  /** What an earlier attempt has stored of files that are gone since, or are again as they are indexed. */
  async #dropStale(): Promise<void> {
    const ctx = this.#ctx
    const stale = [...this.#made.values()].map(({ id }) => id)
    if (stale.length > 0) await ctx.fenced((tx) => tx.run(dropMade(ctx.job.id, stale)))
  }

  #count(source: string, chunks: number): void {
    this.present.add(source)
    this.#chunks += chunks
    if (this.#chunks > MAX_CHUNKS) throw fail('rag.too_many_chunks', { max: MAX_CHUNKS })
  }

  async #store(): Promise<void> {
    const batch = this.#waiting
    this.#waiting = []
    this.#waitingChunks = 0
    const ctx = this.#ctx
    if (batch.length > 0) await ctx.fenced((tx) => addFiles(tx, this.#collection.id, ctx.job.id, batch))
  }
}

const bySource = (files: readonly KnownFile[]): Map<string, KnownFile> =>
  new Map(files.map((file) => [file.source, file]))

/** Makes the space of deleted rows available for new ones. If this fails, autovacuum does it later. */
async function giveBack({ db, log }: TaskContext, changed: number): Promise<void> {
  if (changed === 0) return
  try {
    for (const vacuum of VACUUMS) await db.run(vacuum)
  } catch (error) {
    log.warn({ error: String(error) }, 'The space of an old index was not reclaimed')
  }
}
