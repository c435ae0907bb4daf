import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, mock, suite } from 'node:test'
import { pathToFileURL } from 'node:url'
import { profileFile } from './profile.ts'
import { LONG } from './runs.ts'
import { endServices, endShared } from './services.ts'

/**
 * Runs test files one after the other in this process, each as a suite of its own, so that what they import is loaded once. It
 * takes the next file that no other process has claimed in `folder`. `run.ts` starts a few.
 */
export async function runFiles(files: readonly string[], folder: string): Promise<void> {
  // A test that waits for what never comes leaves the event loop empty: node:test would give up all files, and go on with them
  // half. So it is ended by the time limit of its file.
  const busy = setInterval(() => {}, FILE_MS)
  for (const [n, file] of files.entries()) {
    if (!claim(join(folder, 'claims', String(n)))) continue
    process.env.TEST_FILE = String(n)
    const endProfile = process.env.TEST_PROFILE === '1' ? profileFile(join(folder, 'profile'), n, file) : null
    await suite(file, LONG ? {} : { timeout: FILE_MS }, async () => {
      // Before the file's own hooks.
      after(endServices)
      after(() => mock.reset())
      await import(pathToFileURL(file).href)
    })
    endProfile?.()
  }
  await endShared()
  clearInterval(busy)
}

// For a file that hangs: on a busy machine the longest take minutes.
const FILE_MS = 600_000

/** Makes the file, of which there can be one; false when another process has. */
function claim(file: string): boolean {
  try {
    writeFileSync(file, '', { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
