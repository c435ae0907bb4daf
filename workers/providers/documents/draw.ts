/** Renders pages of documents in child processes. */
import { ChildLost, type Children } from '../../children/ports.ts'
import { sendBytes, type Work } from '../../children/work.ts'
import { DOCUMENT_LIMITS, type DocumentOptions } from './opened-children.ts'

/** Renders one page; null if the page has no image, or rendering fails. */
export async function drawPage(
  children: Children,
  bytes: Uint8Array,
  page: number,
  { mediaType, password = null, maxPages, signal, limits = DOCUMENT_LIMITS }: Omit<DocumentOptions, 'vision'>,
): Promise<Work['document.draw']['answer']> {
  const lease = await children.lease({ urgent: true, signal })
  try {
    await sendBytes(lease, bytes)
    // Only pdfjs draws stored images.
    const request: Work['document.open']['request'] = {
      mediaType,
      password,
      ocrMode: 'none',
      languages: undefined,
      withPictures: false,
      encoding: null,
      fileName: undefined,
      withoutPdfium: true,
      maxPages,
    }
    await lease.ask('document.open', request, limits)
    return await lease.ask('document.draw', page, limits)
  } catch (error) {
    if (error instanceof ChildLost) return null
    throw error
  } finally {
    lease.release()
  }
}
