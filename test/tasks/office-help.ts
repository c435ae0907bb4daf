import assert from 'node:assert/strict'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { openPages } from '../../workers/children/documents/pages.ts'

/** Reads office files in tests, as the extraction of an upload does. */

/** Reads all pages of a file. */
export async function readPages(
  bytes: Uint8Array | string,
  fileName: string,
  password: string | null = null,
) {
  const all = new Uint8Array(Buffer.from(bytes as string))
  const type = await sniffMediaType(all.subarray(0, 65_536), { fileName })
  const reader = await openPages(all, type, { ocrMode: 'none', password })
  const pages = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  return { type, pages, isLocked: reader.isLocked }
}

/** Reads the texts of all pages. Fails if a page is unread. */
export async function read(bytes: Uint8Array | string, fileName: string): Promise<string[]> {
  const { pages } = await readPages(bytes, fileName)
  for (const { status, detail } of pages) assert.equal(status, 'read', detail ?? '')
  return pages.map(({ text }) => text)
}
