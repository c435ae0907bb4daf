import type { UploadFormat } from '../sql/blog/transfer.ts'
import type { Database, Queries } from '../sql/db.ts'
import type { Dependency } from '../sql/jobs/jobs.ts'
import type { OpenIdProvider } from './accounts/oidc-ports.ts'
import type { ChatModels } from './ai/ports.ts'
import type { ItemResult } from './blog/items.ts'
import type { Comms } from './comms/ports.ts'
import type { Blobs } from './documents/blobs/blobs.ts'
import type { PaymentProvider } from './payments/provider.ts'
import type { SecretKeys } from './platform/keys.ts'
import type { Settings } from './platform/settings/settings.ts'
import type { AnalysisOptions, AnalysisResult } from './rag/analyze.ts'
import type { Retrieval } from './rag/retrieval.ts'
import type { RecordingCutter, Speaker, Transcriber } from './voice/ports.ts'
import type { PostWebhook } from './webhooks/ports.ts'

/** The context of a running task. Tasks access the outside world only through it. */
export interface TaskContext {
  readonly job: {
    readonly id: string
    readonly name: string
    /** Fences every write: once a later attempt has started, the database rejects this attempt's writes. */
    readonly attempt: number
    readonly ownerId: number | null
    readonly requestId: string | null
  }
  /** Reads the outcomes of the jobs on which this one depends, in the caller's order. */
  dependencies(): Promise<readonly Dependency[]>
  readonly db: Database
  readonly settings: Settings
  /** The deployment's keys. */
  readonly keys: SecretKeys
  readonly providers: Providers
  /** Stored bytes of documents and exports. */
  readonly blobs: Blobs
  /**
   * Retries failed jobs, of any owner or only those of this job's owner. Returns the ids of the new jobs, or of the jobs
   * that they joined. Skips jobs that this version cannot run.
   */
  retryJobs(ids: readonly string[], owners: 'any' | 'own'): Promise<readonly string[]>
  readonly log: TaskLog
  /** Aborted on cancellation, takeover, timeout and shutdown. If a task ignores it, its thread is killed. */
  readonly signal: AbortSignal
  /** Updates the job's label and progress; streams show it within milliseconds. */
  reportProgress(label: string, current?: number, total?: number): void
  /** Adds an event of a custom kind to the job's stream. */
  emit(kind: string, data: unknown): void
  /**
   * Runs a transaction that commits only while this attempt is the current one.
   * @throws fail('job.superseded') if another worker has taken over the job.
   */
  runFenced<T>(work: (tx: Queries) => Promise<T>): Promise<T>
}

export interface TaskLog {
  info(data: object, message: string): void
  warn(data: object, message: string): void
  error(data: object, message: string): void
}

