/** Renders pages of documents, and finds the words on them, in child processes. */
import type { PlacedWord } from '../../../tasks/context.ts'
import { ChildLost, type Children } from '../../children/ports.ts'
import { sendBytes, type Work } from '../../children/work.ts'
import { DOCUMENT_LIMITS, type DocumentOptions } from './opened-children.ts'

type Options = Omit<DocumentOptions, 'vision'>

/** Renders one page; null if the page has no image, or rendering fails. */
export const drawPage = (
  children: Children,
  bytes: Uint8Array,
  page: number,
  options: Options,
): Promise<Work['document.draw']['answer']> =>
  // Only pdfjs draws stored images.
  askAbout(children, bytes, options, { withoutPdfium: true }, 'document.draw', page)

/** Finds the words of one page; none if the page has no text layer, or reading fails. */
export const findWords = async (
  children: Children,
  bytes: Uint8Array,
  page: number,
  options: Options,
): Promise<readonly PlacedWord[]> =>
  (await askAbout(children, bytes, options, { withoutPdfium: false }, 'document.words', page)) ?? []

/** Asks about one page of a document; null if its process crashes. */
async function askAbout<K extends 'document.draw' | 'document.words'>(
  children: Children,
  bytes: Uint8Array,
  { mediaType, password = null, maxPages, signal, limits = DOCUMENT_LIMITS }: Options,
  { withoutPdfium }: { readonly withoutPdfium: boolean },
  kind: K,
  page: number,
): Promise<Work[K]['answer'] | null> {
  const lease = await children.lease({ urgent: true, signal })
  try {
    await sendBytes(lease, bytes)
    const request: Work['document.open']['request'] = {
      mediaType,
      password,
      ocrMode: 'none',
      languages: undefined,
      withPictures: false,
      encoding: null,
      fileName: undefined,
      withoutPdfium,
      maxPages,
    }
    await lease.ask('document.open', request, limits)
    return await lease.ask(kind, page, limits)
  } catch (error) {
    if (error instanceof ChildLost) return null
    throw error
  } finally {
    lease.release()
  }
}
