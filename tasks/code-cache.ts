import { hash, randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir, registerHooks, stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Caches on disk the results that every start would compute again. Node itself caches V8's bytecode of modules. It does
 * not cache our files without their types: stripping the 250 files of an edge takes 0.3 s of CPU per process or thread.
 *
 * The process executes cached code, so the cache folder must not be writable by other users. The default is a private
 * folder in the system's temporary folder, since any user could create Node's default folder there first.
 * `NODE_COMPILE_CACHE` names another folder.
 */

const ROOT = new URL('../', import.meta.url).href
// Hexadecimal digits of a SHA-256.
const DIGEST = 64
// zod exports its messages in 60 languages. It imports English, the only one in use, separately.
const ZOD_LOCALES = '/node_modules/zod/v4/locales/index.js'

/** Caches the code that this thread loads from now on. Entry points call it before they import anything else. */
export function enableCodeCache(): void {
  const folder = codeFolder()
  if (folder === null || hasLoader()) return
  registerHooks({
    // For each own file, Node would check that it exists, whether it is a link, and which package it is in.
    resolve: (specifier, context, next) => {
      const url =
        specifier.startsWith('.') && isOwn(context.parentURL ?? '')
          ? new URL(specifier, context.parentURL).href
          : ''
      return isOwn(url) ? { url, format: 'module', shortCircuit: true } : next(specifier, context)
    },
    load: (url, context, next) => {
      if (isOwn(url)) return { format: 'module', source: stripTypes(url, folder), shortCircuit: true }
      if (url.endsWith(ZOD_LOCALES)) return { format: 'module', source: '', shortCircuit: true }
      return next(url, context)
    },
  })
}

/** True if a loader was requested, which may transform our files itself. */
const hasLoader = (): boolean =>
  [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)].some((flag) =>
    /^(--import|--require|-r|--(experimental-)?loader)(=|$)/.test(flag),
  )

const isOwn = (url: string): boolean =>
  url.startsWith(ROOT) && url.endsWith('.ts') && !url.includes('/node_modules/', ROOT.length - 1)

/** The folder of stripped files, inside Node's cache; null if caching is disabled. */
function codeFolder(): string | null {
  if (getCompileCacheDir() === undefined) {
    const folder = createPrivateFolder(userFolder('millrace-code'))
    if (folder === null) return null
    enableCompileCache(folder)
  }
  // Undefined if Node can't write there or `NODE_DISABLE_COMPILE_CACHE` is set.
  const nodeCache = getCompileCacheDir()
  if (nodeCache === undefined || !isOurs(nodeCache) || !isOurs(dirname(nodeCache))) return null
  return createPrivateFolder(join(nodeCache, 'stripped'))
}

/**
 * The cache folder of child processes, separate so that no other process executes code that a hijacked child wrote.
 * Null if the folder is not private.
 */
export function childCacheFolder(): string | null {
  return createPrivateFolder(userFolder('millrace-child-code'))
}

const userFolder = (name: string): string => join(tmpdir(), `${name}-${process.getuid?.() ?? 'all'}`)

/** Creates a folder that only this user can access; null if creation fails or the existing folder is not private. */
function createPrivateFolder(folder: string): string | null {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    // Starts are slower without a cache; nothing else changes.
    return null
  }
  return isOurs(folder, 0o077) ? folder : null
}

/**
 * True if this user owns a folder and its mode has no bit of `without`. On Windows, users have separate temporary
 * folders.
 */
function isOurs(folder: string, without = 0): boolean {
  const found = lstatSync(folder)
  if (process.getuid === undefined) return found.isDirectory()
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & without) === 0
}

/** The JavaScript of one of our files. Spaces replace types, so all positions stay the same. */
function stripTypes(url: string, folder: string): string {
  const text = readFileSync(fileURLToPath(url), 'utf8')
  // Keyed by path within the project: another version in another folder strips only the files that differ.
  const file = join(folder, `${hash('sha256', url.slice(ROOT.length))}.js`)
  const cached = read(file)
  const source = cached.slice(DIGEST)
  if (cached !== '' && cached.slice(0, DIGEST) === digestOf(text, source)) return source
  const javascript = stripTypeScriptTypes(text)
  write(file, digestOf(text, javascript) + javascript)
  return javascript
}

/** Changes with the file and the Node version, and detects cached text that a crash damaged. */
const digestOf = (text: string, source: string): string =>
  hash('sha256', `${process.version}\0${text}\0${source}`)

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Missing or unreadable: the caller strips the file.
    return ''
  }
}

function write(file: string, text: string): void {
  const temporary = `${file}.${randomUUID()}`
  try {
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, file)
  } catch {
    // With a full or read-only disk, the next start is slower; nothing else changes.
    rmSync(temporary, { force: true })
  }
}
