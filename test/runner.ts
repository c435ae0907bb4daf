import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, mock, suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { profileFile } from './profile.ts'
import { IS_LONG } from './runs.ts'
import { stopFileServices, stopSharedServices } from './services.ts'

/**
 * Runs test files one after another, each as its own suite. One process runs many files, so that shared imports load
 * once. Each process of `run.ts` takes the next file that no other one has claimed in `folder`.
 */
export async function runFiles(files: readonly string[], folder: string): Promise<void> {
  // A test that waits forever leaves the event loop empty, and node:test would then cancel all files. This timer keeps
  // the loop busy until the file's time limit ends the test.
  const busy = setInterval(() => {}, FILE_TIMEOUT_MS)
  for (const [n, file] of files.entries()) {
    if (!claimFile(join(folder, 'claims', String(n)))) continue
    process.env.TEST_FILE = String(n)
    const endProfile = process.env.TEST_PROFILE === '1' ? profileFile(join(folder, 'profile'), n, file) : null
    await suite(file, IS_LONG ? {} : { timeout: FILE_TIMEOUT_MS }, async () => {
      // Registered first, so that it runs before the file's own hooks.
      after(stopFileServices)
      after(() => mock.reset())
      await import(pathToFileURL(file).href)
    })
    endProfile?.()
  }
  try {
    await stopSharedServices()
  } finally {
    clearInterval(busy)
  }
}

// Time limit of a file in ms. The slowest files take minutes on a busy machine.
const FILE_TIMEOUT_MS = 600_000

/** Returns true if it could claim a file for this process by creating `file`; false if another process has it. */
function claimFile(file: string): boolean {
  try {
    writeFileSync(file, '', { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
