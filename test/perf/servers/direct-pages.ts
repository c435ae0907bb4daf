import { readFileSync } from 'node:fs'
import { closeVision, openPages } from '../../../workers/providers/pages.ts'

/** The reference for extraction: the pages of a file read one after the other, in one thread and without a service. */

process.on('message', (file: string) => void readAll(file).then((answer) => process.send!(answer)))
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => void closeVision().then(() => process.exit()))
process.send!({})

async function readAll(file: string): Promise<{ ms: number; read: number }> {
  const startedAt = performance.now()
  const reader = await openPages(new Uint8Array(readFileSync(file)), 'application/pdf', {
    vision: 'tesseract',
  })
  let read = 0
  for (let page = 1; page <= reader.pageCount; page++) {
    if ((await reader.read(page)).status === 'read') read++
  }
  await reader.close()
  return { ms: performance.now() - startedAt, read }
}
