import type { Database, Queries } from '../sql/db.ts'
import type { Settings } from './settings.ts'

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
  readonly providers: Providers
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
  /** Opens a document's bytes for reading page by page; bad bytes are a reader with one unread page. */
  openPages(bytes: Uint8Array, mediaType: string, signal: AbortSignal): Promise<PageReader>
}

export interface PageReader {
  readonly pageCount: number
  /** Reads one page, numbered from 1. */
  read(pageNumber: number): Promise<PageResult>
  close(): Promise<void>
}

export interface PageResult {
  readonly status: 'read' | 'unread'
  readonly method: 'text_layer' | 'vision' | 'none'
  /** What read it, such as `tesseract/eng`; null unless the method is `vision`. */
  readonly model: string | null
  /** Why the page is unread, in a plain sentence. */
  readonly detail: string | null
  readonly text: string
  /** The rendered page, PNG at 150 dpi. */
  readonly image: { readonly png: Uint8Array; readonly width: number; readonly height: number } | null
}
