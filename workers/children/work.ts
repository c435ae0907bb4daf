import type { UploadFormat } from '../../sql/blog/transfer.ts'
import type { NewChunk } from '../../sql/rag.ts'
import type { ReadItem } from '../../tasks/blog/items.ts'
import type { AttachmentInfo, PageResult } from '../../tasks/context.ts'
import type { Analyzable } from '../../tasks/rag/analyze.ts'

/** How pages without a text layer are read: not at all, by the engine in the child, or by a model that the caller asks. */
export type Sight = 'none' | 'local' | 'model'

/** How a document is to be opened in a child. */
export interface OpenOptions {
  /** Tried when the document is encrypted. */
  readonly password?: string | null
  readonly sight: Sight
  /** Those that the engine in the child reads, e.g. `deu+fra`; default English. */
  readonly languages?: string | undefined
  /** Does without PDFium, which has crashed over the document. */
  readonly withoutPdfium?: boolean
  /** A document that claims to have more is not opened. */
  readonly maxPages?: number
}

/** A page as a child has read it. */
export interface ReadPage extends PageResult {
  /** The caller has to ask a model for the words in the image. */
  readonly forModel?: boolean
}

/** The requests that children answer, by kind. Everything here can be cloned. */
export interface Work {
  /** A piece of the file that the next request is about. */
  readonly bytes: { readonly request: Uint8Array; readonly answer: null }
  readonly 'document.open': {
    /** With every option, so that no limit is forgotten. */
    readonly request: Required<OpenOptions> & { readonly mediaType: string }
    readonly answer: {
      readonly pageCount: number
      readonly unpackedBytes: number
      readonly cpuMs: number
      readonly isLocked: boolean
      readonly attachments: readonly AttachmentInfo[]
    }
  }
  /** A single page is always read; of several, as many of the first as can be read at once, within about 50 ms. */
  readonly 'document.read': {
    readonly request: readonly number[]
    readonly answer: { readonly pages: readonly ReadPage[]; readonly cpuMs: number }
  }
  /** A piece of an attachment, from a byte on; an empty one at its end. */
  readonly 'document.attachment': {
    readonly request: { readonly index: number; readonly at: number }
    readonly answer: Uint8Array
  }
  readonly 'document.draw': {
    readonly request: number
    readonly answer: { readonly png: Uint8Array; readonly width: number; readonly height: number } | null
  }
  /** Answers which files the posts are in. */
  readonly 'posts.open': {
    readonly request: {
      readonly fileName: string
      readonly format: UploadFormat
      /** CPU time that all of its posts together may take, in ms. */
      readonly cpuMs: number
    }
    readonly answer: readonly string[]
  }
  /** Posts from a number on, as many as are read in about half a second. */
  readonly 'posts.read': {
    readonly request: { readonly from: number; readonly to: number }
    readonly answer: readonly ReadItem[]
  }
  /** Cuts a file; answers how many pieces there are, or why there are none. */
  readonly 'chunks.open': {
    readonly request: Analyzable
    readonly answer: { readonly count: number } | { readonly reason: string }
  }
  /** Pieces from a number on, as many as are sent together. */
  readonly 'chunks.read': { readonly request: number; readonly answer: readonly NewChunk[] }
  /** Forgets all earlier work. */
  readonly reset: { readonly request: null; readonly answer: null }
}

// A message is serialized in one go, in the parent as well: a large one would block it.
const PIECE_BYTES = 2 ** 20

/** A copy of a piece of a file: a view would take the whole file along, and the `slice` of a Buffer returns one. */
export const pieceOf = (bytes: Uint8Array, at: number): Uint8Array =>
  Uint8Array.prototype.slice.call(bytes, at, at + PIECE_BYTES)

interface Asks {
  ask(kind: 'bytes', request: Uint8Array, limits: typeof BYTES): Promise<null>
}

const BYTES = { cpuMs: 5000, wallMs: 60_000 }

/** Sends a file to a child, for the next request. */
export async function sendBytes(child: Asks, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) await child.ask('bytes', pieceOf(bytes, at), BYTES)
}
