import type { UploadFormat } from '../../sql/blog/transfer.ts'
import type { NewChunk } from '../../sql/rag/collections.ts'
import type { ItemResult } from '../../tasks/blog/items.ts'
import type { AttachmentInfo, PageResult, PlacedWord } from '../../tasks/context.ts'
import type { AnalysisOptions } from '../../tasks/rag/analyze.ts'

/** Reader of pages without a text layer: none, OCR in the child, or a model that the caller asks. */
export type OcrMode = 'none' | 'local' | 'model'

export interface OpenOptions {
  /** Password of an encrypted document; null if there is none. */
  readonly password?: string | null
  readonly ocrMode: OcrMode
  /** OCR languages, e.g. `deu+fra`; default English. */
  readonly languages?: string | undefined
  /** False to ignore pictures on pages with text, and in office files. */
  readonly withPictures?: boolean
  /** The encoding of a text file that the caller names; null if the bytes must tell it. */
  readonly encoding?: string | null
  /** The name of the file, for the reason why it is unread. */
  readonly fileName?: string | undefined
  /** True to avoid PDFium, after it has crashed on the document. */
  readonly withoutPdfium?: boolean
  /** The child does not open a document that claims more pages. */
  readonly maxPages?: number
}

/** A page that a child has read. */
export interface ReadPage extends PageResult {
  /** True if the caller must ask a model for the text of the image. */
  readonly forModel?: boolean
}

/** Requests and answers of children, by kind. All values are structured-cloneable. */
export interface Work {
  /** A piece of the file for the next request. */
  readonly bytes: { readonly request: Uint8Array; readonly answer: null }
  readonly 'document.open': {
    /** Requires every option, so that no limit is forgotten. */
    readonly request: Required<OpenOptions> & { readonly mediaType: string }
    readonly answer: {
      readonly pageCount: number
      readonly unpackedBytes: number
      readonly cpuMs: number
      readonly isLocked: boolean
      readonly encoding: string | null
      readonly attachments: readonly AttachmentInfo[]
    }
  }
  /**
   * Reads a single page in any case. In a batch, reads only the leading pages that take milliseconds, for about 50 ms.
   */
  readonly 'document.read': {
    readonly request: readonly number[]
    readonly answer: { readonly pages: readonly ReadPage[]; readonly cpuMs: number }
  }
  /** Reads a piece of an attachment from byte `at`; the answer is empty at its end. */
  readonly 'document.attachment': {
    readonly request: { readonly index: number; readonly at: number }
    readonly answer: Uint8Array
  }
  readonly 'document.draw': {
    readonly request: number
    readonly answer: { readonly png: Uint8Array; readonly width: number; readonly height: number } | null
  }
  /** Finds the words of a page's text layer. */
  readonly 'document.words': {
    readonly request: number
    readonly answer: readonly PlacedWord[]
  }
  /** Opens a file of posts. The answer lists the file name of each post. */
  readonly 'posts.open': {
    readonly request: {
      readonly fileName: string
      readonly format: UploadFormat
      /** CPU time limit for all posts together, in ms. */
      readonly cpuMs: number
    }
    readonly answer: readonly string[]
  }
  /** Reads posts from index `from`, as many as fit into half a second. */
  readonly 'posts.read': {
    readonly request: { readonly from: number; readonly to: number }
    readonly answer: readonly ItemResult[]
  }
  /** Splits a file; answers the number of chunks, or the reason for having none. */
  readonly 'chunks.open': {
    readonly request: AnalysisOptions
    readonly answer: { readonly count: number } | { readonly reason: string }
  }
  /** Reads a batch of chunks from an index. */
  readonly 'chunks.read': { readonly request: number; readonly answer: readonly NewChunk[] }
  /**
   * Cuts a piece that starts at `from`, in seconds, and ends at a pause before both limits. The answer has the start and
   * end of the piece, or the reason why the recording cannot be cut.
   */
  readonly 'audio.cut': {
    readonly request: { readonly from: number; readonly maxBytes: number; readonly maxSeconds: number }
    readonly answer:
      | {
          readonly start: number
          readonly end: number
          readonly totalSeconds: number
          readonly isLast: boolean
          readonly mediaType: string
          readonly byteSize: number
        }
      | { readonly reason: string }
  }
  /** Reads a part of the piece from a byte; the answer is empty at its end. */
  readonly 'audio.read': { readonly request: number; readonly answer: Uint8Array }
  /** Clears all state of earlier work. */
  readonly reset: { readonly request: null; readonly answer: null }
}

// Messages are serialized synchronously: a large one would block the parent, too.
const PIECE_BYTES = 2 ** 20

/** Copies a piece of a file: sending a view would clone the whole file, and `Buffer.slice` returns a view. */
export const copyPiece = (bytes: Uint8Array, at: number): Uint8Array =>
  Uint8Array.prototype.slice.call(bytes, at, at + PIECE_BYTES)

interface RequestSender {
  ask(kind: 'bytes', request: Uint8Array, limits: typeof PIECE_LIMITS): Promise<null>
}

const PIECE_LIMITS = { cpuMs: 5000, wallMs: 60_000 }

/** Sends a file to a child in pieces, for the next request. */
export async function sendBytes(child: RequestSender, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    await child.ask('bytes', copyPiece(bytes, at), PIECE_LIMITS)
}
