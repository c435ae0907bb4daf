import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

/** Runs the native programs that extraction is compared with, if installed: poppler's pdftotext and Tesseract. */

export interface RunResult {
  readonly output: string
  /** User and system CPU time of the program in ms. */
  readonly cpuMs: number
}

/** True if a program is installed. */
export function isInstalled(program: string): boolean {
  return spawnSync('bash', ['-c', 'command -v "$1"', 'bash', program]).status === 0
}

// Sends SIGTERM after 20 s and SIGKILL a second later, because the caller is blocked. Killing the shell instead would
// leave its child running.
const TIMEOUT_COMMAND = ['timeout', '-k', '1', '20']

/** Runs a program for at most 20 s; returns null if it fails. */
export function runProgram(program: string, args: readonly string[]): RunResult | null {
  const env = { ...process.env, OMP_THREAD_LIMIT: '1' }
  // The second line of `times` contains the times of the shell's children.
  const given = spawnSync(
    'bash',
    ['-c', '"$@" 2>/dev/null && times >&2', 'bash', ...TIMEOUT_COMMAND, program, ...args],
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

/** Unpacks the service's OCR language data for the native Tesseract, and returns the folder. */
export function unpackLanguageData(folder: string): string {
  const home = import.meta.resolve('@tesseract.js-data/eng/package.json')
  const packed = readFileSync(fileURLToPath(new URL('4.0.0_best_int/eng.traineddata.gz', home)))
  const target = join(folder, 'tessdata')
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, 'eng.traineddata'), gunzipSync(packed))
  return target
}
