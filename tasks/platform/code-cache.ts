import { hash, randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir, registerHooks, stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Caches compiled code and stripped TypeScript on disk, so that processes start faster. Node itself caches V8's
 * bytecode, but not the result of stripping types. Stripping the 250 files of an edge takes 0.3 s of CPU per process or
 * thread.
 *
 * Processes execute cached code, so other users must not be able to write to the cache folder. By default it is a
 * private folder in the system's temporary folder. Node's own default folder is unsafe, because any user could create
 * it first. `NODE_COMPILE_CACHE` names another folder.
 */

const PROJECT_ROOT_URL = new URL('../../', import.meta.url).href
// Length of a SHA-256 in hexadecimal digits.
const DIGEST_LENGTH = 64
// zod's messages in 60 languages. `load` replaces this module with an empty one, because zod imports English
// separately.
const ZOD_LOCALES = '/node_modules/zod/v4/locales/index.js'

/** Caches the code that this thread loads from now on. Entry points call it before they import anything else. */
export function enableCodeCache(): void {
  const folder = openCodeFolder()
  if (folder === null || hasLoader()) return
  registerHooks({
    // Skips Node's checks whether our files exist, are links or belong to a package.
    resolve: (specifier, context, next) => {
      const url =
        specifier.startsWith('.') && isOwnFile(context.parentURL ?? '')
          ? new URL(specifier, context.parentURL).href
          : ''
      return isOwnFile(url) ? { url, format: 'module', shortCircuit: true } : next(specifier, context)
    },
    load: (url, context, next) => {
      if (isOwnFile(url)) return { format: 'module', source: stripTypes(url, folder), shortCircuit: true }
      if (url.endsWith(ZOD_LOCALES)) return { format: 'module', source: '', shortCircuit: true }
      return next(url, context)
    },
  })
}

/** True if the command line or environment requests a loader, because a loader may transform our files itself. */
const hasLoader = (): boolean =>
  [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)].some((flag) =>
    /^(--import|--require|-r|--(experimental-)?loader)(=|$)/.test(flag),
  )

const isOwnFile = (url: string): boolean =>
  url.startsWith(PROJECT_ROOT_URL) &&
  url.endsWith('.ts') &&
  !url.includes('/node_modules/', PROJECT_ROOT_URL.length - 1)

/** Returns the folder of stripped files, inside Node's cache; null if caching is disabled. */
function openCodeFolder(): string | null {
  if (getCompileCacheDir() === undefined) {
    const folder = createPrivateFolder(userFolderPath('millrace-code'))
    if (folder === null) return null
    enableCompileCache(folder)
  }
  // Undefined if Node cannot write to its cache or `NODE_DISABLE_COMPILE_CACHE` is set.
  const nodeCache = getCompileCacheDir()
  if (nodeCache === undefined || !isOwnedByUser(nodeCache) || !isOwnedByUser(dirname(nodeCache))) return null
  return createPrivateFolder(join(nodeCache, 'stripped'))
}

/**
 * Returns the cache folder of child processes; null if the folder is not private. No other process reads this folder,
 * so code that a hijacked child writes there runs only in children.
 */
export function openChildCacheFolder(): string | null {
  return createPrivateFolder(userFolderPath('millrace-child-code'))
}

const userFolderPath = (name: string): string => join(tmpdir(), `${name}-${process.getuid?.() ?? 'all'}`)

/** Creates a folder that only this user can access; null if creation fails or the existing folder is not private. */
function createPrivateFolder(folder: string): string | null {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch {
    // Without a cache, the process only starts more slowly.
    return null
  }
  return isOwnedByUser(folder, 0o077) ? folder : null
}

/**
 * True if this user owns a folder and its mode has none of the bits in `without`. On Windows, where each user has a
 * separate temporary folder, true for any folder.
 */
function isOwnedByUser(folder: string, without = 0): boolean {
  const found = lstatSync(folder)
  if (process.getuid === undefined) return found.isDirectory()
  return found.isDirectory() && found.uid === process.getuid() && (found.mode & without) === 0
}

/** Returns the JavaScript of one of our files. Replaces types with spaces, so all positions stay the same. */
function stripTypes(url: string, folder: string): string {
  const text = readFileSync(fileURLToPath(url), 'utf8')
  // The key is the path within the project, so that a copy of the project in another folder strips only the files that
  // differ.
  const file = join(folder, `${hash('sha256', url.slice(PROJECT_ROOT_URL.length))}.js`)
  const cached = readCachedFile(file)
  const source = cached.slice(DIGEST_LENGTH)
  if (cached !== '' && cached.slice(0, DIGEST_LENGTH) === digestOf(text, source)) return source
  const javascript = stripTypeScriptTypes(text)
  writeCachedFile(file, digestOf(text, javascript) + javascript)
  return javascript
}

/**
 * Returns a digest that changes with the file and the Node version. It also detects cached text that a crash damaged.
 */
const digestOf = (text: string, source: string): string =>
  hash('sha256', `${process.version}\0${text}\0${source}`)

function readCachedFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Return no text if the cached file is missing or unreadable; the caller then strips the source.
    return ''
  }
}

function writeCachedFile(file: string, text: string): void {
  const temporary = `${file}.${randomUUID()}`
  try {
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, file)
  } catch {
    // Ignore a full or read-only disk, which only makes the next start slower.
    rmSync(temporary, { force: true })
  }
}
