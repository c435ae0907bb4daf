import { fail } from '../../sql/errors.ts'
import {
  addFiles,
  deleteBuildFiles,
  deleteOtherBuilds,
  type KnownFile,
  listKnownFiles,
  type NewFile,
  openFreeNumbers,
  swapBuild,
  VACUUM_STATEMENTS,
} from '../../sql/rag/collections.ts'
import type { Metadata } from '../../sql/rag/documents.ts'
import type { TaskContext } from '../context.ts'
import { ANALYSIS_VERSION } from './analyze.ts'
import { embedBuild } from './embed-build.ts'
import type { IndexResult } from './index-result.ts'
import type { SkippedSource } from './walk.ts'

/** Builds a collection. A run stores new rows next to the live ones, then replaces the live ones in one swap. */

/** Limits the time of a swap and of a search. */
const MAX_CHUNKS = 500_000
// Batch size: large enough to amortize a transaction, small enough to hold in memory.
const CHUNKS_PER_WRITE = 500
const MAX_REPORTED_SKIPS = 100

/** A collection that a job indexes. */
export interface IndexedCollection {
  readonly id: number
  readonly name: string
}

/** Collects the new rows of a job, and compares its sources with the live files. */
export class Build {
  /** The live files of the collection, by source. */
  readonly liveFiles: ReadonlyMap<string, KnownFile>
  /** Sources that the collection will have after the swap. */
  readonly presentSources = new Set<string>()
  readonly #ctx: TaskContext
  readonly #collection: IndexedCollection
  readonly #startedAt: number
  /** Files that an earlier attempt stored and this one has not processed yet, by source. */
  readonly #leftover: Map<string, KnownFile>
  /** Numbers for new chunks. */
  readonly #numbers: Iterator<number, never>
  readonly #skipped: SkippedSource[] = []
  /** The ids of live files that stay, by their metadata as JSON. */
  readonly #metadata = new Map<string, number[]>()
  #pending: NewFile[] = []
  #pendingChunks = 0
  #added = 0
  #unchanged = 0
  #chunks = 0

  private constructor(
    ctx: TaskContext,
    collection: IndexedCollection,
    startedAt: number,
    rows: { known: readonly KnownFile[]; leftover: readonly KnownFile[]; numbers: Iterator<number, never> },
  ) {
    this.#ctx = ctx
    this.#collection = collection
    this.#startedAt = startedAt
    this.liveFiles = indexBySource(rows.known)
    this.#leftover = indexBySource(rows.leftover)
    this.#numbers = rows.numbers
  }

  /** Starts a build, or continues the build of an earlier attempt of the job. */
  static async open(
    ctx: TaskContext,
    collection: IndexedCollection,
    startedAt: number = performance.now(),
  ): Promise<Build> {
    await ctx.runFenced((tx) => tx.run(deleteOtherBuilds(collection.id, ctx.job.id)))
    const known = await ctx.db.any(listKnownFiles(collection.id, null))
    const leftover = await ctx.db.any(listKnownFiles(collection.id, ctx.job.id))
    const numbers = await openFreeNumbers(ctx.db, collection.id)
    return new Build(ctx, collection, startedAt, { known, leftover, numbers })
  }

  /** True if the build has files to swap in. */
  get hasFiles(): boolean {
    return this.#added > 0
  }

