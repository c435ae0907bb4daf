/** Handles document requests inside a child process, which has one document open at a time. */

import { Unreadable } from '../images/images.ts'
import { copyPiece, type ReadPage, type Work } from '../work.ts'
import { type LocalReader, openPages } from './pages.ts'

// A batch of pages ends after this time, so that a slow page has nearly all of the call's time limit to itself.
const MAX_BATCH_MS = 50

let reader: LocalReader | null = null

export async function open(
  bytes: Uint8Array,
  { mediaType, ...options }: Work['document.open']['request'],
): Promise<Work['document.open']['answer']> {
  await close()
  const cpuMs = startCpuTimer()
  reader = await openPages(bytes, mediaType, options)
  const attachments = reader.attachments.map(({ name, mediaType: type }) => ({ name, mediaType: type }))
  const { pageCount, unpackedBytes, isLocked, encoding } = reader
  return { pageCount, unpackedBytes, cpuMs: cpuMs(), isLocked, encoding, attachments }
}

export async function read(pages: readonly number[]): Promise<Work['document.read']['answer']> {
  const cpuMs = startCpuTimer()
  return { pages: await readPages(pages), cpuMs: cpuMs() }
}

/** Returns a function that measures this process's CPU time since now, in ms. */
function startCpuTimer(): () => number {
  const from = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(from)
    return (user + system) / 1000
  }
}

async function readPages(pages: readonly number[]): Promise<readonly ReadPage[]> {
  if (pages.length === 1) return [await reader!.read(pages[0]!)]
  const until = performance.now() + MAX_BATCH_MS
  const done: ReadPage[] = []
  for (const number of pages) {
    const page = await reader!.readIfFast(number)
    if (page === null) break
    done.push(page)
    if (performance.now() > until) break
  }
  return done
}

export async function draw(page: number): Promise<Work['document.draw']['answer']> {
  try {
    return await reader!.draw(page)
  } catch (error) {
    if (error instanceof Unreadable) return null
    throw error
  }
}

export const words = (page: number): Promise<Work['document.words']['answer']> => reader!.words(page)

let attachment: { readonly index: number; readonly bytes: Uint8Array } | null = null

export async function copyAttachmentPiece({
  index,
  at,
}: Work['document.attachment']['request']): Promise<Uint8Array> {
  if (attachment?.index !== index) attachment = { index, bytes: await reader!.attachments[index]!.read() }
  return copyPiece(attachment.bytes, at)
}

export async function close(): Promise<void> {
  attachment = null
  await reader?.close()
  reader = null
}
