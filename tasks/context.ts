import type { UploadFormat } from '../sql/blog/transfer.ts'
import type { Database, Queries } from '../sql/db.ts'
import type { ChatModels } from './ai/ports.ts'
import type { ReadItem } from './blog/items.ts'
import type { Comms } from './comms/ports.ts'
import type { Blobs } from './documents/blobs.ts'
import type { PaymentProvider } from './payments/provider.ts'
import type { Analyzable, Analyzed } from './rag/analyze.ts'
import type { Retrieval } from './rag/retrieval.ts'
import type { Settings } from './settings.ts'
import type { Speaker, Transcriber } from './voice/ports.ts'
import type { PostWebhook } from './webhooks/ports.ts'

/** What a running task is given: everything it may touch comes through here. */
export interface TaskContext {
  readonly job: {
    readonly id: string
    /** Fences every write: once a later attempt has begun, this one's writes are refused. */
    readonly attempt: number
    readonly ownerId: number | null
    readonly requestId: string | null
  }
  readonly db: Database
  readonly settings: Settings
  /** The deployment's key, from which mailed tokens are derived. */
  readonly secretKey: string
  readonly providers: Providers
  /** The bytes of documents. */
  readonly blobs: Blobs
  /** Retries failed jobs of any owner; the ids of the jobs that do the work, as far as this version can run them. */
  retryJobs(ids: readonly string[]): Promise<readonly string[]>
  readonly log: TaskLog
  /** Aborted on cancel, take-over, time-out and shutdown. A task that ignores it is killed with its thread. */
  readonly signal: AbortSignal
  /** Updates the job's label and progress; streams show it within milliseconds. */
  progress(label: string, current?: number, total?: number): void
  /** Adds an event of another kind to the job's stream. */
  emit(kind: string, data: unknown): void
  /**
   * A transaction that commits only while this attempt is the running one.
   * @throws fail('job.superseded') when another worker has taken the job over.
   */
  fenced<T>(work: (tx: Queries) => Promise<T>): Promise<T>
}

export interface TaskLog {
  info(data: object, message: string): void
  warn(data: object, message: string): void
  error(data: object, message: string): void
}

/** External services and child processes as tasks see them. `workers/providers` implements them. */
export interface Providers {
  /**
   * Opens a document for reading page by page; invalid bytes give a reader with one unread page. Bytes are loaded on
   * demand and not kept: of many open documents, only those being read take memory.
   */
  openPages(load: () => Promise<Uint8Array>, options: OpenPages): Promise<PageReader>
  /** Draws one page of a document; null when there is nothing to draw or drawing fails. */
  drawPage(
    bytes: Uint8Array,
    pageNumber: number,
    options: OpenPages,
  ): Promise<{ readonly png: Uint8Array; readonly width: number; readonly height: number } | null>
  /**
   * Opens a file of posts.
   * @throws fail('import.refused'), fail('import.encoding'), fail('import.too_complex').
   */
  readPosts(
    fileName: string,
    format: UploadFormat,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<PostReader>
  /** Cuts a file into chunks for retrieval, or says why there are none. */
  analyze(bytes: Uint8Array, file: Analyzable, signal: AbortSignal): Promise<Analyzed>
  /** Messages, each sent once. */
  readonly comms: Comms
  readonly payments: PaymentProvider
  readonly chat: ChatModels
  readonly speech: Speaker
  readonly transcription: Transcriber
  /** Collections of chunks, see `rag`. */
  readonly retrieval: Pick<Retrieval, 'modelOf' | 'search'>
  /** Embeds texts with the configured model, or says why it is unavailable. @throws fail('rag.embedding_failed'). */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Embedded>
  readonly postWebhook: PostWebhook
  /** Reads the list of models at a URL. @throws fail('llm.list_failed'), fail('llm.list_refused') */
  readModelList(url: string, signal: AbortSignal): Promise<string>
}

/** Vectors of length 1, one per text, or why there are none. */
export type Embedded =
  | { readonly model: string; readonly dimensions: number; readonly vectors: readonly Float32Array[] }
  | { readonly model: null; readonly reason: string }

/** The result of reading one page. */
export interface PageResult {
  readonly status: 'read' | 'unread'
  /** Where the text comes from; `vision` also for a blank page, which is not sent to a model. */
  readonly method: 'text_layer' | 'vision' | 'none'
  /** The model that read the page, e.g. `tesseract/eng`; null when none did. */
  readonly model: string | null
  /** Why the page is unread, or what was left out of a very long one: a plain sentence. */
  readonly detail: string | null
  /** At most two million characters, without NUL and lone surrogates. */
  readonly text: string
  /**
   * At 150 dpi, less for very large pages; null when there is nothing to draw. `png` is null when the image is drawn on
   * demand.
   */
  readonly image: {
    readonly png: Uint8Array | null
    readonly width: number
    readonly height: number
  } | null
  /** Reading it crashed or exceeded a budget: it is not read again unless forced. */
  readonly givenUp?: boolean
}

/** A file that came with a document. */
export interface AttachmentInfo {
  readonly name: string
  /** What the document says that it is. */
  readonly mediaType: string
}

/** How to open a document. */
export interface OpenPages {
  readonly mediaType: string
  /** What it may be encrypted with. */
  readonly password?: string | null
  /** The languages of words in pictures, e.g. `deu+fra`, if they are not those of the settings. */
  readonly languages?: string | undefined
  readonly signal: AbortSignal
}

/** An open document. Pages count from 1, other numbers are a RangeError; several may be read at once. */
export interface PageReader {
  readonly pageCount: number
  /** The size of the file, or of what is packed in it, in bytes. */
  readonly unpackedBytes: number
  /** CPU time that opening and reading it has taken so far, in ms. */
  readonly cpuMs: number
  /** Whether it is encrypted and no password opened it; it has one unread page then. */
  readonly isLocked: boolean
  /** What came with a mail. */
  readonly attachments: readonly AttachmentInfo[]
  /** Whether the last page took milliseconds, as one with a text layer does: then many are worth asking for together. */
  readonly isFast: boolean
  read(pageNumber: number): Promise<PageResult>
  /** The bytes of an attachment, piece by piece, by its place among them. */
  attachment(index: number): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

/** An open file of posts. */
export interface PostReader {
  readonly count: number
  /** Every post, once and in order, with the file that contains it. */
  read(): AsyncGenerator<{ readonly file: string; readonly read: ReadItem }, void>
  close(): void
}
