/** Reads documents and posts in a thread, to compare its cost with that of a child process. */
import { parentPort } from 'node:worker_threads'
import { listItems, readItem } from '../../../tasks/blog/items.ts'
import { closeVision, openPages } from '../../../workers/children/documents/pages.ts'

/** A request to the thread. The answer is the number of pages or posts read. */
export interface ThreadRequest {
  readonly what: 'document' | 'posts'
  readonly bytes: Uint8Array
}

async function readDocument(bytes: Uint8Array): Promise<number> {
  const reader = await openPages(bytes, 'application/pdf', { ocrMode: 'local' })
  for (let n = 1; n <= reader.pageCount; n++) if ((await reader.readIfFast(n)) === null) await reader.read(n)
  await reader.close()
  return reader.pageCount
}

async function readPosts(bytes: Uint8Array): Promise<number> {
  const items = await listItems('posts.zip', 'zip', Buffer.from(bytes))
  for (const item of items) await readItem(item)
  return items.length
}

parentPort!.on('message', ({ what, bytes }: ThreadRequest) => {
  void (what === 'document' ? readDocument(bytes) : readPosts(bytes)).then((count) =>
    parentPort!.postMessage(count),
  )
})
parentPort!.on('close', () => void closeVision())
