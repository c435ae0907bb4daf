import type { UploadFormat } from '../sql/blog/transfer.ts'
import type { Database, Queries } from '../sql/db.ts'
import type { ChatModels } from './ai/ports.ts'
import type { ReadItem } from './blog/items.ts'
import type { Comms, EmailMessage } from './comms/ports.ts'
import type { Blobs } from './documents/blobs.ts'
import type { PaymentProvider } from './payments/provider.ts'
import type { Analyzable, Analyzed } from './rag/analyze.ts'
import type { Retrieval } from './rag/retrieval.ts'
import type { Settings } from './settings.ts'
import type { Speaker } from './voice/ports.ts'

/** What a running task is given: everything it may touch comes through here. */
export interface TaskContext {
  readonly job: {
    readonly id: string
    /** Fences every write: a later attempt makes this one's writes void. */
    readonly attempt: number
    readonly ownerId: number | null
    readonly requestId: string | null
  }
  readonly db: Database
  readonly settings: Settings
  /** The deployment's key, which mailed tokens are derived from. */
  readonly secretKey: string
  readonly providers: Providers
  /** The bytes of documents. */
  readonly blobs: Blobs
  readonly log: TaskLog
  /** Aborted on cancel, take-over, time-out and shutdown. A task that ignores it is killed with its thread. */
  readonly signal: AbortSignal
  /** Moves the job's label and progress; streams show it within milliseconds. */
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

/** The outside, as tasks see it. `workers/providers` has the real ones. */
export interface Providers {
  /**
   * Opens a document for reading page by page; bad bytes are a reader with one unread page. They are loaded when they are
   * needed, and not kept: of many documents that are open at once only those that are being read take memory.
   */
  openPages(load: () => Promise<Uint8Array>, mediaType: string, signal: AbortSignal): Promise<PageReader>
  /** Draws one page of a document; null when there is nothing to draw, or it can't be. */
  drawPage(
    bytes: Uint8Array,
    mediaType: string,
    pageNumber: number,
    signal: AbortSignal,
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
  /** Cuts a file into pieces that a search can answer with, or says why there are none. */
  analyze(bytes: Uint8Array, file: Analyzable, signal: AbortSignal): Promise<Analyzed>
  /**
   * Hands a mail to the server of the settings.
   * @throws fail('email.not_configured'), fail('email.refused') for good, fail('email.failed') for now.
   */
  sendEmail(message: EmailMessage, signal: AbortSignal): Promise<void>
  /** What is sent on behalf of callers, once each. */
  readonly comms: Comms
  readonly payments: PaymentProvider
  readonly chat: ChatModels
  readonly speech: Speaker
  /** Collections of chunks, see `rag`. */
  readonly retrieval: Pick<Retrieval, 'modelOf' | 'search'>
  /** What texts mean, by the model of the settings; where it can't be had, why. @throws fail('rag.embedding_failed'). */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Embedded>
  /** Reads the list of models at a URL. @throws fail('llm.list_failed'), fail('llm.list_refused') */
  readModelList(url: string, signal: AbortSignal): Promise<string>
}

/** Vectors of length 1, one per text, or why there are none. */
export type Embedded =
  | { readonly model: string; readonly dimensions: number; readonly vectors: readonly Float32Array[] }
  | { readonly model: null; readonly reason: string }

/** One page as it was read. */
export interface PageResult {
  readonly status: 'read' | 'unread'
  /** Where the text comes from; `vision` also for a blank page, which no model was shown. */
  readonly method: 'text_layer' | 'vision' | 'none'
  /** The model that read the page, e.g. `tesseract/eng`; null when none did. */
  readonly model: string | null
  /** Why the page is unread, or what was left out of a very long one: a plain sentence. */
  readonly detail: string | null
  /** At most two million characters, without NUL and lone surrogates. */
  readonly text: string
  /**
   * At 150 dpi, less for very large pages; null when there is nothing to draw. `png` is null where the picture is drawn
   * once somebody asks for it.
   */
  readonly image: {
    readonly png: Uint8Array | null
    readonly width: number
    readonly height: number
  } | null
  /** Reading it crashed or went over a budget: not to be tried again unless somebody insists. */
  readonly givenUp?: boolean
}

/** An open document. Pages count from 1, others are a RangeError; several may be asked for at once. */
export interface PageReader {
  readonly pageCount: number
  read(pageNumber: number): Promise<PageResult>
  close(): Promise<void>
}

/** An open file of posts. */
export interface PostReader {
  readonly count: number
  /** Every post, once and in order, with the file that it stands in. */
  read(): AsyncGenerator<{ readonly file: string; readonly read: ReadItem }, void>
  close(): void
}
