import { hash, randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir, registerHooks, stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Keeps on disk what every start would compute anew: V8's code of modules, which Node keeps by itself, and our own files
 * without their types, which it doesn't: to strip the 250 of an edge takes 0.3 s of CPU, in a thread as in a process.
 *
 * What lies there is run. So it lies in a folder where nobody else can write, or nothing is kept: by default below the
 * system's folder for temporary files, where Node's own default could be made by anybody beforehand; with
 * `NODE_COMPILE_CACHE` where that says.
 */

const ROOT = new URL('../', import.meta.url).href
// SHA-256 in hexadecimal digits.
const DIGEST = 64

/** Keeps the code of what this thread loads from now on: for entry points, before they load the rest. */
export function keepCode(): void {
  const folder = codeFolder()
  if (folder === null || hasLoader()) return
  registerHooks({
    load: (url, context, next) =>
      isOwn(url)
        ? { format: 'module', source: stripped(url, folder), shortCircuit: true }
        : next(url, context),
  })
}

/** Whether somebody has asked for a loader, which has its own ways with our files. */
const hasLoader = (): boolean =>
  [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)].some((flag) =>
    /^(--import|--require|-r|--(experimental-)?loader)(=|$)/.test(flag),
  )

const isOwn = (url: string): boolean =>
  url.startsWith(ROOT) && url.endsWith('.ts') && !url.includes('/node_modules/', ROOT.length - 1)

/** Where stripped files are, beside Node's code; null where nothing is kept. */
function codeFolder(): string | null {
  if (getCompileCacheDir() === undefined) {
    const folder = privateFolder(join(tmpdir(), `millrace-code-${process.getuid?.() ?? 'all'}`))
    if (folder === null) return null
    enableCompileCache(folder)
  }
  // Absent when Node can't write there, or `NODE_DISABLE_COMPILE_CACHE` says so.
  const beside = getCompileCacheDir()
  if (beside === undefined || !isOurs(beside) || !isOurs(dirname(beside))) return null
  return privateFolder(join(beside, 'stripped'))
}

/** Makes a folder that is closed to others; null when it can't be made, or there is another by its name. */
function privateFolder(folder: string): string | null {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    // A system without room for it starts more slowly, and that is all.
    return null
  }
  return isOurs(folder, 0o077) ? folder : null
}

/** Whether it is a folder of ours, without these rights. On Windows each user has temporary files of his own. */
function isOurs(folder: string, without = 0): boolean {
  const found = lstatSync(folder)
  if (process.getuid === undefined) return found.isDirectory()
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & without) === 0
}

/** A file of ours as JavaScript; types become spaces, so that every place in it stays what it was. */
function stripped(url: string, folder: string): string {
  const text = readFileSync(fileURLToPath(url), 'utf8')
  const file = join(folder, `${hash('sha256', url)}.js`)
  const kept = read(file)
  const source = kept.slice(DIGEST)
  if (kept !== '' && kept.slice(0, DIGEST) === digestOf(text, source)) return source
  const made = stripTypeScriptTypes(text)
  write(file, digestOf(text, made) + made)
  return made
}

/** Tells another file, another version of Node, and a kept text that a crash has damaged. */
const digestOf = (text: string, source: string): string =>
  hash('sha256', `${process.version}\0${text}\0${source}`)

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not there yet, or not to be read: it is made again.
    return ''
  }
}

function write(file: string, text: string): void {
  const temporary = `${file}.${randomUUID()}`
  try {
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, file)
  } catch {
    // A full or read-only disk costs the next start its time, and this one nothing.
    rmSync(temporary, { force: true })
  }
}