  /**
   * Keeps a source that is already indexed with this digest (hex); the swap sets its metadata. Returns false if the source
   * is new or has changed.
   *
   * @throws fail('rag.too_many_chunks').
   */
  reuseSource(source: string, digest: string, metadata: Metadata): boolean {
    const isSame = (file: KnownFile | undefined): file is KnownFile =>
      file?.sha256 === digest && file.analysis === ANALYSIS_VERSION
    const [known, leftover] = [this.liveFiles.get(source), this.#leftover.get(source)]
    if (isSame(known)) {
      this.#unchanged++
      const json = JSON.stringify(metadata)
      const files = this.#metadata.get(json)
      if (files === undefined) this.#metadata.set(json, [known.id])
      else files.push(known.id)
      this.#count(source, known.chunk_count)
      return true
    }
    if (!isSame(leftover)) return false
    this.#leftover.delete(source)
    this.#added++
    this.#count(source, leftover.chunk_count)
    return true
  }

  /** Adds a file to the build; writes files in batches. @throws fail('rag.too_many_chunks'). */
  async add(file: NewFile): Promise<void> {
    // The insert replaces the leftover row.
    this.#leftover.delete(file.source)
    this.#added++
    this.#count(file.source, file.chunks.length)
    this.#pending.push(file)
    this.#pendingChunks += file.chunks.length
    if (this.#pendingChunks >= CHUNKS_PER_WRITE) await this.#store()
  }

  /** Records requested sources that the collection will not contain, with the reasons. */
  recordSkipped(...skipped: readonly SkippedSource[]): void {
    this.#skipped.push(...skipped)
  }

  /**
   * Embeds the new chunks and swaps the build in. Throws fail('rag.deleted') if the collection was deleted meanwhile.
   *
   * @param goneFiles ids of live files to remove
   * @param request parameters of the run, to store
   */
  async finish(goneFiles: readonly number[], request: object): Promise<IndexResult> {
    await this.#store()
    await this.#dropStale()
    const ctx = this.#ctx
    const swap = { collection: this.#collection.id, build: ctx.job.id, goneFiles, metadata: this.#metadata }
    const model = await embedBuild(ctx, swap)
    ctx.reportProgress('Swapping the index', this.presentSources.size, this.presentSources.size)
    ctx.signal.throwIfAborted()
    const swapped = await ctx.runFenced((tx) => swapBuild(tx, { ...swap, request, model }))
    if (swapped === null) throw fail('rag.deleted')
    await reclaimSpace(ctx, this.#added + goneFiles.length)
    return {
      collection_name: this.#collection.name,
      documents_added: this.#added,
      total_documents: swapped.document_count,
      duration_ms: Math.round(performance.now() - this.#startedAt),
      documents_unchanged: this.#unchanged,
      documents_removed: goneFiles.length,
      total_chunks: swapped.chunk_count,
      embedding_model: model,
      skipped: this.#skipped.slice(0, MAX_REPORTED_SKIPS),
      skipped_total: this.#skipped.length,
    }
  }

  /**
   * Deletes files that an earlier attempt stored and this one does not need: their sources have disappeared or match
   * the live files again.
   */
  async #dropStale(): Promise<void> {
    const ctx = this.#ctx
    const stale = [...this.#leftover.values()].map(({ id }) => id)
    if (stale.length > 0) await ctx.runFenced((tx) => tx.run(deleteBuildFiles(ctx.job.id, stale)))
  }

  #count(source: string, chunks: number): void {
    this.presentSources.add(source)
    this.#chunks += chunks
    if (this.#chunks > MAX_CHUNKS) throw fail('rag.too_many_chunks', { max: MAX_CHUNKS })
  }

  async #store(): Promise<void> {
    const batch = this.#pending
    this.#pending = []
    this.#pendingChunks = 0
    const ctx = this.#ctx
    if (batch.length > 0)
      await ctx.runFenced((tx) => addFiles(tx, this.#collection.id, ctx.job.id, batch, this.#numbers))
  }
}

const indexBySource = (files: readonly KnownFile[]): Map<string, KnownFile> =>
  new Map(files.map((file) => [file.source, file]))

/** Makes the space of deleted rows reusable. If this fails, autovacuum does it later. */
async function reclaimSpace({ db, log }: TaskContext, changed: number): Promise<void> {
  if (changed === 0) return
  try {
    for (const vacuum of VACUUM_STATEMENTS) await db.run(vacuum)
  } catch (error) {
    log.warn({ error: String(error) }, 'Vacuum after indexing failed')
  }
}