/** A word on a page. The place and size are shares of the width and height of the page, from its left and top. */
export interface PlacedWord {
  readonly text: string
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Interface to external services and child processes, implemented by `workers/providers`. */
export interface Providers {
  /**
   * Opens a document for reading page by page. Invalid bytes result in a reader with one unread page. The reader loads
   * the bytes when it needs them and releases them afterwards, so only documents that are being read take memory.
   */
  openPages(load: () => Promise<Uint8Array>, options: OpenPagesOptions): Promise<PageReader>
  /** Renders one page of a document; null if there is nothing to render or rendering fails. */
  renderPage(
    bytes: Uint8Array,
    pageNumber: number,
    options: OpenPagesOptions,
  ): Promise<{ readonly png: Uint8Array; readonly width: number; readonly height: number } | null>
  /** Finds the words of a page's text layer; none if it has no text layer, or if reading fails. */
  placeWords(bytes: Uint8Array, pageNumber: number, options: OpenPagesOptions): Promise<readonly PlacedWord[]>
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
  /** Splits a file into chunks for retrieval, or returns the reason why there are none. */
  analyze(bytes: Uint8Array, file: AnalysisOptions, signal: AbortSignal): Promise<AnalysisResult>
  /** Sends email, text messages and calls. */
  readonly comms: Comms
  readonly payments: PaymentProvider
  readonly openId: OpenIdProvider
  readonly chat: ChatModels
  readonly speech: Speaker
  readonly transcription: Transcriber
  readonly cutter: RecordingCutter
  /** Searches collections of chunks; see `tasks/rag`. */
  readonly retrieval: Pick<Retrieval, 'modelOf' | 'search'>
  /**
   * Embeds texts with the configured model, or returns the reason why the model is unavailable.
   * @throws fail('rag.embedding_failed').
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Embedded>
  readonly postWebhook: PostWebhook
  /** Downloads the model list at a URL. @throws fail('llm.list_failed'), fail('llm.list_refused') */
  readModelList(url: string, signal: AbortSignal): Promise<string>
}

/** Unit vectors, one per text, or the reason why there are none. */
export type Embedded =
  | { readonly model: string; readonly dimensions: number; readonly vectors: readonly Float32Array[] }
  | { readonly model: null; readonly reason: string }

/** The result of reading one page. */
export interface PageResult {
  readonly status: 'read' | 'unread'
  /** The source of the text. `vision` includes blank pages, which are not sent to a model. */
  readonly method: 'text_layer' | 'vision' | 'none'
  /** The model that read the page, such as `tesseract/eng`; null if no model read it. */
  readonly model: string | null
  /** Reason why the page is unread, or a note about the omitted part of a very long page; otherwise null. */
  readonly detail: string | null
  /** At most two million characters, without NUL and lone surrogates. */
  readonly text: string
  /** The page as Markdown, with the same limit; null or absent if it has no headings, lists or tables. */
  readonly markdown?: string | null
  /** The words that OCR found, with their places on the image; absent if it did not read the page. */
  readonly words?: readonly PlacedWord[]
  /**
   * The page image at 150 dpi, or less for very large pages; null if there is nothing to render. `png` is null if the
   * image is rendered on demand.
   */
  readonly image: {
    readonly png: Uint8Array | null
    readonly width: number
    readonly height: number
  } | null
  /** True if reading the page crashed or exceeded a budget; it is not read again unless forced. */
  readonly isGivenUp?: boolean
  /** The text that the reader lost without an error; absent if it lost none. */
  readonly loss?: PageLoss
}

/** Counts of letters, for the log. */
export interface PageLoss {
  /** Media type of the document. */
  readonly kind: string
  readonly unit: string
  /** Letters that the file holds, counted without the reader. */
  readonly held: number
  readonly read: number
}

/** An attachment of a document. */
export interface AttachmentInfo {
  readonly name: string
  /** The media type that the document declares. */
  readonly mediaType: string
}

/** An attachment that cannot be unpacked within the limits. */
export class AttachmentUnreadable extends Error {
  override name = 'AttachmentUnreadable'
}

/** Options for opening a document. */
export interface OpenPagesOptions {
  readonly mediaType: string
  /** The password for an encrypted document; null or absent if there is none. */
  readonly password?: string | null
  /** OCR languages such as `deu+fra`; defaults to those of the settings. */
  readonly languages?: string | undefined
  /** The encoding of a text file that the caller names; null or absent if the bytes must tell it. */
  readonly encoding?: string | null
  /** The name of the file, for the reason why it is unread. */
  readonly fileName?: string
  readonly signal: AbortSignal
}

/**
 * An open document. Page numbers start at 1; other numbers throw a RangeError. Several pages may be read concurrently.
 */
export interface PageReader {
  readonly pageCount: number
  /** The size of the file, or of its unpacked contents, in bytes. */
  readonly unpackedBytes: number
  /** CPU time spent on opening and reading so far, in ms. */
  readonly cpuMs: number
  /** True if the document is encrypted and no password opened it. It then has one unread page. */
  readonly isLocked: boolean
  /** The encoding of a text file, as in a `charset` parameter; null for other documents. */
  readonly encoding: string | null
  /** Attachments of an email, or files that a PDF carries. */
  readonly attachments: readonly AttachmentInfo[]
  /**
   * True if the last page that was read had a text layer. Such pages take milliseconds, so callers then request many
   * together.
   */
  readonly isFast: boolean
  read(pageNumber: number): Promise<PageResult>
  /** Streams an attachment, by its index in `attachments`. Throws `AttachmentUnreadable`. */
  readAttachment(index: number): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

/** An open file of posts. */
export interface PostReader {
  readonly count: number
  /** Yields every post once and in order, with the name of its file. */
  read(): AsyncGenerator<{ readonly file: string; readonly read: ItemResult }, void>
  close(): void
}
