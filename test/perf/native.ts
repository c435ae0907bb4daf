import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

/** The programs that extraction is measured against, where they are installed: poppler's pdftotext and Tesseract. */

export interface Ran {
  readonly output: string
  /** User and system time of the program. */
  readonly cpuMs: number
}

/** Whether a program is on this machine. */
export function installed(program: string): boolean {
  return spawnSync('bash', ['-c', 'command -v "$1"', 'bash', program]).status === 0
}

// In seconds, and another one for those that do not listen; whoever asks does nothing else meanwhile. Killed by `timeout`:
// a shell that is killed leaves its child behind.
const LIMIT = ['timeout', '-k', '1', '20']

/** Runs a program to its end, at most 20 s; null when it fails. */
export function run(program: string, args: readonly string[]): Ran | null {
  const env = { ...process.env, OMP_THREAD_LIMIT: '1' }
  // The second line of `times` is about the children that the shell has waited for.
  const given = spawnSync(
    'bash',
    ['-c', '"$@" 2>/dev/null && times >&2', 'bash', ...LIMIT, program, ...args],
    {
      env,
      maxBuffer: 2 ** 30,
    },
  )
  if (given.status !== 0) return null
  const spent = given.stderr
    .toString()
    .trim()
    .split('\n')
    .at(-1)!
    .matchAll(/(\d+)m([\d.]+)s/g)
  const cpuMs = [...spent].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60_000 + Number(seconds) * 1000,
    0,
  )
  return { output: given.stdout.toString(), cpuMs }
}

/** Unpacks the language data of the service's own engine for the native one; answers the folder. */
export function languageData(folder: string): string {
  const home = import.meta.resolve('@tesseract.js-data/eng/package.json')
  const packed = readFileSync(fileURLToPath(new URL('4.0.0_best_int/eng.traineddata.gz', home)))
  const target = join(folder, 'tessdata')
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, 'eng.traineddata'), gunzipSync(packed))
  return target
}
