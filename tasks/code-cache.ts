import { hash, randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir, registerHooks, stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Caches on disk what every start would compute again: V8's code of modules, which Node caches itself, and our files
 * without their types, which it doesn't: stripping the 250 files of an edge takes 0.3 s of CPU, in a thread as in a
 * process.
 *
 * Cached code is executed, so nothing is cached unless the folder is writable by nobody else: by default one of our own
 * below the system's temporary folder, since anybody could create Node's default there beforehand; with
 * `NODE_COMPILE_CACHE`, the folder that it names.
 */

const ROOT = new URL('../', import.meta.url).href
// SHA-256 in hexadecimal digits.
const DIGEST = 64
// zod exports its messages in 60 languages. English, which is all that we use, it imports by itself.
const TRANSLATIONS = '/node_modules/zod/v4/locales/index.js'

/** Caches the code that this thread loads from now on: for entry points, before they load the rest. */
export function keepCode(): void {
  const folder = codeFolder()
  if (folder === null || hasLoader()) return
  registerHooks({
    // Of our own files Node would ask again whether they exist, are links, and in which package they are.
    resolve: (specifier, context, next) => {
      const url =
        specifier.startsWith('.') && isOwn(context.parentURL ?? '')
          ? new URL(specifier, context.parentURL).href
          : ''
      return isOwn(url) ? { url, format: 'module', shortCircuit: true } : next(specifier, context)
    },
    load: (url, context, next) => {
      if (isOwn(url)) return { format: 'module', source: stripped(url, folder), shortCircuit: true }
      if (url.endsWith(TRANSLATIONS)) return { format: 'module', source: '', shortCircuit: true }
      return next(url, context)
    },
  })
}

/** Whether a loader was requested, which may transform our files itself. */
const hasLoader = (): boolean =>
  [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)].some((flag) =>
    /^(--import|--require|-r|--(experimental-)?loader)(=|$)/.test(flag),
  )

const isOwn = (url: string): boolean =>
  url.startsWith(ROOT) && url.endsWith('.ts') && !url.includes('/node_modules/', ROOT.length - 1)

/** The folder of stripped files, inside Node's cache; null when nothing is cached. */
function codeFolder(): string | null {
  if (getCompileCacheDir() === undefined) {
    const folder = privateFolder(userFolder('millrace-code'))
    if (folder === null) return null
    enableCompileCache(folder)
  }
  // Absent when Node can't write there, or `NODE_DISABLE_COMPILE_CACHE` says so.
  const beside = getCompileCacheDir()
  if (beside === undefined || !isOurs(beside) || !isOurs(dirname(beside))) return null
  return privateFolder(join(beside, 'stripped'))
}

/** The cache of child processes. It is separate: other processes must not execute what a hijacked child has written. */
export function childCodeFolder(): string | null {
  return privateFolder(userFolder('millrace-child-code'))
}

const userFolder = (name: string): string => join(tmpdir(), `${name}-${process.getuid?.() ?? 'all'}`)

/** Makes a folder that is closed to others; null when that fails or the existing one is not ours and closed. */
function privateFolder(folder: string): string | null {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    // Without a cache the start is slower, nothing more.
    return null
  }
  return isOurs(folder, 0o077) ? folder : null
}

/** Whether a folder is ours and grants none of these rights. On Windows users have separate temporary folders. */
function isOurs(folder: string, without = 0): boolean {
  const found = lstatSync(folder)
  if (process.getuid === undefined) return found.isDirectory()
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & without) === 0
}

/** A file of ours as JavaScript; types become spaces, so that all positions stay the same. */
function stripped(url: string, folder: string): string {
  const text = readFileSync(fileURLToPath(url), 'utf8')
  // By its path in the project: another version of it, in a folder of its own, strips what has changed.
  const file = join(folder, `${hash('sha256', url.slice(ROOT.length))}.js`)
  const kept = read(file)
  const source = kept.slice(DIGEST)
  if (kept !== '' && kept.slice(0, DIGEST) === digestOf(text, source)) return source
  const made = stripTypeScriptTypes(text)
  write(file, digestOf(text, made) + made)
  return made
}

/** Detects a changed file, another version of Node, and a cached text that a crash has damaged. */
const digestOf = (text: string, source: string): string =>
  hash('sha256', `${process.version}\0${text}\0${source}`)

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Missing or unreadable: it is made again.
    return ''
  }
}

function write(file: string, text: string): void {
  const temporary = `${file}.${randomUUID()}`
  try {
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, file)
  } catch {
    // With a full or read-only disk the next start is slower, nothing more.
    rmSync(temporary, { force: true })
  }
}
