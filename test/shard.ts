import { after, mock, suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { LONG } from './runs.ts'
import { endServices } from './services.ts'

/**
 * Runs test files one after the other in one process, each as a suite of its own: what they import is loaded once.
 * `run.ts` writes an entry for each shard, which calls this.
 */
export async function runShard(files: readonly string[]): Promise<void> {
  for (const file of files)
    await suite(file, LONG ? {} : { timeout: FILE_MS }, async () => {
      // The first hook of the file: its services end before its database is dropped.
      after(endServices)
      after(() => mock.reset())
      await import(pathToFileURL(file).href)
    })
}

const FILE_MS = 120_000
